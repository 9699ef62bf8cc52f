"""The benchmark that writes the curves of the page, on the sample with a tiny network."""

import math
from pathlib import Path

import curves
import pytest

from smoke import ROOT


@pytest.mark.slow
def test_rows_of_one_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLM_DATA_DIR", str(ROOT / "data"))
    monkeypatch.setattr(curves, "NETWORKS", {"lstm": {"num_epochs": 3}})
    corpus = curves.prepare(curves.CORPORA["time_machine"]._replace(file="sample.txt"), tmp_path)
    corpus.runs = {"lstm": {"model": "gru", "num_hiddens": 4, "batch_size": 4, "num_steps": 10}}
    rows = [row for _, rows in curves.data_rows(corpus, 5000, {*curves.COMPARED["data"]}) for row in rows]
    assert [row["model"] for row in rows] == [curves.CHARACTERS, curves.WORDS, "lstm", curves.MIXTURE]
    # Better than any of the characters, equally likely; the weights of the mixture are those that val likes best.
    assert all(0 < row["test_bits"] < math.log2(len(corpus.vocab)) for row in rows)
    *members, mixture = (row["val_bits"] for row in rows)
    assert mixture <= min(members)
