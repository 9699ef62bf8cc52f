"""The description of a whole text by its n-grams: the tables that the reports show."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from seqlm.ngrams import statistics
from seqlm.ngrams.counting import Chunking
from seqlm.ngrams.whole_text import read_whole
from seqlm.vocab.vocabulary import Kind


def describe(
    paths: Sequence[Path],
    kind: Kind,
    line_separator: str,
    chunking: Chunking,
    *,
    first_line: str,
    zipf_min_count: int,
    num_frequent: int,
) -> Iterator[tuple[str, pd.DataFrame | dict[str, Any]]]:
    """Yield the name and the content of each table of the text in ``paths``, frames for CSV and mappings for JSON."""
    text = read_whole(paths, kind, line_separator, chunking)
    growth, beta = statistics.growth_table(text)
    yield "frequencies", statistics.frequent_ngrams(text, num_frequent)
    yield "zipf", statistics.zipf_table(text)
    yield "growth", growth
    yield "min_freq", statistics.min_freq_table(text)
    yield "storage", statistics.storage_table(text)
    yield "summary", statistics.summary(text, statistics.zipf_fits(text, zipf_min_count), beta)
    yield "head", statistics.head(text, first_line)
