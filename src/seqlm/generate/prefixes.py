"""The prefixes that models continue: those of the settings, or the first words of val."""

from collections.abc import Sequence

from seqlm.core.layout import Layout
from seqlm.vocab.corpus import load_split
from seqlm.vocab.prompts import AUTO, prompts
from seqlm.vocab.vocabulary import Vocab

_NUM_AUTO_PREFIXES = 2


def chosen_prefixes(setting: Sequence[str] | str, layout: Layout) -> list[str]:
    """Return the prefixes of the setting; ``auto`` gives the first two pieces of val.

    Raises DataError if val begins with nothing but spaces.
    """
    if setting != AUTO:
        return list(setting)
    vocab, val = Vocab.load(layout.vocab("char"), "char"), load_split(layout.corpus("char"), "val", mmap=True)
    return prompts(vocab, val, _NUM_AUTO_PREFIXES)
