"""Models whose names follow no pattern appear in every table, figure and sentence: nothing parses a name."""

import html
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from made_scores import network, ngram
from seqlm.core.files import read_csv, read_json, write_csv, write_json, write_text
from seqlm.core.layout import Layout
from seqlm.heldout.store import load_heldout
from seqlm.models.loading import Models
from seqlm.report.figures.plots import highlights_figure, order_figure
from seqlm.report.figures.style import model_styles, svg_text
from seqlm.report.findings import all_findings, highlights
from seqlm.report.page import build_page, build_summary, build_table
from seqlm.report.parity import empty_tables
from seqlm.score.model_info import ModelInfo
from seqlm.score.store import make_score, save_score
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
    for scores in (layout.scores_word_to_char, *map(layout.scores_of_ngrams, KINDS)):
        scores.mkdir(parents=True, exist_ok=True)
    for info, nll in SURPRISALS.items():
        save_made_up_score(layout, info, nll)
    for run in (RUN.name, OTHER.name):
        write_json(layout.config(run), {})
        history = read_csv(Layout(ROOT).reports("train", "lstm", "history.csv")).assign(run=run)
        write_csv(layout.reports("train", run, "history.csv"), history)
        write_json(layout.reports("train", run, "summary.json"), {"batch_reduced": False})
    succeeded(in_this_process(folder)("evaluate"))
    for name in re.findall(r'figure\("([\w-]+)"', (ROOT / "src/seqlm/report/templates/page.html").read_text()):
        write_text(layout.figure(name), "<svg></svg>")
    return layout


def save_made_up_score(layout: Layout, info: ModelInfo, nll: float) -> None:
    """Save surprisals of about ``nll`` on average; the models disagree about which tokens are difficult."""
    rng = np.random.default_rng(len(info.name))
    texts = load_heldout(layout.heldout(info.token)).texts()
    surprisals = {
        split: (ON_TEST.get(info, nll) if split == "test" else nll) * rng.uniform(0.2, 1.8, text.num_scored)
        for split, text in texts.items()
        if split != "train" or not info.dynamic
    }
    metadata = {"positions": [2.0, 1.5], "calibration": [(0.5, 0.5, 100)]} if info.token == "char" else {}
    if info.dynamic:
        metadata = {"choices": {"dynamic_lr": 0.1}}
    folder = layout.scores_of_ngrams(info.token)
    if info.counted_token != info.token:
        folder = layout.scores_word_to_char
    if info.family == "network":
        folder = layout.scores_of_run(info.members[0] if info.dynamic else info.name)
    save_score(folder / info.name, make_score(info, surprisals, texts, metadata))


@pytest.fixture(scope="module")
def table(layout: Layout) -> pd.DataFrame:
    return read_csv(layout.reports("evaluate", "table.csv"))


def test_the_main_table_and_the_histories(layout: Layout, table: pd.DataFrame) -> None:
    rows = table.set_index("model")
    for info in SURPRISALS:
        assert rows.loc[info.name, ["family", "dynamic"]].tolist() == [info.family, info.dynamic]
    assert rows.loc[MIXTURE, "members"] == "kneser-ney.dynamic char-absolute-3"
    assert set(read_csv(layout.reports("evaluate", "history.csv"))["run"]) == {RUN.name, OTHER.name}


def test_headlines_and_choices(layout: Layout, table: pd.DataFrame) -> None:
    reports = layout.reports("evaluate")
    headline = read_json(reports / "best" / "ngram.json")
    assert headline["test_bits"] == table.set_index("model").loc[ABSOLUTE.name, "test_bits"]
    assert f"weight of {ABSOLUTE.name} in {MIXTURE}" in read_json(reports / "choices.json")


def test_passages_and_diagnostics(layout: Layout) -> None:
    passages = read_json(layout.passages)
    # Networks, mixtures, and the best n-gram model over each kind of token.
    infos = (RUN, RUN.as_dynamic(), OTHER, ABSOLUTE, WORDS, SUBWORDS)
    assert set(passages) >= {MIXTURE, *(info.name for info in infos)}
    assert PLAIN.name not in passages
    for table in ("positions", "classes", "calibration"):
        models = set(read_csv(layout.reports("evaluate", f"{table}.csv"))["model"])
        assert models == {RUN.name, ABSOLUTE.name, PLAIN.name, READ.name, LUCKY.name}, table


def test_the_highlights_have_the_best_model_of_each_kind(table: pd.DataFrame) -> None:
    shown = highlights(table)["model"].tolist()
    assert set(shown) >= {ABSOLUTE.name, READ.name, PLAIN.name}
    assert SUBWORDS.name not in shown  # there is a model over words that is read as one over characters
    assert WORDS.name not in shown  # it need not predict spaces
    assert len(shown) == len(set(shown))
    assert shown == [model for model in table["model"] if model in shown]


def test_figures(layout: Layout, table: pd.DataFrame) -> None:
    comparison = svg_text(highlights_figure(highlights(table)))
    assert all(f">{html.escape(label, quote=False)}</text>" in comparison for label in highlights(table)["label"])
    orders = read_csv(layout.reports("evaluate", "orders.csv"))
    assert orders[["token", "smoothing", "order"]].to_numpy().tolist() == [
        ["char", "absolute", 3], ["char", "lucky", 5], ["subword", "laplace", 1], ["word", "backoff", 2],
    ]  # fmt: skip
    drawn = svg_text(order_figure(orders, table, model_styles(table)))
    for label in ("char absolute", "word backoff (without separators)", "subword laplace", RUN.name):
        assert f">{label}</text>" in drawn


def test_a_colour_means_one_kind_of_model(table: pd.DataFrame) -> None:
    styles = model_styles(table)
    assert set(styles) == set(table["model"])
    assert styles[RUN.name].color == styles[RUN.name + "+dynamic"].color
    ngrams = {styles[info.name].color for info in (ABSOLUTE, WORDS, SUBWORDS, READ)}
    kinds = [styles[name].color for name in (RUN.name, OTHER.name, MIXTURE, PLAIN.name)]
    assert len({*ngrams, *kinds}) == 1 + len(kinds)
    assert styles[ABSOLUTE.name] != styles[READ.name]


def test_the_page(layout: Layout, table: pd.DataFrame) -> None:
    page = build_page(layout, "Models", empty_tables())
    rows = re.findall(r'<th scope="row">([^<]+) <small>([^<]+)</small></th>', page)
    assert rows == list(table[["label", "model"]].itertuples(index=False, name=None))
    # Models that keep learning, and those that predict only words, come last, under headings of their own.
    for group, heading in ((table["dynamic"] & ~table["only_words"], "Still learning"), (table["only_words"], "Words")):
        before = page[: page.index(f'scope="rowgroup">{heading}')].count('<th scope="row">')
        assert table.index[group].tolist() == list(range(before, before + group.sum())), heading
        assert group.any()
    best_of_each = re.search(r"The best of each on test:(.*?)</figcaption>", page, re.DOTALL)
    assert best_of_each is not None
    assert re.findall(r"([\w-]+) \d\.\d{3}", best_of_each[1]) == [LUCKY.name, ABSOLUTE.name, SUBWORDS.name, WORDS.name]
    assert f'data-model="{ABSOLUTE.name}"' in page
    assert all(finding in page for finding in all_findings(layout).values())


def test_the_same_model_is_named_first_everywhere(layout: Layout, table: pd.DataFrame) -> None:
    # A model that keeps learning is better on val and on test, and another one on test.
    rows = table.set_index("model")
    best, learning, lucky = rows.loc[MIXTURE], rows.loc[f"{RUN.name}+dynamic"], rows.loc[LUCKY.name]
    assert learning["val_bits"] < best["val_bits"] < lucky["val_bits"]
    assert lucky["test_bits"] < best["test_bits"] > learning["test_bits"]
    page, chart = build_page(layout, "Models", empty_tables()), svg_text(highlights_figure(highlights(table)))
    labels = set(highlights(table)["label"])
    # How far each label is from the top.
    found = re.findall(r'y="([\d.]+)"[^>]*>([^<]+)</text>', chart)
    heights = {text: float(y) for y, text in reversed(found)}  # the legend comes last
    plots = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]["evaluate"]["plots"]
    drawn = next(how for entry in plots for path, how in entry.items() if path.endswith("/table.csv"))
    template = json.loads((ROOT / ".dvc" / "plots" / f"{drawn['template']}.json").read_text())
    named = {
        "sentence": re.findall('class="answer">Best on val: (.+?), with', page)[0],
        "chart": min(labels, key=heights.__getitem__),
        "table of the page": re.findall('<th scope="row">(.+?) <small>', page)[0],
        "table.txt": build_table(layout).splitlines()[1].split("  ")[0],
        "terminal": build_summary(layout).splitlines()[1].split("  ")[0],
        "plots": table[drawn["y"]].iloc[0] if template["encoding"]["y"]["sort"] is None else "",
        "notebook": Models(layout).table["label"].iloc[0],
    }
    assert named == dict.fromkeys(named, best["label"])
    assert labels <= set(heights)


def test_page_and_table_say_first_that_the_sample_replaced_the_corpus(layout: Layout) -> None:
    record = read_json(layout.corpus_record)
    assert build_table(layout).startswith("model ")
    replaced = {"name": "sample", "requested": "time_machine", "fallback": True, "reason": "no source can be reached"}
    write_json(layout.corpus_record, record | replaced)
    page, table = build_page(layout, "Models", empty_tables()), build_table(layout)
    write_json(layout.corpus_record, record)
    said = re.sub(r"\s+", " ", table[: table.index("\nmodel ")])
    assert said.startswith("This is not the corpus that was asked for: no source can be reached, so")
    assert said.strip() in page[: page.index("<nav")]
    assert all(part in said for part in ("time_machine", "SEQLM_DATA_DIR", "make repro", "make restore"))
