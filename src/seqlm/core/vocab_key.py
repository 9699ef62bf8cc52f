"""Which vocabulary a stored model belongs to."""

from pathlib import Path
from typing import Any

from seqlm.core.errors import DataError

VocabKey = tuple[int, str]
"""The size of a vocabulary, and the SHA-256 of its tokens: stored models know with which one they belong."""


def require_vocab(path: Path, stored: list[Any], vocab: VocabKey, advice: str) -> None:
    """Raise DataError, which ends with ``advice``, unless a model, stored in ``path``, belongs to a vocabulary."""
    if stored != list(vocab):
        raise DataError(f"{path}: made with another vocabulary than the present one: {advice}")
