"""What is continued: the prefixes of the settings, or the text's own first words."""

from collections.abc import Sequence

from seqlm.core.layout import Layout
from seqlm.vocab.corpus_building import load_split
from seqlm.vocab.prompts import AUTO, prompts
from seqlm.vocab.vocabulary import Vocab

_OWN = 2


def chosen_prefixes(setting: Sequence[str] | str, layout: Layout) -> list[str]:
    """Return the prefixes of the setting; ``auto`` is the first two pieces of val.

    Raises DataError where val begins with nothing to continue.
    """
    if setting != AUTO:
        return list(setting)
    return prompts(Vocab.load(layout.vocab("char"), "char"), load_split(layout.corpus("char"), "val", mmap=True), _OWN)
