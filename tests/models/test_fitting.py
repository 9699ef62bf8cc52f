"""n-gram models that are trained, made smaller, saved and exchanged from Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from seqlm.models.fixed_ngrams import FixedNGram

import seqlm
from disks import fill, mounted
from reference import clean_line
from seqlm.core.errors import DataError, MachineError, SeqlmError
from smoke import ROOT

STORY = [clean_line(line) for line in (ROOT / "data" / "sample.txt").read_text(encoding="utf-8").splitlines()]
TRAIN, TEST = "\n".join(STORY[:200]), "\n".join(STORY[200:260])


@pytest.fixture(scope="module")
def words() -> FixedNGram:
    return seqlm.fit_ngram(TRAIN)


def test_three_lines_train_a_model_like_all_others(words: FixedNGram) -> None:
    assert repr(words) == "<word-kneser-ney-3: ngram over word tokens>"
    assert words.score(TEST).perplexity < seqlm.fit_ngram(TRAIN, 1).score(TEST).perplexity
    table = words.surprisals(TEST, by="word")
    assert table["text"].tolist() == TEST.split()
    assert len(words.generate("the", 5, seed=1).split()) == 5
    characters = seqlm.fit_ngram(iter(STORY[:200]), 4, "char", normalise="letters")
    assert characters.score(TEST.upper()).bits_per_character == characters.score(TEST).bits_per_character < 3
    laplace = seqlm.fit_ngram(STORY[:200], 2, smoothing="laplace", epsilon=3, min_freq=2)
    assert laplace.name == "word-laplace-2"
    assert laplace.reader().next_probs is not None
    assert len(laplace.vocab) < len(words.vocab)


@pytest.mark.parametrize("prune", [[], [0, 0, 1], [0, 1]])
def test_kenlm_finds_the_same_perplexity(words: FixedNGram, prune: list[int], tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    model = words.pruned(prune)
    model.to_arpa(tmp_path / "model.arpa")
    scores = kenlm.Model(str(tmp_path / "model.arpa")).full_scores(" ".join(TEST.split()), bos=False, eos=False)
    # The first word is not scored here.
    decimals = [decimal for decimal, _, _ in scores][1:]
    assert model.score(TEST).perplexity == pytest.approx(10 ** -np.mean(decimals), rel=2e-4)


def test_a_smaller_model_costs_bits_and_takes_less_space(words: FixedNGram, tmp_path: Path) -> None:
    models = {"whole": words, "pruned": words.pruned([0, 0, 1]), "bigrams": words.pruned(order=2)}
    sizes, bits = {}, {}
    for name, model in models.items():
        model.to_arpa(tmp_path / f"{name}.arpa")
        sizes[name], bits[name] = (tmp_path / f"{name}.arpa").stat().st_size, model.score(TEST).bits_per_character
        assert model.score(STORY[200:203]) == [model.score(line) for line in STORY[200:203]]
    assert sizes["whole"] > 1.3 * sizes["pruned"]
    assert sizes["whole"] > 1.3 * sizes["bigrams"]
    assert bits["pruned"] != bits["whole"] != bits["bigrams"]
    assert [model.name for model in models.values()] == [
        "word-kneser-ney-3",
        "word-kneser-ney-pruned-3",
        "word-kneser-ney-2",
    ]


@pytest.mark.parametrize("change", ["whole", "pruned", "bigrams", "laplace"])
def test_a_saved_model_is_opened_as_any_other(words: FixedNGram, change: str, tmp_path: Path) -> None:
    model = {
        "whole": lambda: words,
        "pruned": lambda: words.pruned([0, 0, 1]),
        "bigrams": lambda: words.pruned(order=2),
        "laplace": lambda: seqlm.fit_ngram(TRAIN, 3, "char", "laplace"),
    }[change]()
    model.save(tmp_path / "saved")
    models = seqlm.open(tmp_path / "saved")
    assert list(models) == [model.name]
    assert models[model.name].score(TEST) == model.score(TEST)
    # The text itself is not stored.
    assert not [path for path in (tmp_path / "saved").rglob("*") if path.name.startswith("train")]
    with pytest.raises(SeqlmError, match="exists"):
        model.save(tmp_path / "saved")
    (tmp_path / "saved" / "data" / "corpus" / model.vocab.kind / "vocab.json").write_text("{}")
    with pytest.raises(DataError, match=r"vocab\.json"):
        seqlm.open(tmp_path / "saved")


def test_a_model_can_be_saved_again_when_a_full_disk_has_space(words: FixedNGram, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs") as disk:
        filler = fill(disk)
        with pytest.raises(MachineError, match="No space left on device"):
            words.save(disk / "saved")
        filler.unlink()
        words.save(disk / "saved")
        assert seqlm.open(disk / "saved")[words.name].score(TEST) == words.score(TEST)
        assert {path.name for path in (disk / "saved").iterdir()} == {"data", "export.json"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"order": 0}, "order"),
        ({"by": "subword"}, "by"),
        ({"smoothing": "kneser-ney"}, "smoothing"),
        ({"normalise": "lower"}, "normalise"),
        ({"min_freq": 0}, "min_freq"),
        ({"min_freq": 9}, "^fit_ngram: min_freq = 9: no word of the texts occurs so often: lower it"),
        ({"unknown": None}, "unknown"),
        ({"epsilon": -1}, "epsilon"),
        ({"texts": 3}, "must be a string or several, not int"),
        ({"texts": b"the sea"}, "must be a string or several, not bytes"),
        ({"texts": pd.DataFrame({"a": ["the sea"]})}, "must be a string or several, not DataFrame"),
        ({"texts": [b"x"]}, "must be a string, not bytes"),
        ({"texts": []}, "fewer than 3 words: give more text, not the name of a file"),
        ({"texts": "a b"}, "fewer than 3 words"),
        ({"texts": "a b c \ud800"}, "half a character"),
    ],
)
def test_wrong_arguments_are_errors_of_one_line(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SeqlmError, match=complaint) as found:
        seqlm.fit_ngram(**{"texts": "the sea came in", **arguments})
    assert "\n" not in str(found.value)


def test_what_only_kneser_ney_can_is_refused_for_others(words: FixedNGram, tmp_path: Path) -> None:
    laplace = seqlm.fit_ngram(TRAIN, smoothing="laplace")
    with pytest.raises(SeqlmError, match="only a Kneser-Ney model"):
        laplace.pruned([0, 1])
    with pytest.raises(SeqlmError, match="only Kneser-Ney models"):
        laplace.to_arpa(tmp_path / "x.arpa")
    with pytest.raises(SeqlmError, match="not pruned before"):
        words.pruned([0, 0, 1]).pruned([0, 0, 2])
