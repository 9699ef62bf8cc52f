"""Settings of the ``vocab`` stages."""

from typing import Annotated, Literal

from pydantic import Field

from seqlm.core.settings import Section
from seqlm.vocab.kinds import SubwordParams


class CountedParams(Section):
    """Settings of a kind whose vocabulary is counted in train."""

    min_freq: Annotated[int, Field(ge=0, le=10**9)]
    """Tokens that occur less often in train are left out of the vocabulary."""


class VocabParams(Section):
    """What joins lines, and an entry for each kind of token."""

    line_separator: Literal["auto", "", " ", "\n", "\\n"]
    """What joins lines in the stream of characters. A shell and ``dvc exp run -S`` pass a line end
    on as the two characters ``\\n``.

    ``auto``: a line end in raw text (``preprocess.normalise: none``), otherwise what the corpus
    asks for; a user's own text asks for a space."""
    char: CountedParams
    word: CountedParams
    subword: SubwordParams
