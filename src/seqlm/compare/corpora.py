"""Whether two results are of one corpus: bits per character of different texts say nothing of each other."""

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any] | None
"""What the download stage says of a corpus; None where that is not kept."""


def are_other_corpora(before: Record, after: Record) -> bool:
    """Whether two corpora are known to differ. One text is one corpus, under whichever name."""
    return before is not None and after is not None and before["sha256"] != after["sha256"]


def corpora_sentence(before: Record, after: Record) -> str:
    """Return what is said of two corpora before their models are compared."""
    both = f"before {_described(before)}, after {_described(after)}"
    if before is None or after is None:
        return f"Whether both are of one corpus is not known: {both}."
    return f"Other corpora: {both}." if are_other_corpora(before, after) else f"One corpus: {_described(after)}."


def _described(record: Record) -> str:
    if record is None:
        return "not kept"
    instead = f", in place of {record['requested']}" if record.get("fallback") else ""
    return f"{record['name']} (SHA-256 {str(record['sha256'])[:8]}){instead}"
