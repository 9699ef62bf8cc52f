"""The cross-validation that calibrates intervals."""

from pathlib import Path

import numpy as np
import pytest

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.heldout.scored_text import Folds
from seqlm.heldout.selection import MAX_FOLDS, cross_validate, fold_bits, select_heldout
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.corpus import SPLITS, build_corpus

# One sentence again and again, except for a part without any order.
REPEATED = np.resize([1, 2, 3, 4, 2, 5], 1200)
IDS = np.concatenate([REPEATED, np.random.default_rng(0).integers(1, 6, 300), REPEATED[:300]])


def test_each_part_is_scored_by_models_of_the_rest() -> None:
    bits = list(fold_bits(IDS, 6, 300))
    assert len(bits) == 6
    model = KneserNey(count_ngrams(np.concatenate([IDS[:1200], IDS[1500:]]), 6, 5), 3)
    assert bits[4][1] == pytest.approx(token_nll(model, IDS[1200:1500]).mean() / np.log(2))
    assert min(bits[4]) > 2 > 0.5 > max(value for index in (0, 1, 2, 3, 5) for value in bits[index])


@pytest.mark.parametrize(("length", "num_folds"), [(300, 6), (310, 6), (250, 7), (30, MAX_FOLDS)])
def test_parts_are_about_as_long_as_asked_for(length: int, num_folds: int) -> None:
    assert len(list(fold_bits(IDS, 6, length))) == num_folds


def prepare(folder: Path, num_test_lines: int, max_chars: int = 10_000) -> Layout:
    layout = Layout(folder)
    layout.splits.mkdir(parents=True)
    for split, size in zip(SPLITS, (100, 10, num_test_lines), strict=True):
        layout.split(split).write_text("the sea came in\nand went out again\n" * size)
    build_corpus({split: layout.split(split) for split in SPLITS}, layout.corpus("char"), "char", " ", 0, [])
    select_heldout(layout, "char", max_chars)
    return layout


@pytest.mark.parametrize(("num_test_lines", "num_folds"), [(10, 10), (40, 5)])
def test_folds_are_as_long_as_test_and_at_least_five(num_test_lines: int, num_folds: int, tmp_path: Path) -> None:
    layout = prepare(tmp_path, num_test_lines)
    folds = cross_validate(layout)
    assert [len(bits) for bits in folds.bits] == [num_folds, num_folds]
    # About 35 characters a pair of lines, and at least 20 a block.
    assert [len(blocks) for blocks in folds.test_blocks] == [min(num_test_lines * 35 // 20, 50)] * 2
    assert Folds.load(layout.heldout("char")) == folds


@pytest.mark.parametrize(("num_test_lines", "max_chars"), [(1, 10_000), (40, 1_000)])
def test_a_short_text_and_one_that_is_scored_in_passages_have_no_folds(
    num_test_lines: int, max_chars: int, tmp_path: Path
) -> None:
    layout = prepare(tmp_path, num_test_lines, max_chars)
    assert cross_validate(layout) == Folds([], [])
    assert Folds.load(layout.heldout("char")) is None


def test_changed_folds_are_refused(tmp_path: Path) -> None:
    Folds([[1.0]], [[1.0]]).save(tmp_path)
    path = tmp_path / "folds.json"
    path.write_text(path.read_text().replace("1.0", "1.5", 1))
    with pytest.raises(DataError, match="does not match"):
        Folds.load(tmp_path)
