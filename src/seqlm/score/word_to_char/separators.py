"""What stands between the words of a text: how likely a blank is behind a word, and behind another blank."""

import re
from dataclasses import dataclass

BLANKS = " \n"
"""The characters that part words."""
SILENT = ""
"""No blank behind a word: the next one begins at once, where lines are joined by nothing."""
WORD_BEGINS = ""
"""No blank behind another."""

_SILENT_END = re.compile(r"[^ \n]\n+(?=[^ \n])")


@dataclass(frozen=True)
class BlankModel:
    """Probabilities of what follows, one blank or none (:data:`SILENT`, :data:`WORD_BEGINS`); each sums to 1."""

    after_word: dict[str, float]
    after_blank: dict[str, float]


def estimate_blanks(text: str, line_separator: str) -> BlankModel:
    """Return how a text with its line ends parts words where its lines are joined; add-one smoothed.

    ``line_separator`` is nothing, a space or a line end.
    """
    text = text.removesuffix("\n")  # which ends the last line and joins none
    joined = text.replace("\n", line_separator)
    blanks = [blank for blank in BLANKS if blank == " " or blank == line_separator]
    behind_words = {blank: len(re.findall(f"[^ \n]{blank}", joined)) for blank in blanks}
    if line_separator == "":
        behind_words[SILENT] = len(_SILENT_END.findall(text))
    behind_blanks = {blank: len(re.findall(f"(?<=[ \n]){blank}", joined)) for blank in blanks}
    behind_blanks[WORD_BEGINS] = len(re.findall("(?<=[ \n])[^ \n]", joined))
    return BlankModel(_smoothed(behind_words), _smoothed(behind_blanks))


def _smoothed(counts: dict[str, int]) -> dict[str, float]:
    total = sum(counts.values()) + len(counts)
    return {what: (count + 1) / total for what, count in counts.items()}
