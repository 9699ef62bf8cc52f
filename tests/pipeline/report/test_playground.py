"""The playground: its models give the numbers of Python's, and everything in it works in a real browser."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from browsers import CHROMIUM, FIREFOX, NODE, Browser, Firefox, Node
from seqlm.core.files import write_csv, write_json
from seqlm.core.layout import Layout
from seqlm.models.index import Models
from seqlm.models.language_model import LanguageModel
from seqlm.networks.initial import normal
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.pipeline.report import playground
from seqlm.pipeline.report.playground import build_playground
from seqlm.vocab.corpus import SPLITS, build_corpus, load_split
from seqlm.vocab.vocabulary import Vocab
from small_runs import save_ngrams, write_models, write_run
from smoke import ROOT
from workspace import wait_until

LEARNED = {"embedding": "learned", "num_layers": 2}
RUNS: dict[str, dict[str, Any]] = {
    "chapter": {"model": "scratch", "sampling": "sequential"},
    "drawn": {"model": "scratch", "sampling": "random"},
    "rectified": {"model": "scratch", "activation": "relu"},
    "elman": {"model": "rnn", "num_layers": 2},
    "gated": {"model": "gru", **LEARNED, "embedding_size": 5},
    "long": {"model": "lstm", **LEARNED, "embedding_size": 5},
    "tied": {"model": "lstm", **LEARNED, "tie_weights": True},
    "attending": {"model": "transformer", **LEARNED, "num_heads": 2, "num_steps": 7},
    "words": {"token": "word"},
}


def write_project(folder: Path, normalise: str = "none", separator: str = " ") -> Layout:
    """Fill a folder with a page and what it is written from: networks of every kind whose weights are large."""
    layout = write_models(folder)
    layout.config("small").unlink()
    texts = {split: layout.split(split) for split in SPLITS}
    vocab = build_corpus(texts, layout.corpus("char"), "char", separator, normalise=normalise)
    counts = count_ngrams(load_split(layout.corpus("char"), "train"), len(vocab), 3)
    save_ngrams(layout, counts, vocab)
    rng = np.random.default_rng(0)
    for run, changes in RUNS.items():
        write_run(layout, run, lambda weight: normal(rng, 0.5, weight.shape).astype(np.float32), **changes)
        rows = [{"epoch": epoch, "train_perplexity": 9 / epoch, "val_perplexity": 9.0} for epoch in (1, 2, 3)]
        write_csv(layout.reports("train", run, "history.csv"), pd.DataFrame(rows))
        samples = [{"epoch": 1, "text": "zzzz"}, {"epoch": 3, "text": "the sea"}]
        write_json(layout.samples_of_run(run), {"prefix": "and ", "samples": samples})
    columns = ["model", "label", "family", "val_bits", "seen_bits", "as_in_chapter"]
    models: list[tuple[object, ...]] = [
        ("best", "the best", "mixture", 1.5, 1.0, False),
        ("long", "LSTM", "network", 2, 1.9, False),
        ("char-kneser-ney-3", "counts", "ngram", 2.5, 1, False),
        ("char-kneser-ney-2", "fewer counts", "ngram", 2.6, 1, False),
        ("chapter", "<b>RNN", "network", 3, 0.3, True),
        ("drawn", "drawn", "network", 4, 1, True),
    ]
    table = pd.DataFrame(models, columns=columns).assign(dynamic=False)
    write_csv(layout.reports("evaluate", "table.csv"), table.assign(test_bits=table["val_bits"]))
    write_json(layout.corpus_record, {"name": "</script><b>sea", "description": "</script>"})
    layout.playground.write_text(build_playground(layout), encoding="utf-8")
    return layout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def page(project: Layout, browser: Browser) -> Browser:
    open_page(browser, project.playground)
    return browser


def open_page(browser: Browser, path: Path, state: str = "") -> None:
    browser.events.clear()
    browser.open(path, state)
    settled(browser)
    assert browser.problems() == []


def settled(browser: Browser) -> None:
    """Wait until all chosen models have read the text."""
    browser.wait("app.cards.length && !document.querySelector(UNFINISHED)")


def type_text(browser: Browser, text: str) -> None:
    browser.run(f"find('text').value = {json.dumps(text)}; find('text').dispatchEvent(new Event('input'))")
    settled(browser)


def compute(browser: Browser) -> Browser:
    """Have the page itself run the scripts of its worker, so that they can be called; return its browser."""
    scripts = "[...document.querySelectorAll('script.computing')].map(one => one.textContent).join('\\n')"
    browser.run(browser.run(scripts))
    browser.run("begin({data, blocks})")
    return browser


@pytest.fixture(
    params=["Chromium", pytest.param("Node", marks=pytest.mark.skipif(NODE is None, reason="no Node on this machine"))]
)
def calculator(request: pytest.FixtureRequest, project: Layout) -> Iterator[Browser | Node]:
    """What the worker of the page computes, in a page or without one."""
    if request.param == "Chromium":
        yield compute(request.getfixturevalue("page"))
    else:
        with Node(project.playground) as node:
            yield node


def wait_for_answers(browser: Browser, job: str, count: int, action: str) -> None:
    """Do something, and wait until the page has got so many answers to a kind of job."""
    browser.run(f"""new Promise(resolve => {{
      let left = {count};
      worker.addEventListener("message", ({{data}}) => {{ if (data.job === "{job}" && !--left) resolve(); }});
      {action}
    }})""")


def probabilities(model: LanguageModel, contexts: list[str]) -> np.ndarray:
    """Return p of every token after each context, which begins as if it followed a separator."""
    found = np.empty((len(contexts), len(model.vocab)))
    for row, context in enumerate(contexts):
        reader = model.reader()
        for token in model.vocab.encode(list(" " + context)).tolist():
            reader.read(token)
        found[row] = reader.next_probs()
    return found


def compare(calculator: Browser | Node, layout: Layout, num_contexts: int) -> dict[str, float]:
    """Return the largest difference between the page's probabilities and Python's for each model of the page.

    Half of the contexts are beginnings of test, the others come from its middle. Raises AssertionError if the page's do
    not sum to 1.
    """
    models, vocab = Models(layout, num_threads=1), Vocab.load(layout.vocab("char"), "char")
    test = vocab.join(vocab.decode(load_split(layout.corpus("char"), "test").tolist()))
    rng, differences = np.random.default_rng(0), {}
    starts = rng.integers(0, len(test) - 20, num_contexts) * (np.arange(num_contexts) % 2)
    # In networks that were trained for long, rounding grows with each character, in Python's single precision too.
    contexts = [test[start:][:length] for start, length in zip(starts, rng.integers(1, 21, num_contexts), strict=True)]
    for name in calculator.run("[...models.keys()]"):
        calculator.run(f"one = () => new Reading(models.get('{name}'), data.begin)")
        shown = calculator.run(f"""Promise.all({json.dumps(contexts)}.map(async text => {{
          const reading = one();
          await reading.read(Array.from(text, char => idOf.get(char)));
          return Array.from(reading.probs());
        }}))""")
        np.testing.assert_allclose(np.sum(shown, 1), 1, atol=1e-9)
        differences[name] = float(np.abs(np.array(shown) - probabilities(models[name], contexts)).max())
    return differences


def limit(name: str) -> float:
    """Return the largest difference: the weights of networks with gates keep 12 binary digits."""
    return 5e-4 if name in {"gated", "long", "tied", "lstm"} else 1e-5


def test_every_model_gives_the_probabilities_of_python(calculator: Browser | Node, project: Layout) -> None:
    differences = compare(calculator, project, 40)
    # Orders 2 and 3; every run over characters but the chapter's with random minibatches.
    ngrams = {f"char-kneser-ney-{n}" for n in (2, 3)}
    assert set(differences) == ngrams | {*RUNS} - {"words", "drawn", "attending"}
    assert {name for name, value in differences.items() if value > limit(name)} == set()
    # Counts are whole numbers, and the formulas are the same.
    assert max(value for name, value in differences.items() if "-" in name) < 1e-14


@pytest.mark.slow
def test_the_models_of_the_book_give_the_probabilities_of_python(browser: Browser) -> None:
    layout = Layout(ROOT)
    if not layout.playground.exists():
        pytest.skip("needs a finished run of the project: dvc repro")
    open_page(browser, layout.playground)
    assert layout.playground.stat().st_size <= 4_500_000
    differences = compare(compute(browser), layout, 200)
    assert {name for name, value in differences.items() if value > limit(name)} == set()


def test_weights_are_rounded_to_their_bits() -> None:
    values = np.array([0.0, -0.0, 1.0, -2.5, 65504.0, 6e-8, 1e-5, 0.1, -3e-6, 2047.6], np.float32)
    # With 16 bits, the codes are those of half precision.
    assert playground.quantise(values, 16).tolist() == values.astype(np.float16).view(np.uint16).tolist()


def test_shannons_bounds_ranks_of_guesses_and_temperatures(calculator: Browser | Node) -> None:
    # Of four characters, two were right at once, one took two guesses and one three: q = (1/2, 1/4, 1/4).
    # Upper: 1/2 + 2/4 + 2/4 = 1.5. Lower: 1 (1/4) log 1 + 2 (0) log 2 + 3 (1/4) log 3 = 0.75 log2 3.
    exact = calculator.run("shannonBounds([1, 1, 2, 3], 27)")
    assert (exact["lower"], exact["upper"]) == (pytest.approx(0.75 * np.log2(3)), 1.5)
    # The unknown character, the first, is never guessed; of equally likely ones the first comes first.
    assert calculator.run("[1, 2, 3, 4].map(token => rankOf([0.4, 0.1, 0.3, 0.1, 0.1], token))") == [2, 1, 3, 4]
    # Without it, 0.4, 0.3, 0.2 remain to be drawn; temperature 1/2 squares them.
    drawn = "Array.from(drawnWith(Float64Array.of(0.1, 0.4, 0.3, 0.2), {}))"
    assert calculator.run(drawn.format(1)) == pytest.approx([0, 4 / 9, 3 / 9, 2 / 9])
    assert calculator.run(drawn.format(0.5)) == pytest.approx([0, 16 / 29, 9 / 29, 4 / 29])
    assert calculator.run(drawn.format(0)) == [0, 1, 0, 0]


def bits_of(layout: Layout, name: str, text: str) -> list[float]:
    """Return the bits of each character of a text, which follows a separator."""
    return (Models(layout, num_threads=1)[name].score_text(text).nll / np.log(2)).tolist()


def test_what_is_shown_is_what_the_models_say(page: Browser, project: Layout) -> None:
    text = "the sea w"
    type_text(page, text)
    names = page.run("chosen()")
    assert names == ["char-kneser-ney-3", "long", "chapter"]  # the highest order, the best on val, the memorising one
    for place, name in enumerate(names):
        bits = bits_of(project, name, text)
        titles = page.run(f"[...app.cards[{place}].text.children].map(one => one.title)")
        assert [float(title.removesuffix(" bits")) for title in titles] == pytest.approx(bits, abs=0.051)
        score = page.run(f"parseFloat(app.cards[{place}].score.textContent)")
        assert score == pytest.approx(np.mean(bits), abs=0.006)
        probs = probabilities(Models(project, num_threads=1)[name], [text])[0]
        best = page.run(f"app.cards[{place}].bars[0].token")
        assert probs[best] == pytest.approx(probs[1:].max(), abs=1e-3)


@pytest.mark.parametrize(("normalise", "separator"), [("none", "\n"), ("none", ""), ("letters", "")])
def test_lines_are_read_as_in_python(tmp_path: Path, browser: Browser, normalise: str, separator: str) -> None:
    layout = write_project(tmp_path, normalise, separator)
    open_page(browser, layout.playground)
    text = "The sea \n came,\f\nin the\u2028se\u0301a"  # an accent makes one unknown character with its letter
    type_text(browser, text)
    for place, name in enumerate(browser.run("chosen()")):
        scored = Models(layout, num_threads=1)[name].score_text(text)
        assert browser.run("app.ids") == scored.encoded.input_ids[scored.encoded.is_scored].tolist()
        known = scored.nll[browser.run("app.ids.map(id => id > 0)")] / np.log(2)
        score = browser.run(f"parseFloat(app.cards[{place}].score.textContent)")
        assert score == pytest.approx(known.mean(), abs=0.006)


def test_unknown_characters_are_not_counted_and_markup_stays_text(page: Browser) -> None:
    type_text(page, "sea")
    before = page.run("app.cards[0].score.textContent")
    type_text(page, "sea§")
    assert page.run("app.cards[0].score.textContent") == before
    assert "do not know: 1." in page.run("find('remark').textContent")
    assert page.run("app.cards[0].text.lastChild.className") == "unknown"
    text = "the <img src=x onerror=alert(1)></script> نص 👩‍👩‍👧 sea"
    type_text(page, text)
    assert page.run("app.cards[0].text.textContent") == text
    assert page.run("document.querySelectorAll('img').length") == 0
    # A family is one group of five code points.
    assert page.run("[...app.cards[0].text.children].filter(one => one.textContent.includes('👩')).length") == 1
    assert page.problems() == []
    # No request but the page itself, and the worker that it makes.
    assert sorted(address.partition(":")[0] for address in page.requests()) in (["file"], ["blob", "file"])


def test_an_old_answer_is_grey_and_never_shown_as_a_new_one(page: Browser) -> None:
    # In one step, so that no answer comes between.
    shown = "document.querySelectorAll('.card.old').length"
    assert page.run(f"find('text').value = 'x'.repeat(1500); setText(); {shown}") == 3
    page.run("find('text').value = 'the sea'; setText()")  # before the first is read
    settled(page)
    assert page.run("app.cards.map(card => card.text.textContent)") == ["the sea"] * 3
    # Too long a text is cut, and the page says so.
    type_text(page, "a" * 2100)
    assert "Only the first 2,000 characters are read; the last 100 are not." in page.run("find('remark').textContent")
    assert page.run("app.ids.length") == 2000
    # Pointing says what was needed for this text, not for one that is being read.
    hint = page.run("find('bits').value")
    assert page.run("point(5); find('bits').value") != hint
    assert page.run("find('text').value = 'x'.repeat(1500); setText(); point(5); find('bits').value") == hint
    # What was read is shown while the rest is read.
    type_text(page, "the sea")
    page.run("app.cards[0].drawnAt = -1e9; showCard(app.cards[0], {share: 2 / 7, bits: [3, 1]})")
    shown = "[...app.cards[0].text.children].map(one => one.className)"
    assert page.run(f"[app.cards[0].element.className, {shown}]") == ["card reading", ["s2", "s0"] + 5 * ["unread"]]


def test_a_bar_adds_its_character_and_undo_takes_it_back(page: Browser) -> None:
    type_text(page, "The sea! It")
    page.run("app.cards[1].bars[0].focus(); app.cards[1].bars[0].click()")
    settled(page)
    added = page.run("find('text').value")
    assert added[:-1] == "The sea! It"
    assert page.run("document.activeElement === app.cards[1].bars[0]")
    page.run("find('undo').click()")
    assert page.run("find('text').value") == "The sea! It"
    # What was typed since is one step of its own.
    page.run("app.cards[1].bars[0].click()")
    for text in ("The sea! It i", "The sea! It is", "The sea! It is\n"):
        type_text(page, text)
    page.run("app.cards[1].bars[0].click()")
    assert page.run("find('text').value")[:-1] == "The sea! It is "  # lines of this corpus are joined by a space
    undone = [page.run("find('undo').click() ?? find('text').value") for _ in range(3)]
    assert undone == ["The sea! It is\n", added, "The sea! It"]


def test_the_address_holds_the_text_and_the_models(browser: Browser, project: Layout) -> None:
    open_page(browser, project.playground, "#text=and+the%20s&model=gated&model=nonsense&model=char-kneser-ney-2")
    assert browser.run("[find('text').value, ...chosen()]") == ["and the s", "gated", "long", "char-kneser-ney-2"]
    assert browser.run("find('remark').textContent").strip() == "Not on this page: nonsense."
    browser.run("app.cards[0].select.value = 'elman'; read()")
    type_text(browser, "the sea & more")
    browser.wait("location.hash.includes('more')")
    address = browser.run("location.hash")
    open_page(browser, project.playground, address)
    assert browser.run("[find('text').value, chosen()[0]]") == ["the sea & more", "elman"]
    browser.run("document.querySelector('.skip').click()")
    assert browser.run("[location.hash, document.activeElement.id]") == [address, "main"]
    # Another address has nothing to undo.
    browser.run("app.cards[0].bars[0].click(); location.hash = '#text=other'")
    browser.wait("find('text').value === 'other'")
    assert browser.run("find('undo').disabled")
    # A character of two code units is not cut in halves.
    browser.run("find('text').value = 'a'.repeat(1999) + '👩👩'; setText()")
    settled(browser)
    browser.run("speak()")
    assert browser.run("new URLSearchParams(location.hash.slice(1)).get('text')") == "a" * 1999 + "👩"


WRITE = """written = new Promise(resolve => {
  ask("write", {ids: app.ids, names: ["long"], length: 40, temperature: %s, seed: %d}, ({tokens}) => {
    if (tokens.length === 40) resolve(tokens.map(token => data.tokens[token]).join(""));
  });
})"""


def test_the_same_seed_writes_the_same_text(page: Browser, project: Layout) -> None:
    type_text(page, "the s")
    once = page.run(WRITE % (1, 1))
    assert len(once) == 40
    assert page.run(WRITE % (1, 1)) == once != page.run(WRITE % (1, 2))
    # Temperature 0 is the likeliest character, whatever the seed.
    model, expected = Models(project, num_threads=1)["long"], ""
    for _ in range(40):
        expected += model.vocab.tokens[int(probabilities(model, ["the s" + expected])[0, 1:].argmax() + 1)]
    assert page.run(WRITE % (0, 3)) == expected
    page.run("find('writing').open = true; find('temperature').value = 0; find('write').click()")
    page.wait("find('written').children.length === 6 && find('written').children[3].textContent.length === 205")
    assert page.run("find('written').children[3].textContent").startswith("the s" + expected)


def test_units_are_ranked_by_what_they_track_and_measured_on_other_text(calculator: Browser | Node) -> None:
    found = calculator.run("""(() => {
      const random = randomNumbers(1), values = Array.from({length: 600}, () => Math.floor(random() * 3));
      // Unit 2 follows the class; unit 1 does so on the first half only, where it is chosen.
      const chosen = (value, i) => i < 300 ? value % 2 : random();
      const activity = values.map((value, i) => [random(), chosen(value, i), value === 1 ? 1 : 0, random()]);
      const noise = activity.map(([a, , , c]) => [a, c]);
      return {tracked: rankUnits(activity, values), noise: rankUnits(noise, values),
              half: shareExplained([1, 3, 4, 6], ["a", "a", "b", "b"]), flat: shareExplained([1, 1, 1], [2, 4, 6])};
    })()""")
    measured = {one["unit"]: (one["chosenOn"], one["measured"]) for one in found["tracked"]["units"]}
    assert measured[2] == (pytest.approx(1), pytest.approx(1))
    assert measured[1][0] == pytest.approx(1)
    assert measured[1][1] < found["tracked"]["chance"] < 0.2
    assert found["noise"]["units"][0]["measured"] < 0.05
    # Means 2 and 5 around 3.5: 4 x 1.5^2 = 9 of 6.25 + 0.25 + 0.25 + 6.25 = 13.
    assert (found["half"], found["flat"]) == (pytest.approx(9 / 13), 0)


def test_the_map_of_units_follows_the_text(page: Browser) -> None:
    type_text(page, "the sea")
    page.run("find('inside').open = true")
    page.wait("find('map').rows.length > 3 && !find('units').classList.contains('old')")
    unit = page.run("find('map').rows[3].cells[0].textContent")
    page.run("find('map').rows[3].querySelector('button').click()")
    assert page.run("find('map').rows[3].className") == "chosen"
    type_text(page, "the sea came")
    page.wait("find('coloured').textContent === 'the sea came'")
    assert unit in page.run("[...find('map').rows].slice(1).map(row => row.cells[0].textContent)")
    # An answer about an emptied text is not shown.
    emptied = "find('text').value = 'the sea went'; setText(); find('text').value = ''; setText()"
    wait_for_answers(page, "units", 1, emptied)
    settled(page)
    assert page.run("find('units-said').textContent + find('coloured').textContent") == "Type a text first.the sea came"
    page.run("find('map').rows[2].querySelector('button').click()")
    assert page.run("find('units-said').textContent") == "Type a text first."
    type_text(page, "the sea came")
    page.run("find('property').selectedIndex = 1; find('property').dispatchEvent(new Event('change'))")
    page.wait("find('units-said').textContent.includes('chance')")


def test_the_slider_over_time_shows_perplexities_and_samples(page: Browser) -> None:
    page.run("find('over-time').open = true; find('run').value = 'long'; chooseRun()")
    shown = "[find('sample').textContent, find('perplexities').textContent]"
    assert page.run(shown) == ["and the sea", "Perplexity on train 3.00, on val 9.00."]
    page.run("find('epoch').value = 1; find('epoch').dispatchEvent(new Event('input'))")
    assert page.run(shown) == ["and zzzz", "Perplexity on train 4.50, on val 9.00."]
    # Perplexities 9, 4.5 and 3 on train, from top to bottom: log(4.5/3) / log(9/3) = 0.37.
    points = page.run("find('chart').querySelector('polyline').getAttribute('points').split(' ')")
    assert [point.split(",")[1] for point in points] == ["0.00", "63.09", "100.00"]
    scales = page.run("find('scales').textContent.toLowerCase()")
    assert "from epoch 1 (left) to 3 (right), perplexities from 3.00 (bottom) to 9.00" in scales


def test_the_game_is_played_with_the_keyboard_and_scores_the_models(page: Browser, project: Layout) -> None:
    page.run("find('game').open = true")
    page.wait("Boolean(app.game.ranks)")
    page.run("find('guess').focus()")
    wanted = page.run("data.tokens[app.game.text[app.game.place]]")
    wrong = page.run(f"data.tokens.slice(1).find(char => char !== {json.dumps(wanted)})")
    for key in ("7", "É", wrong, wrong, wanted):  # the first two are no guesses
        page.press(key)
    assert page.run("app.game.ranks") == [2]
    page.run("for (let i = 0; i < 10; i++) reveal()")
    assert page.run("app.game.ranks.length") == 11
    page.wait("find('scores').rows.length === 4 && [...app.game.models.values()].every(one => one.bits.length === 11)")
    text = page.run("app.game.text.slice(app.game.start, app.game.place).map(id => data.tokens[id]).join('')")
    expected = bits_of(project, "char-kneser-ney-3", text)[-11:]
    assert page.run("app.game.models.get('char-kneser-ney-3').bits") == pytest.approx(expected)
    # What is to be guessed is hidden: only what comes before it is shown.
    assert page.run("find('context').textContent") == text + "?"
    # The rows are those of the chosen models, and a late answer is not one about the next passage.
    # In one step, so that no answer comes between.
    assert page.run("app.cards[0].select.value = 'elman'; read(); find('scores').className") == "old"
    page.wait("find('scores').className === ''")
    assert page.run("[...app.game.models.keys()].sort()") == sorted(page.run("chosen()"))
    assert page.run("app.game.models.get('elman').bits.length") == 11
    wait_for_answers(page, "score", 3, "reveal(); startGame()")
    assert page.run("app.game.models.size") == 0


@pytest.mark.skipif(FIREFOX is None, reason="no Firefox on this machine")
def test_the_page_works_in_firefox(project: Layout, tmp_path: Path) -> None:
    with Firefox(tmp_path) as firefox:
        firefox.open(project.playground)
        wait_until(lambda: firefox.run("document.querySelector('.card') && !document.querySelector('.card.old')"))
        assert firefox.run("document.getElementById('failed').hidden")
        text = firefox.run("document.getElementById('text').value")
        shown = firefox.run("[...document.querySelectorAll('.score b')].map(one => parseFloat(one.textContent))")
        names = firefox.run("[...document.querySelectorAll('.card select')].map(one => one.value)")
    assert shown == pytest.approx([np.mean(bits_of(project, name, text)) for name in names], abs=0.006)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_the_answer_is_beside_the_text(project: Layout, browser: Browser, width: int, height: int) -> None:
    browser.resize(width, height, dark=True)
    open_page(browser, project.playground)
    assert browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    ends = "[...document.querySelectorAll('.bar, .card .passage')].map(one => one.getBoundingClientRect().bottom)"
    assert max(browser.run(ends)) < height
    assert min(browser.run("[...document.querySelectorAll('.bar')].map(bar => bar.offsetHeight)")) >= 24
    unnamed = browser.run("""[...document.querySelectorAll("input, select, textarea, button, progress, svg")]
      .filter(one => !one.labels?.length && !one.textContent.trim() && !one.ariaLabel && !one.ariaLabelledByElements)
      .map(one => one.outerHTML)""")
    assert unnamed == []
    stops = "[...document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex]')]"
    assert browser.run(f"{stops}.filter(one => one.tabIndex >= 0 && one.checkVisibility()).length") < 50
    browser.resize(1280, 900)


def test_the_page_has_a_policy_and_no_markup_of_the_text(project: Layout) -> None:
    text = project.playground.read_text(encoding="utf-8")
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0])
    codes = re.findall("<(?:script|style)>(.*?)</(?:script|style)>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes]
    # Besides the page's own styles and scripts, nothing but its worker.
    assert re.sub("'sha256-[^']*' ?", "", policy) == (
        "default-src 'none'; style-src ; script-src ; base-uri 'none'; form-action 'none'; worker-src blob:"
    )
    assert re.findall("'sha256-([^']*)'", policy) == hashes
    assert "://" not in text
    # The name of the corpus is data, whatever is in it.
    assert text.count("</script>") == text.count("<script")
    assert "<b>sea" not in text


def test_what_the_page_leaves_out_is_named(project: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def left_out() -> dict[str, str]:
        return dict(re.findall(r"<li>(.*?): not on this page, (.*?)</li>", build_playground(project)))

    other = {
        "words": "reads word tokens, and this page characters",
        "attending": "the page cannot compute a transformer",
    }
    assert left_out() == other
    assert build_playground(project) == build_playground(project)  # weights come from their file in a random order
    unknown = "Characters that the models do not know are left out."
    assert unknown not in project.playground.read_text()
    monkeypatch.setattr(playground, "load_split", lambda *_: np.array([1, 0, 2]))
    assert unknown in build_playground(project)
    monkeypatch.setattr(playground, "MAX_PAGE", 50)
    assert left_out()["n-gram models of order 2 or more"] == "too large"
    assert left_out()["long"] == "too large (0.0 MB)"
    assert {*RUNS} - {"drawn"} <= set(left_out())
