"""The benchmarks of curves and of the search of settings, on the sample with tiny networks."""

import math
from collections.abc import Iterator
from pathlib import Path

import curves
import pytest
import transformer_search

from seqlm.core.files import read_csv
from smoke import ROOT


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[curves.Corpus]:
    """The sample, prepared as the book is, with one small network."""
    source = curves.CORPORA["time_machine"]._replace(file="sample.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLM_DATA_DIR", str(ROOT / "data"))
        patch.setattr(curves, "NETWORKS", {"lstm": {"num_epochs": 3}})
        prepared = curves.prepare(source, tmp_path_factory.mktemp("curves"))
        prepared.runs = {"lstm": {"model": "gru", "num_hiddens": 4, "batch_size": 4, "num_steps": 10}}
        yield prepared


def test_rows_of_one_size(corpus: curves.Corpus) -> None:
    found = list(curves.data_rows(corpus, 5000, {*curves.COMPARED["data"]}))
    assert {what for what, _ in found} == {"data"}
    rows = [row for _, rows in found for row in rows]
    assert [row["model"] for row in rows] == [curves.CHARACTERS, curves.WORDS, "lstm", curves.MIXTURE]
    assert [row["family"] for row in rows] == ["ngram", "ngram", "network", "mixture"]
    assert {row["train_chars"] for row in rows} == {5000}
    # Better than any of the characters, equally likely; the weights of the mixture are those that val likes best.
    assert all(0 < row["test_bits"] < math.log2(len(corpus.vocab)) for row in rows)
    *members, mixture = (row["val_bits"] for row in rows)
    assert mixture <= min(members)
    assert rows[2]["chosen"] in {"epoch 1", "epoch 2", "epoch 3"}


def test_a_training_on_all_of_train_gives_a_curve_against_time(corpus: curves.Corpus) -> None:
    (_, [row]), (what, rows) = curves.data_rows(corpus, len(corpus.train), {"lstm"})
    assert (row["model"], what) == ("lstm", "time")
    assert [row["tokens"] // rows[0]["tokens"] for row in rows] == [1, 2, 3]
    assert 0 < rows[0]["seconds"] < rows[1]["seconds"] < rows[2]["seconds"]


def test_rows_are_added_in_order_and_never_twice(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [{"corpus": "a", "model": "m", "train_chars": size, "bits": size / 7} for size in (10_000, 9_000, 80_000)]
    for row in [*rows, rows[0] | {"bits": 0.0}]:
        curves.add(path, [row])
    assert read_csv(path)["train_chars"].tolist() == [9_000, 10_000, 80_000]
    assert read_csv(path)["bits"].min() > 0
    assert curves.known(path) == {("a", "m", "9000"), ("a", "m", "10000"), ("a", "m", "80000")}


@pytest.mark.slow
def test_a_search_chooses_on_val_and_continues(
    corpus: curves.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model, settings in transformer_search.FIRST.items():
        found = transformer_search.planned(model)
        assert (len({*map(str, found)}), tuple(found[0].values())) == (12, settings)
    path, first, kinds = tmp_path / "x.csv", (1e-6, 1, 32, 0.0, 16, False), ("lstm", "transformer")
    grid = ((0.01, 1e-6), *((value,) for value in first[1:]))
    changes = {"RESULTS": path, "FIRST": dict.fromkeys(kinds, first), "GRID": dict.fromkeys(kinds, grid)}
    for name, value in (
        changes | {"NUM_SETTINGS": 2, "ROUNDS": 2, "SECONDS_OF_ROUND": 0.01, "MAX_TOKENS": 100_000}
    ).items():
        monkeypatch.setattr(transformer_search, name, value)
    transformer_search.search(corpus, 0.05, 0.1, 2)
    rows = read_csv(path)
    # Setting 1 hardly learns; setting 2 does.
    assert rows["stage"].tolist() == ["longer"] + ["search"] * 4 + ["seeds"] * 8
    assert rows["setting"].tolist() == [2] + [1, 2] * 2 + [1, 1, 2, 2] * 2
    assert (rows["test_bits"].isna() == (rows["stage"] == "search")).all()
    assert rows["val_bits"].notna().all()
    written = path.read_bytes()
    transformer_search.search(corpus, 0.05, 0.1, 2)
    assert path.read_bytes() == written
