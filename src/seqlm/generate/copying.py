"""How much of a text is copied: the longest run of its characters that stands in a source of any length.

The texts are indexed and not the source, which is far longer and passes by once. The index
is a suffix automaton (Blumer et al. 1985), the smallest machine that knows every run of
characters of a text: a state stands for runs that end at the same places, its transitions
say by which characters they go on, and its link leads to the state of their longest ending
that stands at more places.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import compiled
from seqlm.vocab.kinds.kind import TokenKind
from seqlm.vocab.vocabulary import Vocab

Codes = NDArray[np.uint32]
"""Code points of characters."""
States = NDArray[np.int64]

_BORDER = 0x110000
"""What parts texts in an index: no character."""
_MAX_CHARS = 200_000
"""Characters of the texts that share an index: Python keeps about a kilobyte for each."""
_BLOCK_TOKENS = 1 << 14


def longest_common_substrings(texts: Sequence[str], source: Callable[[], Iterable[Codes]]) -> list[int]:
    """Return for each text the length of its longest run of characters that stands in the source.

    ``source`` returns the source in blocks.
    """
    found: list[int] = []
    while group := _group(texts[len(found) :]):
        index = _Index(group)
        for block in source():
            index.read(block)
        found += index.longest_runs()
    return found


def decoded_blocks(vocab: Vocab, ids: NDArray[np.integer]) -> Iterator[Codes]:
    """Yield the text of a stream of tokens as code points: words are joined by spaces."""
    blocks = _joined_blocks(vocab, ids)
    return blocks if vocab.of_kind.has_unknown else _in_characters(vocab.of_kind, blocks)


def _in_characters(kind: TokenKind, blocks: Iterable[Codes]) -> Iterator[Codes]:
    """Yield a text in which tokens may stand for bytes as its characters."""
    pending = ""
    for block in blocks:
        text, pending = kind.whole(pending + block.tobytes().decode("utf-32-le"))
        yield _codes(text)
    yield _codes(kind.join([pending]))


def _joined_blocks(vocab: Vocab, ids: NDArray[np.integer]) -> Iterator[Codes]:
    joiner = vocab.of_kind.joiner
    codes = _codes("".join(joiner + token for token in vocab.tokens))
    lengths = np.array([len(joiner) + len(token) for token in vocab.tokens])
    starts = np.cumsum(lengths) - lengths
    for begin in range(0, len(ids), _BLOCK_TOKENS):
        block = ids[begin : begin + _BLOCK_TOKENS]
        ends = np.cumsum(lengths[block])
        # Each character lies as far behind its token's first one here as there.
        places = np.arange(ends[-1]) + np.repeat(starts[block] - ends + lengths[block], lengths[block])
        yield codes[places if begin else places[len(joiner) :]]


def _group(texts: Sequence[str]) -> Sequence[str]:
    """Return the first texts that may share an index, one at least."""
    ends = np.cumsum([len(text) for text in texts])
    return texts[: max(int(np.searchsorted(ends, _MAX_CHARS, side="right")), 1)]


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


class _Index:
    """Every run of characters of some texts, and how much of it was met in a source."""

    def __init__(self, texts: Sequence[str]) -> None:
        automaton = _Automaton()
        self._ends = [automaton.append(_codes(text).tolist()) for text in texts]
        self._links, self._lengths = np.array(automaton.links), np.array(automaton.lengths)
        self._longest = np.zeros(len(self._links), np.int64)
        """For each state the length of its longest run that was met."""
        self._place = (0, 0)
        """Where the source was left: the state and the length of the longest run at its end."""
        # The transitions of all states one after the other, by their characters.
        transitions = [sorted(found.items()) for found in automaton.transitions]
        self._firsts = np.cumsum([0, *map(len, transitions)])
        self._transitions = np.array([pair for of_state in transitions for pair in of_state], np.int64).reshape(-1, 2).T

    def read(self, block: Codes) -> None:
        """Go on in the source."""
        characters, targets = self._transitions
        self._place = _follow(
            block, self._firsts, characters, targets, self._links, self._lengths, self._longest, *self._place
        )

    def longest_runs(self) -> list[int]:
        """Return for each text the length of its longest run that was met."""
        longest, links, lengths = self._longest.copy(), self._links, self._lengths
        rising = np.argsort(lengths).tolist()
        for state in reversed(rising[1:]):
            if longest[state]:  # then its endings were met, which are the runs of the state that it links to
                longest[links[state]] = lengths[links[state]]
        for state in rising[1:]:
            longest[state] = longest[state] or longest[links[state]]
        return [int(longest[ends].max(initial=0)) for ends in self._ends]


class _Automaton:
    """A suffix automaton of texts, one behind the other with a border between them."""

    def __init__(self) -> None:
        self.transitions: list[dict[int, int]] = [{}]
        """For each state where its runs go on to, by the next character; state 0 stands for the empty run."""
        self.links, self.lengths = [-1], [0]
        """For each state its link, and the length of its longest run."""
        self._last = 0

    def append(self, text: Iterable[int]) -> list[int]:
        """Add a text; return for each character the state of all runs that end there and nowhere before."""
        self._add(_BORDER)
        return [self._add(character) for character in text]

    def _add(self, character: int) -> int:
        state, new = self._last, self._new_state({}, self.lengths[self._last] + 1)
        while state >= 0 and character not in self.transitions[state]:
            self.transitions[state][character] = new
            state = self.links[state]
        self.links[new] = self._state_of(state, character) if state >= 0 else 0
        self._last = new
        return new

    def _state_of(self, state: int, character: int) -> int:
        """Return the state of the longest run of ``state`` gone on by ``character``, one of its own if need be."""
        target, length = self.transitions[state][character], self.lengths[state] + 1
        if self.lengths[target] == length:
            return target
        clone = self._new_state(dict(self.transitions[target]), length)
        self.links[clone], self.links[target] = self.links[target], clone
        while state >= 0 and self.transitions[state].get(character) == target:
            self.transitions[state][character] = clone
            state = self.links[state]
        return clone

    def _new_state(self, transitions: dict[int, int], length: int) -> int:
        self.transitions.append(transitions)
        self.links.append(0)
        self.lengths.append(length)
        return len(self.links) - 1


@compiled(nogil=True)
def _follow(
    block: Codes,
    firsts: States,
    characters: States,
    targets: States,
    links: States,
    lengths: States,
    longest: States,
    state: int,
    length: int,
) -> tuple[int, int]:
    """Go from a state along the characters of a block, and note in ``longest`` what is met."""
    for character in block:
        while True:
            first, last = firsts[state], firsts[state + 1]
            place = first + np.searchsorted(characters[first:last], character)
            if place < last and characters[place] == character:
                state, length = targets[place], length + 1
                longest[state] = max(longest[state], length)
                break
            if state == 0:
                break
            state = links[state]
            length = lengths[state]
    return state, length
