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
import torch

from devtools import CHROMIUM, Browser
from seqlm.core.files import write_csv, write_json
from seqlm.core.layout import Layout
from seqlm.core.settings import check
from seqlm.models.language_model import LanguageModel
from seqlm.models.index import Models
from seqlm.networks.building import build_network, read_weights, save_network
from seqlm.networks.settings import NetworkSettings
from seqlm.ngrams.models.registry import SMOOTHINGS
from seqlm.report import playground
from seqlm.report.playground import build_playground
from seqlm.train.settings import write_config
from seqlm.vocab.corpus import SPLITS, build_corpus, load_split
from seqlm.vocab.vocabulary import Vocab
from small_runs import LINES, config, write_models
from smoke import ROOT

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
SUPPORTED = ("uniform", "laplace", "kneser-ney")
LEARNED = {"embedding": "learned", "num_layers": 2}
RUNS: dict[str, dict[str, Any]] = {
    "chapter": {"model": "scratch"},
    "rectified": {"model": "scratch", "activation": "relu"},
    "elman": {"model": "rnn", "num_layers": 2},
    "gated": {"model": "gru", **LEARNED, "embedding_size": 5},
    "long": {"model": "lstm", **LEARNED, "embedding_size": 5},
    "tied": {"model": "lstm", **LEARNED, "tie_weights": True},
    "attending": {"model": "transformer", **LEARNED, "num_heads": 2, "num_steps": 7},
    "words": {"token": "word"},
}
ARABIC = "البحر جاء 👩‍👩‍👧 والبحر ذهب\n"


def write_project(folder: Path, text: str = LINES * 20) -> Layout:
    """Fill a folder with what the page is written from: networks of every kind whose weights are large."""
    layout = write_models(folder, text)
    layout.config("small").unlink()
    texts = {split: layout.split(split) for split in SPLITS}
    vocab = build_corpus(texts, layout.corpus("char"), "char", " ", normalise="none")
    torch.manual_seed(0)
    for run, changes in RUNS.items():
        settings = config(run, **changes)
        network = build_network(settings, len(vocab), 0)
        weights = {name: 0.5 * torch.randn(weight.shape) for name, weight in network.weight_copies().items()}
        if settings.token == "char":
            save_network(layout.run(run), run, settings, vocab.key, weights, network.engine)
        write_config(layout.config(run), settings)
        rows = [{"epoch": epoch, "train_perplexity": 9 / epoch, "val_perplexity": 9.0} for epoch in (1, 2, 3)]
        write_csv(layout.reports("train", run, "history.csv"), pd.DataFrame(rows))
        samples = [{"epoch": 1, "text": "zzzz"}, {"epoch": 3, "text": "the sea"}]
        write_json(layout.samples_of_run(run), {"prefix": "and ", "samples": samples})
    table = {"model": ["best", "long", "chapter"], "label": ["the best", "LSTM", "<b>RNN"], "test_bits": [1.5, 2, 3]}
    write_csv(layout.reports("evaluate", "table.csv"), pd.DataFrame(table))
    write_json(layout.corpus_record, {"name": "</script><b>sea", "description": "</script>"})
    return layout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = write_project(tmp_path_factory.mktemp("project"))
    layout.playground.write_text(build_playground(layout, "x"), encoding="utf-8")
    return layout


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def page(project: Layout, browser: Browser) -> Browser:
    open_page(browser, project.playground)
    return browser


def open_page(browser: Browser, path: Path) -> None:
    browser.events.clear()
    browser.open(path)
    assert browser.problems() == []
    settled(browser)


def settled(browser: Browser) -> None:
    """Wait until all chosen models have read the text."""
    browser.wait(
        "app.slots.every((name, slot) => !name || app.readings[name]?.ids.length === app.ids.length"
        " && (!app.ids.length || app.views[slot].text.children.length))"
    )


def type_text(browser: Browser, text: str) -> None:
    browser.run(f"find('text').value = {json.dumps(text)}; find('text').dispatchEvent(new Event('input'))")
    settled(browser)


def distributions(model: LanguageModel, contexts: list[list[int]]) -> np.ndarray:
    """Return p of every token after each context."""
    found = np.empty((len(contexts), len(model.vocab)))
    for row, context in enumerate(contexts):
        reader = model.reader()
        for token in context:
            reader.read(np.array([token]))
        found[row] = reader.next_probs()[0]
    return found


def greedy(model: LanguageModel, context: list[int], length: int) -> list[int]:
    reader, found = model.reader(), []
    for token in context:
        reader.read(np.array([token]))
    for _ in range(length):
        found.append(int(reader.next_probs()[0][1:].argmax() + 1))
        reader.read(np.array(found[-1:]))
    return found


def compare(browser: Browser, layout: Layout, num_contexts: int, num_continued: int) -> dict[str, float]:
    """Return the largest difference between the page's probabilities and Python's for each model.

    Raises AssertionError if the page's do not sum to 1, or if a greedy continuation differs.
    """
    models, ids = Models(layout, num_threads=1), np.asarray(load_split(layout.corpus("char"), "test"), np.int64)
    rng, differences = np.random.default_rng(0), {}
    for name in browser.run("app.models.map(model => model.name)"):
        model = models[name]
        # In networks that were trained for long, rounding grows with each character: after 60 characters, Python's own
        # single precision differs from double precision by 2e-5. So contexts are shorter, and continuations long.
        lengths = rng.integers(1, 21, num_contexts)
        contexts = [ids[start : start + n].tolist() for n in lengths for start in rng.integers(0, len(ids) - n, 1)]
        browser.run(f"one = app.byName.get('{name}'); read = (state, id) => one.read(state, id)")
        shown = browser.run(f"{json.dumps(contexts)}.map(ids => Array.from(one.probs(ids.reduce(read, one.start()))))")
        np.testing.assert_allclose(np.sum(shown, 1), 1, atol=1e-9)
        differences[name] = float(np.abs(np.array(shown) - distributions(model, contexts)).max())
        for context in contexts[:num_continued]:
            assert browser.run(f"greedy(one, {context}, 200)") == greedy(model, context, 200), name
    return differences


def compare_exactly(browser: Browser, layout: Layout, num_contexts: int, max_length: int) -> dict[str, float]:
    """Return for each network the largest difference between the page and double precision with the page's weights."""
    vocab, ids = Vocab.load(layout.vocab("char"), "char"), np.asarray(load_split(layout.corpus("char"), "test"))
    rng, differences = np.random.default_rng(0), {}
    for run, sent in browser.run("app.data.networks.map(one => [one.name, one.arrays])"):
        stored = read_weights(layout.run(run), run, vocab.key)[0]
        settings = check(stored | {"engine": "framework"}, "network", NetworkSettings, source=run)
        network = build_network(settings, len(vocab), 0).double()
        weights = {
            one["name"]: torch.tensor(browser.run(f"Array.from(app.byName.get('{run}').weights['{one['name']}'])"))
            for one in sent
        }
        network.load_weights({one["name"]: weights[one["name"]].reshape(one["shape"]) for one in sent})
        lengths = rng.integers(1, max_length + 1, num_contexts)
        contexts = [ids[start : start + n].tolist() for n in lengths for start in rng.integers(0, len(ids) - n, 1)]
        browser.run(f"one = app.byName.get('{run}'); read = (state, id) => one.read(state, id)")
        shown = browser.run(f"{json.dumps(contexts)}.map(ids => Array.from(one.probs(ids.reduce(read, one.start()))))")
        logits = [network.logits(np.array([context]), network.initial_state(1))[0][0, -1] for context in contexts]
        exact = torch.softmax(torch.from_numpy(np.array(logits)), 1).numpy()
        differences[run] = float(np.abs(np.array(shown) - exact).max())
    return differences


@needs_browser
def test_every_model_gives_the_probabilities_of_python(page: Browser, project: Layout) -> None:
    differences = compare(page, project, 40, 2)
    # Uniform; three orders of Laplace and of Kneser-Ney; every run over characters.
    ngrams = {f"char-{kind}-{n}" for kind in ("laplace", "kneser-ney") for n in (1, 2, 3)}
    assert set(differences) == {"char-uniform"} | ngrams | {*RUNS} - {"words"}
    assert max(differences.values()) < 1e-5
    # Counts are whole numbers, and the formulas are the same.
    assert max(value for name, value in differences.items() if "-" in name) < 1e-14


@needs_browser
def test_large_networks_are_stored_in_fewer_bytes_and_the_page_says_so(
    project: Layout, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground, "_precisions", lambda sizes, _: {run: fewest for run, (_, fewest) in sizes.items()})
    path = tmp_path / "half.html"
    path.write_text(build_playground(project, "x"), encoding="utf-8")
    open_page(browser, path)
    assert browser.run("[...find('precision').children].map(one => one.textContent)") == [
        "<b>RNN; elman; rectified: weights rounded to 24 bits",
        "attending; gated; LSTM; tied: weights rounded to 16 bits (half precision)",
    ]
    values = np.array([0.0, -0.0, 1.0, -2.5, 65504.0, 6e-8, 1e-5, 0.1], np.float16)
    decoded = browser.run(f"Array.from(fromHalf(Uint16Array.from({values.view(np.uint16).tolist()})))")
    assert decoded == values.astype(float).tolist()
    # 16 binary digits: the last of them, at most half of which is lost, is 2 to the -15 of the first.
    weights = read_weights(project.run("chapter"), "chapter", Vocab.load(project.vocab("char"), "char").key)[1]["W_hh"]
    shown = np.array(browser.run("Array.from(app.byName.get('chapter').weights.W_hh)")).reshape(weights.shape)
    assert 2**-19 < np.abs(shown / weights - 1).max() <= 2**-16
    # With the weights that it has, the page computes what double precision gives, after long texts too.
    assert max(compare_exactly(browser, project, 20, 60).values()) < 1e-7


@pytest.mark.slow
@needs_browser
def test_the_models_of_the_book_give_the_probabilities_of_python(browser: Browser) -> None:
    layout = Layout(ROOT)
    if not layout.playground.exists():
        pytest.skip("needs a finished run of the project: dvc repro")
    open_page(browser, layout.playground)
    assert layout.playground.stat().st_size < 8_000_000
    is_rounded = {one["name"] for one in browser.run("app.data.networks") if one["type"] != "float32"}
    differences = compare(browser, layout, 1000, 20)
    assert {name for name, value in differences.items() if value > (1e-3 if name in is_rounded else 1e-5)} == set()
    assert max(compare_exactly(browser, layout, 100, 200).values()) < 1e-6


@needs_browser
def test_shannons_bounds_enclose_the_entropy_of_a_player_who_knows_the_model(page: Browser) -> None:
    # Of four characters, two were right at once, one took two guesses and one three: q = (1/2, 1/4, 1/4).
    # Upper: 1/2 + 2/4 + 2/4 = 1.5. Lower: 1 (1/4) log 1 + 2 (0) log 2 + 3 (1/4) log 3 = 0.75 log2 3.
    exact = page.run("shannonBounds([1, 1, 2, 3], 27)")
    assert (exact["lower"], exact["upper"]) == (pytest.approx(0.75 * np.log2(3)), 1.5)
    # A player who guesses in the order of the model's probabilities, on text that the model itself writes.
    for name in ("char-kneser-ney-2", "char-laplace-1", "long", "char-uniform"):
        found = page.run(f"""(() => {{
          const model = app.byName.get("{name}"), random = randomNumbers(7), ranks = [];
          const all = {{temperature: 1, topK: 1e9, topP: 1}};
          let state = model.read(model.start(), 1), entropy = 0;
          for (let i = 0; i < 4000; i++) {{
            const probs = drawnWith(model.probs(state), all), token = draw(probs, random());
            for (const p of probs) if (p > 0) entropy -= p * Math.log2(p) / 4000;
            ranks.push(rankOf(probs, token));
            state = model.read(state, token);
          }}
          return {{entropy, ...shannonBounds(ranks, app.data.tokens.length - 1)}};
        }})()""")
        # Both bounds are means over 4,000 characters, with standard errors of about 0.02.
        assert found["lower"] - 0.06 <= found["entropy"] <= found["upper"] + 0.06, name
        assert found["upper"] - found["lower"] < 1.5


@needs_browser
def test_each_character_is_shaded_by_its_bits_and_the_first_is_not_counted(page: Browser, project: Layout) -> None:
    type_text(page, "the sea ")
    page.run("choose(0, 'char-uniform')")
    settled(page)
    vocab = Vocab.load(project.vocab("char"), "char")
    bits = np.log2(len(vocab))
    assert page.run("app.views[0].score.textContent") == (f"{bits:.2f} bits per character, perplexity {len(vocab):.2f}")
    titles = page.run("[...app.views[0].text.children].map(one => one.title)")
    assert titles == ["not scored"] + [f"{bits:.1f} bits"] * 7


@needs_browser
def test_examples_are_made_from_the_test_text(page: Browser, project: Layout) -> None:
    vocab = Vocab.load(project.vocab("char"), "char")
    test = vocab.join(vocab.decode(load_split(project.corpus("char"), "test").tolist()))
    example = page.run("find('text').value")
    assert example.endswith(" ")
    assert test.startswith(example)
    page.run("find('words-backwards').click()")
    assert page.run("find('text').value.split(' ')") == example.split(" ")[::-1]
    page.run("find('all-backwards').click(); find('temperature').value = 0; choose(0, 'char-uniform')")
    assert page.run("find('text').value") == example[::-1]
    page.run("find('reset').click()")
    assert page.run("[find('text').value, find('temperature').value, app.slots[0]]") == [
        example,
        "1",
        "char-kneser-ney-3",
    ]
    settled(page)


@needs_browser
def test_markup_and_other_scripts_stay_text(page: Browser) -> None:
    text = "the <img src=x onerror=alert(1)></script> نص 👩‍👩‍👧 sea"
    type_text(page, text)
    assert page.run("app.views[0].text.textContent") == text
    assert page.run("document.querySelectorAll('img').length") == 0
    # A family is one group of five code points.
    assert page.run("[...app.views[0].text.children].filter(one => one.textContent.includes('👩')).length") == 1
    assert "not in the models’ alphabet" in page.run("find('unknown').textContent")
    assert page.problems() == []
    assert {address.partition(":")[0] for address in page.requests()} <= {"file", "data"}
    assert len([address for address in page.requests() if address.startswith("file")]) == 1


@needs_browser
def test_an_alphabet_of_another_script_shows_the_likeliest_characters(browser: Browser, tmp_path: Path) -> None:
    letters = "".join(chr(0x0627 + i % 36) + chr(0x4E00 + i) for i in range(90))
    layout = write_project(tmp_path, ARABIC * 20 + letters + "\n" + letters + "\n")
    layout.playground.write_text(build_playground(layout, "x"), encoding="utf-8")
    open_page(browser, layout.playground)
    type_text(browser, "البحر جاء 👩‍👩‍👧")
    assert browser.run("find('bars').querySelectorAll('button').length") == 20
    assert re.match(r"Not shown: \d+ less likely characters", browser.run("find('rest').textContent"))
    assert browser.run("find('unknown').textContent") == ""
    assert browser.run("find('keys').children.length") == 0  # too many keys: guesses are typed
    assert browser.problems() == []


# With a name, so that Chromium does not collect the promise while it is awaited.
WRITE = """writing = (async () => {
  for (let i = 0; i < %d; i++) await writeWith(0, %d);
  return find("text").value;
})()"""


@needs_browser
def test_the_same_seed_writes_the_same_text_step_by_step_or_at_once(page: Browser) -> None:
    type_text(page, "the s")
    at_once = page.run(WRITE % (1, 40))
    assert len(at_once) == 45
    assert page.run("[find('stop').hidden, find('undo').hidden]") == [True, False]
    page.run("undoWriting()")
    assert page.run("[find('undo').hidden, find('text').value]") == [True, "the s"]
    assert page.run(WRITE % (40, 1)) == at_once
    page.run("undoWriting(); find('seed').value = 2; find('seed').dispatchEvent(new Event('input'))")
    assert page.run(WRITE % (1, 40)) != at_once
    # Temperature 0 is the likeliest character, whatever the seed.
    page.run("undoWriting(); find('temperature').value = 0; find('temperature').dispatchEvent(new Event('input'))")
    ids = page.run("greedy(app.byName.get(app.slots[0]), app.ids, 20)")
    written = page.run(WRITE % (1, 20))
    assert written == "the s" + "".join(page.run("app.data.tokens")[token] for token in ids)
    # A bar adds its character.
    settled(page)
    page.run("find('bars').children[1].click()")
    assert len(page.run("find('text').value")) == len(written) + 1


@needs_browser
def test_drawing_keeps_what_the_sliders_say(page: Browser) -> None:
    # Without the unknown character, 0.4, 0.3, 0.2 remain; temperature 1/2 squares them.
    def drawn(**settings: float) -> list[float]:
        options = {"temperature": 1, "topK": 9, "topP": 1} | settings
        found: list[float] = page.run(
            f"Array.from(drawnWith(Float64Array.of(0.1, 0.4, 0.3, 0.2), {json.dumps(options)}))"
        )
        return found

    assert drawn() == pytest.approx([0, 4 / 9, 3 / 9, 2 / 9])
    assert drawn(temperature=0.5) == pytest.approx([0, 16 / 29, 9 / 29, 4 / 29])
    assert drawn(temperature=0) == [0, 1, 0, 0]
    assert drawn(topK=2) == pytest.approx([0, 4 / 7, 3 / 7, 0])
    assert drawn(topP=0.5) == pytest.approx([0, 4 / 7, 3 / 7, 0])
    assert drawn(topP=0.4) == [0, 1, 0, 0]


@needs_browser
def test_units_are_ranked_by_what_they_track_and_chance_is_told_from_it(page: Browser) -> None:
    found = page.run("""(() => {
      const random = randomNumbers(1), values = Array.from({length: 600}, () => Math.floor(random() * 3));
      // Unit 2 follows the class, the others are noise.
      const activity = values.map(value => [random(), random(), value === 1 ? 1 : 0, random()]);
      const noise = activity.map(([a, b, , c]) => [a, b, c]);
      return {tracked: rankUnits(activity, values, true), noise: rankUnits(noise, values, true),
              line: shareExplained([1, 2, 3], [2, 4, 6], false), flat: shareExplained([1, 1, 1], [2, 4, 6], false)};
    })()""")
    assert found["tracked"]["units"][0] == {"unit": 2, "chosenOn": pytest.approx(1), "measured": pytest.approx(1)}
    assert found["tracked"]["chance"] < 0.2
    assert found["noise"]["units"][0]["measured"] < 0.05
    assert (found["line"], found["flat"]) == (pytest.approx(1), 0)
    # The map has those that change most, and a click on a number chooses a unit.
    unit = page.run("find('map').rows[3].cells[0].textContent")
    page.run("find('map').rows[3].querySelector('button').click()")
    page.wait("find('map').rows[3].className === 'chosen'")
    assert page.run("find('unit').value") == unit
    page.run("find('property').selectedIndex = 1; find('property').dispatchEvent(new Event('change'))")
    page.wait("find('units-said').textContent.includes('chance')")


@needs_browser
def test_the_slider_over_time_shows_samples_and_how_much_of_them_is_copied(page: Browser) -> None:
    page.run("find('run').value = 'long'; chooseRun()")
    # The axis reaches the next tick beyond every perplexity: of 1, 2, 5, 10, these are 2 to 10.
    assert {"2", "5", "10"} <= set(page.run("[...find('chart').querySelectorAll('text')].map(one => one.textContent)"))
    assert page.run("find('sample').textContent") == "and the sea"
    assert "7 of 7 characters" in page.run("find('sample-said').textContent")
    assert page.run("find('run').selectedOptions[0].textContent") == "LSTM"
    assert page.run("find('perplexities').textContent") == "Perplexity on train 3.00, on val 9.00."
    page.run("find('epoch').value = 1; find('epoch').dispatchEvent(new Event('input'))")
    assert page.run("find('sample').textContent") == "and zzzz"


@needs_browser
def test_the_game_is_played_with_the_keyboard_and_scores_the_models_on_the_same_characters(page: Browser) -> None:
    page.run("find('guess').focus()")
    wanted = page.run("app.data.tokens[app.game.text[app.game.place]]")
    wrong = page.run(f"app.data.tokens.slice(1).find(char => char !== {json.dumps(wanted)})")
    assert page.run("!app.game.start || app.data.tokens[app.game.text[app.game.start - 1]] === ' '")
    for key in (wrong, wrong, wanted):
        page.press(key)
    assert page.run("app.game.ranks") == [2]
    page.run("for (let i = 0; i < 30; i++) reveal()")
    assert page.run("app.game.ranks.length") == 31
    name = page.run("app.slots[0]")
    # The model's bits are those of a text that it reads from the beginning of the passage.
    expected = page.run(f"""(() => {{
      const {{text, start, place}} = app.game, reading = new Reading(app.byName.get("{name}"));
      for (const id of text.slice(start, place)) reading.append(id);
      return reading.bits.slice(CONTEXT);
    }})()""")
    assert page.run(f"app.game.bits['{name}']") == expected
    assert page.run("find('scores').rows.length") == 1 + len(page.run("app.slots"))
    # What is to be guessed is hidden: only what comes before it is shown.
    before = "Array.from(app.game.text.slice(app.game.start, app.game.place), id => app.data.tokens[id]).join('')"
    assert page.run("find('context').textContent") == page.run(before) + "?"


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_everything_has_a_label_and_nothing_overflows(project: Layout, browser: Browser, width: int) -> None:
    browser.resize(width, 800, dark=True, still=True)
    open_page(browser, project.playground)
    assert browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    # The text of the chart is as large as the rest, and the results of models begin at the same height.
    assert browser.run("find('chart').viewBox.baseVal.width === find('chart').getBoundingClientRect().width")
    tops = browser.run("app.views.map(view => view.score.getBoundingClientRect().top)")
    assert len(set(tops)) == (1 if width > 1000 else 3)
    unnamed = browser.run("""[...document.querySelectorAll("input, select, textarea, button, canvas, svg")]
      .filter(one => !one.labels?.length && !one.textContent.trim() && !one.getAttribute("aria-label"))
      .map(one => one.outerHTML)""")
    assert unnamed == []
    headings = browser.run("[...document.querySelectorAll('h1, h2, h3')].map(one => one.tagName)")
    assert headings == ["H1"] + ["H2"] * 6
    # With reduced motion, text is written at once.
    assert browser.run("isStill()")
    browser.run("app.views[0].text.focus()")
    browser.press("ArrowRight")
    assert browser.run("find('bits').textContent").count("bits") >= 2
    browser.resize(1280, 900)


def sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_the_pages_own_script_and_style_only(project: Layout) -> None:
    text = project.playground.read_text(encoding="utf-8")
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts, styles = (re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))
    allowed = [" ".join(f"'sha256-{sha256(code)}'" for code in codes) for codes in (styles, scripts)]
    assert [html.unescape(found) for found in policy] == [
        f"default-src 'none'; style-src {allowed[0]}; script-src {allowed[1]}; base-uri 'none'; form-action 'none'"
    ]
    assert "unsafe" not in policy[0]
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]  # a name, not an address
    assert re.search("<noscript>.*JavaScript.*</noscript>", text)
    # The name of the corpus is data, whatever is in it.
    assert text.count("</script>") == text.count("<script")
    assert "<b>sea" not in text


def test_the_largest_networks_are_left_out_or_in_half_precision_so_that_the_page_is_small_enough() -> None:
    # Bytes in single precision, and at least: small 400, 200; even 800, 600; large 1200, 600.
    sizes = {"even": (200, 3), "large": (300, 2), "small": (100, 2)}
    expected = {
        2400: {"small": 4, "even": 4, "large": 4},
        2399: {"small": 4, "even": 4, "large": 2},
        1799: {"small": 4, "even": 3, "large": 2},
        1400: {"small": 2, "even": 3, "large": 2},
        1399: {"small": 4, "even": 4},
        0: {},
    }
    assert {budget: playground._precisions(sizes, budget) for budget in expected} == expected


def test_what_the_page_leaves_out_is_named(project: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def left_out() -> dict[str, str]:
        found = re.search('id="data">(.*?)</script>', build_playground(project, "x"), re.DOTALL)
        assert found
        all_of_them = {one["name"]: one["why"] for one in json.loads(found[1])["leftOut"]}
        return {name: why for name, why in all_of_them.items() if name not in unknown}

    unknown = {f"n-grams, {method.smoothing}" for method in SMOOTHINGS} - {f"n-grams, {name}" for name in SUPPORTED}
    assert left_out() == {"words": "reads word tokens, and this page characters"}
    monkeypatch.setattr(playground, "MAX_PAGE", 150)
    assert left_out()["n-gram models of order 2 to 3"] == "too large"
    assert re.fullmatch(r"too large \(\d\.\d MB\)", left_out()["long"])
    assert set(RUNS) <= set(left_out())


def test_the_same_models_give_the_same_page(project: Layout) -> None:
    # Weights come from their file in a random order.
    assert build_playground(project, "x") == build_playground(project, "x")
