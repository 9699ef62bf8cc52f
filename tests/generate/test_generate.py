"""What models write, and what is said of it."""

import numpy as np
import pytest

from seqlm.core.errors import DataError
from seqlm.generate.ngram_sampling import sample_ngrams
from seqlm.generate.samples import Sample, repeated_share, samples_markdown
from seqlm.generate.writers import encode_prefix
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey
from seqlm.vocab.vocabulary import Vocab

VOCAB = Vocab("char", ["<unk>", "a", "b", "c"], [0, 3, 2, 1], "", {})


def test_an_ngram_model_writes_what_it_counted() -> None:
    counted = KneserNey(count_ngrams(np.array([1, 2, 3] * 20), 4, 3), 3)
    rng = np.random.default_rng(0)
    assert sample_ngrams(counted, [1, 2], 6, 0.0, rng) == [3, 1, 2, 3, 1, 2]
    assert 0 not in sample_ngrams(counted, [1], 200, 5.0, rng)


def test_a_character_that_the_vocabulary_lacks_is_named() -> None:
    with pytest.raises(DataError, match="the character 'Z' of the prefix is not in the vocabulary"):
        encode_prefix(VOCAB, "aZ", "error")
    assert encode_prefix(VOCAB, "aZ", "unk") == [1, 0]
    with pytest.raises(DataError, match="holds no char"):
        encode_prefix(VOCAB, "", "unk")


def test_repeats_are_measured() -> None:
    # 16 characters have 9 runs of eight; the last one repeats the first.
    assert repeated_share("abcdefghabcdefgh") == pytest.approx(1 / 9)
    assert repeated_share("short") == 0


def test_markup_in_a_sample_is_shown_as_text() -> None:
    text = samples_markdown([Sample("m", "<i>", 0, "|<script>alert(1)</script>\n*x*", 0, 0)])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "\\|" in text
    assert text.count("\n| 0 |") == 1
