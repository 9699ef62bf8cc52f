"""The embedded corpus is what the registry and the README say of it."""

import string
from pathlib import Path

from reference import clean_line
from seqlm.core.files import sha256_of_file
from seqlm.core.settings import load
from seqlm.download.corpora import Corpus


def test_the_sample_is_long_enough_and_has_every_letter_early(root: Path) -> None:
    text = (root / "data/sample.txt").read_text(encoding="ascii")
    cleaned = "".join(clean_line(line) for line in text.splitlines())
    assert len(text) >= 24_000
    # The runs of the book train on the first 10,000 characters.
    assert set(string.ascii_lowercase) <= set(cleaned[:10_000])


def test_the_registry_knows_the_sample_by_its_hash(root: Path) -> None:
    sample = load(root / "data/corpora.yaml", "corpora", dict[str, Corpus])["sample"]
    assert sample.sha256 == sha256_of_file(root / "data/sample.txt")
    assert sample.bytes == (root / "data/sample.txt").stat().st_size
    assert sample.licence == "CC0-1.0"
