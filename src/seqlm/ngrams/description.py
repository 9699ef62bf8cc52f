"""The description of a whole text by its n-grams: the tables that the reports show."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from seqlm.ngrams import statistics
from seqlm.ngrams.corpus_stream import join_splits
from seqlm.ngrams.counts.counting import Chunking
from seqlm.ngrams.counts.packing import PackedCounts
from seqlm.vocab.encoded import EncodedCorpus


def describe(
    corpus: EncodedCorpus, chunking: Chunking, train: PackedCounts | None, *, zipf_min_count: int, num_frequent: int
) -> Iterator[tuple[str, pd.DataFrame | dict[str, Any]]]:
    """Yield the name and the content of each table of a whole corpus, frames for CSV and mappings for JSON.

    ``train`` is what a counter of train kept, if anything: see :func:`seqlm.ngrams.corpus_stream.join_splits`.
    """
    text = join_splits(corpus, chunking, train)
    growth, beta = statistics.growth_table(text)
    yield "frequencies", statistics.frequent_ngrams(text, num_frequent)
    yield "zipf", statistics.zipf_table(text)
    yield "growth", growth
    yield "min_freq", statistics.min_freq_table(text)
    yield "storage", statistics.storage_table(text)
    yield "summary", statistics.summary(text, statistics.zipf_fits(text, zipf_min_count), beta)
    yield "head", statistics.head(text)
