"""Models whose names follow no pattern appear in every table, figure and sentence: nothing parses a name."""

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from browsers import CHROMIUM, Browser
from made_scores import network, ngram
from seqlm.core.files import read_csv, read_json, write_csv, write_json, write_text
from seqlm.core.layout import Layout
from seqlm.models.info import ModelInfo
from seqlm.pipeline.report.book_comparison import empty_tables
from seqlm.pipeline.report.captions import caption_facts
from seqlm.pipeline.report.drawing import draw_curves, draw_models
from seqlm.pipeline.report.figures.charts import highlights_figure
from seqlm.pipeline.report.figures.plots import read_plots
from seqlm.pipeline.report.figures.style import model_styles, svg_text
from seqlm.pipeline.report.findings import all_findings, chart_rows
from seqlm.pipeline.report.formats import unbroken
from seqlm.pipeline.report.main_table import CELLS, read_main_table
from seqlm.pipeline.report.page import build_page, build_summary, choose_samples
from seqlm.pipeline.report.passages import align
from seqlm.pipeline.report.rendering import environment
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.ngrams import Folds
from seqlm.pipeline.score.scores import make_scores, save_scores
from seqlm.vocab.kinds import KINDS
from small_runs import write_models
from smoke import ROOT
from stages_by_hand import in_this_process, prepare, succeeded

ABSOLUTE = ngram("char-absolute-3", smoothing="absolute", order=3)
WORDS = ngram("zebra", "word", smoothing="backoff", order=2)
PLAIN = ngram("uniform-7", smoothing="uniform", order=0)
SUBWORDS = ngram("kneser-ney", "subword", smoothing="laplace", order=1)
READ = ngram("lstm-6", counted_token="word", order=4)
LUCKY = ngram("lucky", smoothing="lucky", order=5)
RUN, OTHER = network("kneser-ney.dynamic"), network("uniform", "word", network="gru")
SURPRISALS = {
    ABSOLUTE: 0.5, WORDS: 6.0, PLAIN: 3.0, SUBWORDS: 5.0, READ: 0.6, RUN: 0.5, RUN.as_dynamic(): 0.3, OTHER: 7.0,
    LUCKY: 2.0,
}  # fmt: skip
ON_TEST = {LUCKY: 0.2}
"""Where val and test disagree."""
NO_BOOK = empty_tables()
MIXTURE = "kneser-ney.dynamic+char-absolute-3"


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A folder with scores of made-up models, after the stage evaluate, and all other reports of the project."""
    folder = prepare(tmp_path_factory.mktemp("made-up"))
    shutil.copytree(ROOT / "reports", folder / "reports")
    shutil.copytree(ROOT / "benchmarks" / "results", folder / "benchmarks" / "results")
    shutil.rmtree(folder / "reports" / "evaluate")
    layout = write_models(folder)
    layout.config("small").unlink()
    for scores in map(layout.scores_of_ngrams, KINDS):
        scores.mkdir(parents=True, exist_ok=True)
    Folds(bits=[], test_blocks=[]).write(layout.folds)
    for info in SURPRISALS:
        save_made_up_score(layout, info)
    for run in (RUN.name, OTHER.name):
        write_json(layout.config(run), {"grad_clip": 1.0})
        history = read_csv(Layout(ROOT).reports("train", "lstm", "history.csv")).assign(run=run)
        write_csv(layout.reports("train", run, "history.csv"), history)
        write_json(layout.reports("train", run, "summary.json"), {})
    succeeded(in_this_process(folder)("evaluate"))
    for name in re.findall(r'figure\("([\w-]+)"', (ROOT / "src/seqlm/pipeline/report/templates/page.html").read_text()):
        write_text(layout.figure(name), "<svg></svg>")
    return layout


def save_made_up_score(layout: Layout, info: ModelInfo) -> None:
    """Save surprisals with about the mean of SURPRISALS; the models disagree about which tokens are difficult."""
    rng = np.random.default_rng(len(info.name))
    texts = Heldout(layout, info.token).streams
    surprisals = {
        split: (ON_TEST if split == "test" else SURPRISALS).get(info, SURPRISALS[info])
        * rng.uniform(0.2, 1.8, len(text.spelling))
        for split, text in texts.items()
        if split != "train" or not info.dynamic
    }
    metadata: dict[str, object] = {"positions": [2.0, 1.5]} if info.token == "char" else {}
    if info.dynamic:
        metadata = {"choices": {"dynamic_lr": 0.1, "dynamic_decay": 0.0}}
    of_run = layout.scores_of_run(info.members[0] if info.dynamic else info.name)
    folder = of_run if info.family == "network" else layout.scores_of_ngrams(info.counted_token or info.token)
    save_scores(folder / info.name, make_scores(info, surprisals, texts, metadata))


@pytest.fixture(scope="module")
def table(layout: Layout) -> pd.DataFrame:
    return read_main_table(layout)


def test_figures(layout: Layout, table: pd.DataFrame) -> None:
    drawn = {name: svg_text(figure) for name, figure in draw_models(layout, read_plots(ROOT / "dvc.yaml"))}
    comparison = drawn["evaluate-highlights"]
    assert all(f">{html.escape(label, quote=False)}</text>" in comparison for label in chart_rows(table)["label"])
    for label in ("characters, Absolute", "words, Backoff", "subwords, Laplace"):
        assert f">{label}</text>" in drawn["evaluate-orders"]
    # Text has the colour of the page, and a colour means one kind of model.
    assert set(re.findall('<text[^>]* fill="([^"]*)"', "".join(drawn.values()))) == {"currentColor"}
    styles = model_styles(table)
    assert set(styles) == set(table["model"])
    assert styles[RUN.name].color == styles[RUN.name + "+dynamic"].color
    ngrams = {styles[info.name].color for info in (ABSOLUTE, SUBWORDS, READ)}
    assert len({*ngrams, *(styles[name].color for name in (RUN.name, MIXTURE, PLAIN.name))}) == 4
    assert styles[ABSOLUTE.name] != styles[READ.name]


def test_the_page(layout: Layout, table: pd.DataFrame) -> None:
    page = build_page(layout, NO_BOOK)
    rows = re.findall(r'<th scope="row">([^<]+) <small>([^<]+)</small></th>', page)
    assert rows == list(table[["label", "model"]].itertuples(index=False, name=None))
    # Models that keep learning come last, under a heading of their own.
    before = page[: page.index('scope="rowgroup"><span>Still learning')].count('<th scope="row">')
    assert table.index[table["dynamic"]].tolist() == list(range(before, len(table)))
    for template, facts in (("captions", caption_facts(layout, table)), ("findings", all_findings(table))):
        macros = environment().get_template(f"{template}.html").module
        for macro, fact in facts.items():
            assert unbroken(getattr(macros, macro)(fact)) in page
    classes = read_csv(layout.reports("evaluate", "classes.csv"))
    letter = classes[classes["token_class"] == "first letter"].set_index("model")
    cells = page[page.index('<th scope="row">first letter</th>') :].partition("</tr>")[0]
    assert f"<td>{letter.loc[ABSOLUTE.name, 'bits']:.2f}</td>" in cells
    assert "the risk of any wrong verdict is 5&nbsp;%" in page
    # It loads nothing, and works with a screen reader.
    assert not re.search(r'\b(?:src|href|action)="[^"]*//|unsafe|<[^>]* style=', page)
    assert page.count("<svg") == len(re.findall('<svg role="img" aria-label="[^"]', page)) > 10
    assert re.findall("<h[1-6]", page)[0] == "<h1"
    assert page.count("<h1") == 1
    ids = re.findall(r'<[^>]*\bid="([^"]+)"', page)
    assert set(re.findall('<a [^>]*href="#([^"]+)"', page)) <= set(ids)
    assert len(ids) == len(set(ids))


def test_the_first_screen_has_one_sentence_under_three_models(layout: Layout, table: pd.DataFrame) -> None:
    page, passages = build_page(layout, NO_BOOK), read_json(layout.passages)
    shown = page[page.index('<div class="three"') : page.index('class="button"')]
    labels = table.set_index("model")["label"]
    # On val, the best n-gram model whose passage is kept, and the best network, which memorised most too.
    found = re.findall(r"<p><b>([\d.]+)</b> (.*?)</p><p class=\"line\">(.*?)</p>", shown)
    assert [html.unescape(name) for _, name, _ in found][:2] == [labels[RUN.name], labels[ABSOLUTE.name]]
    bits = passages[ABSOLUTE.name]["bits"]
    line = re.findall("<i[^>]*>(.)</i>", found[1][2])
    assert "".join(line) == "".join(passages[ABSOLUTE.name]["tokens"])[: len(line)].replace("\n", " ")
    scored = [value for value in bits[: len(line)] if value is not None]
    assert float(found[1][0]) == pytest.approx(sum(scored) / len(scored), abs=0.006)
    # The network is an LSTM; what no number says is not asked.
    assert "What are LSTMs, trigrams and Kneser-Ney smoothing?" in page
    assert "worse than guessing" not in page
    assert "PPMd" not in page


def test_samples_are_of_three_models_and_one_prefix_from_the_lowest_temperature(table: pd.DataFrame) -> None:
    best = table["model"].iloc[0]
    written = [(model, "a", t) for model in (PLAIN.name, ABSOLUTE.name, READ.name, best) for t in (0.0, 1.0, 0.5)]
    samples = [dict(zip(("model", "prefix", "temperature"), one, strict=True)) for one in (*written, (best, "b", 0.0))]
    found = choose_samples(samples, chart_rows(table))
    assert next(iter(found)) == best
    assert [[one["temperature"] for one in of_model] for of_model in found.values()] == [[0, 0.5, 1]] * 3


def test_the_page_of_an_own_text_leaves_out_what_is_about_others(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = read_json(layout.corpus_record)
    own = {"name": "my.txt", "description": "your file, 150,000 bytes", "licence": "", "bytes": 150_000}
    write_json(layout.corpus_record, record | own)
    page = build_page(layout, NO_BOOK)
    drawn = list(draw_curves(layout, {}))
    write_json(layout.corpus_record, record)
    assert drawn == []
    assert "The text: my.txt, your file, 150,000 bytes. " in page
    for part in ('id="curves"', 'id="book"', "Tiny Shakespeare"):
        assert part not in page, part
    monkeypatch.setattr("seqlm.pipeline.report.page.MAX_RUNS", 0)
    of_book = build_page(layout, NO_BOOK)
    for part in ("The text: The Time Machine by", 'id="curves"', "The other 2 runs are in"):
        assert part in of_book, part


def page_with(layout: Layout, path: Path, **changes: object) -> str:
    """Return the page after changes of a report, which is then as before."""
    before = read_json(path)
    write_json(path, before | changes)
    page = build_page(layout, NO_BOOK)
    write_json(path, before)
    return page


def test_what_a_reader_should_know_about_the_text_is_at_the_top(layout: Layout) -> None:
    before = build_page(layout, NO_BOOK)
    assert not [said for said in ("dropped", "Read these results with care") if said in before]
    summary = layout.reports("preprocess", "summary.json")
    top = page_with(layout, summary, warnings=["16.5% of the letters are not A-Z"]).partition("<main")[0]
    assert "16.5 % of the letters are not A-Z." in top
    warning = "30.0% of the words of val are unknown: val may hold other text"
    top = page_with(layout, layout.reports("vocab", "word", "summary.json"), warnings=[warning]).partition("<main")[0]
    assert "<li>30.0 % of the words of val are unknown: val may hold other text.</li>" in top
    replaced = {"name": "sample", "requested": "time_machine", "fallback": True, "reason": "no source can be reached"}
    top = page_with(layout, layout.corpus_record, **replaced).partition("<main")[0]
    for part in ("not the corpus that was asked for: no source", "time_machine", "SEQLM_DATA_DIR", "make restore"):
        assert part in top


@pytest.fixture(scope="module")
def browser(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    write_text(layout.page, build_page(layout, NO_BOOK))
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        found.open(layout.page)
        yield found
        assert found.problems() == []
        assert found.requests() == [layout.page.resolve().as_uri()]


def test_a_column_is_sorted_by_its_values_within_its_group(browser: Browser, table: pd.DataFrame) -> None:
    headings = browser.run("[...document.querySelectorAll('.sortable thead th')].map(head => head.textContent)")
    assert headings == list(CELLS)
    shown = "[...document.querySelectorAll('.sortable tbody:not(.group)')].map(body => [...body.rows].map("
    shown += "row => row.querySelector('small').textContent))"
    sorted_by = {"test": ("test_bits", 2), "to best": ("best_difference", 3), "train characters": ("train_chars", 0)}
    for heading, (name, digits) in sorted_by.items():
        of_model = table.set_index("model")[name].astype(float).round(digits)  # as they are shown
        for rising in (True, False):
            browser.run(f"document.querySelectorAll('.sortable thead button')[{headings.index(heading)}].click()")
            for dynamic, models in zip((False, True), browser.run(shown), strict=True):
                assert sorted(models) == sorted(table["model"][table["dynamic"] == dynamic])
                found = of_model[models].tolist()
                # Empty cells come last.
                expected = sorted(found, key=lambda value: (np.isnan(value), value if rising else -value))
                assert found == pytest.approx(expected, nan_ok=True), (name, rising)


def test_pointing_at_a_character_shows_its_bits_and_moves_nothing(browser: Browser, layout: Layout) -> None:
    passages = align(read_json(layout.passages))
    tops = "[...document.querySelectorAll('.passage')].map(one => one.getBoundingClientRect().top)"
    before = browser.run(tops)
    browser.run("document.querySelectorAll('.passage i')[6].dispatchEvent(new Event('pointerover', {bubbles: true}))")
    assert browser.run(tops) == before
    lines = browser.run("[...document.getElementById('bits').children].map(line => line.textContent)")
    chosen = browser.run("['model', 'other'].map(id => document.getElementById(id).value)")
    assert chosen[0] != chosen[1]
    for model, line in zip(chosen, lines[1:], strict=True):
        assert line.startswith(f"{passages['models'][model][6]:.1f} bits"), (model, line)
    # The slider moves by keyboard.
    browser.run("document.getElementById('place').focus()")
    browser.press("ArrowRight")
    begins = {" ": "space"}.get(passages["text"][7], f"“{passages['text'][7]}”")
    assert browser.run("document.getElementById('bits').textContent").startswith(begins)


def test_two_models_are_shown_side_by_side_or_by_their_difference(browser: Browser) -> None:
    shown = "[...document.querySelectorAll('.views > div')].filter(view => !view.hidden).map(view => view.textContent)"
    assert len(browser.run(shown)) == 2
    browser.run("document.getElementById('difference').click()")
    (difference,) = browser.run(shown)
    assert " minus " in difference
    classes = "[...new Set([...document.querySelectorAll('.views i')].map(i => i.className[0]))]"
    assert set(browser.run(classes)) >= {"a", "b"}
    other = "document.getElementById('other')"
    browser.run(f"{other}.value = ''; {other}.dispatchEvent(new Event('change'))")
    assert len(browser.run(shown)) == 1
    for width in (390, 1280):
        browser.resize(width, 900)
        assert browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    # On paper everything is open but the samples of all models but one.
    closed = "[...document.querySelectorAll('details:not([open]) > :last-child')].filter(one => !one.checkVisibility())"
    assert browser.run(f"{closed}.length") > 5
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run(f"{closed}.filter(one => !one.closest('#samples')).length") == 0
    browser.call("Emulation.setEmulatedMedia", media="")


def test_the_same_model_is_named_first_everywhere(layout: Layout, table: pd.DataFrame) -> None:
    # A model that keeps learning is better on val and on test, and another one on test.
    rows = table.set_index("model")
    best, learning, lucky = rows.loc[MIXTURE], rows.loc[f"{RUN.name}+dynamic"], rows.loc[LUCKY.name]
    assert learning["val_bits"] < best["val_bits"] < lucky["val_bits"]
    assert lucky["test_bits"] < best["test_bits"] > learning["test_bits"]
    page, chart = build_page(layout, NO_BOOK), svg_text(highlights_figure(chart_rows(table)))
    labels = set(chart_rows(table)["label"])
    # How far each label is from the top.
    found = re.findall(r'y="([\d.]+)"[^>]*>([^<]+)</text>', chart)
    heights = {text: float(y) for y, text in reversed(found)}  # the legend comes last
    named = {
        "sentence": re.findall('class="answer">Best on the validation set: (.+?), with', page)[0],
        "chart": min(labels, key=heights.__getitem__),
        "table of the page": re.findall('<th scope="row">(.+?) <small>', page)[0],
        "terminal": build_summary(layout).splitlines()[1].split("  ")[0],
    }
    assert named == dict.fromkeys(named, best["label"])
    assert labels <= set(heights)
