"""How much of a text is copied: its longest substring that also occurs in a source.

The source may be far longer than the texts and is read once, in blocks; the texts are indexed. The index is a suffix
automaton (Blumer et al. 1985), the smallest automaton that accepts every substring of a text. A state represents
substrings that end at the same positions. Its transitions extend them by a character. Its link leads to the state of
their longest suffix that ends at more positions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import compiled
from seqlm.vocab.kinds import TokenKind
from seqlm.vocab.vocabulary import Vocab

Codes = NDArray[np.uint32]
"""Code points of characters."""
States = NDArray[np.int64]

_SEPARATOR = 0x110000
"""Separates texts in an index; not a code point."""
MAX_INDEXED_CHARS = 200_000
"""Characters of the texts that share an index, which takes about a kilobyte for each."""
BLOCK_TOKENS = 1 << 14


def longest_common_substrings(
    texts: Sequence[str], source: Callable[[], Iterable[Codes]], max_chars: int = MAX_INDEXED_CHARS
) -> list[int]:
    """Return for each text the length of its longest substring that occurs in the source.

    ``source`` returns the source in blocks. It is called once for every ``max_chars`` characters of texts.
    """
    found: list[int] = []
    while group := _first_group(texts[len(found) :], max_chars):
        index = _Index(group)
        for block in source():
            index.read(block)
        found += index.longest_matches()
    return found


def decoded_blocks(vocab: Vocab, ids: NDArray[np.integer], block_tokens: int = BLOCK_TOKENS) -> Iterator[Codes]:
    """Yield the text of a stream of tokens as code points: words are joined by spaces."""
    blocks = _joined_blocks(vocab, ids, block_tokens)
    return blocks if vocab.token_kind.has_unknown else _in_characters(vocab.token_kind, blocks)


def _in_characters(kind: TokenKind, blocks: Iterable[Codes]) -> Iterator[Codes]:
    """Yield a text whose tokens may be single bytes as characters."""
    pending = ""
    for block in blocks:
        text, pending = kind.decode_incremental(pending + block.tobytes().decode("utf-32-le"))
        yield _codes(text)
    yield _codes(kind.join([pending]))


def _joined_blocks(vocab: Vocab, ids: NDArray[np.integer], block_tokens: int) -> Iterator[Codes]:
    joiner = vocab.token_kind.separator
    codes = _codes("".join(joiner + token for token in vocab.tokens))
    lengths = np.array([len(joiner) + len(token) for token in vocab.tokens])
    starts = np.cumsum(lengths) - lengths
    for begin in range(0, len(ids), block_tokens):
        block = ids[begin : begin + block_tokens]
        ends = np.cumsum(lengths[block])
        # A character has the same distance from the first one of its token in the block and in `codes`.
        indices = np.arange(ends[-1]) + np.repeat(starts[block] - ends + lengths[block], lengths[block])
        yield codes[indices if begin else indices[len(joiner) :]]


def _first_group(texts: Sequence[str], max_chars: int) -> Sequence[str]:
    """Return the first texts that together have at most ``max_chars`` characters, at least one text."""
    ends = np.cumsum([len(text) for text in texts])
    return texts[: max(int(np.searchsorted(ends, max_chars, side="right")), 1)]


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


class _Index:
    """All substrings of some texts, and which of them a source contains."""

    def __init__(self, texts: Sequence[str]) -> None:
        automaton = _Automaton()
        self._ends = [automaton.append(_codes(text).tolist()) for text in texts]
        self._links, self._lengths = np.array(automaton.links), np.array(automaton.lengths)
        self._longest = np.zeros(len(self._links), np.int64)
        """For each state the length of its longest substring that the source contains."""
        self._match = (0, 0)
        """The longest substring that ends where the source was read to: its state and its length."""
        # The transitions of all states one after the other, sorted by character.
        transitions = [sorted(found.items()) for found in automaton.transitions]
        self._firsts = np.cumsum([0, *map(len, transitions)])
        self._transitions = np.array([pair for of_state in transitions for pair in of_state], np.int64).reshape(-1, 2).T

    def read(self, block: Codes) -> None:
        """Read the next block of the source."""
        characters, targets = self._transitions
        self._match = _follow(
            block, self._firsts, characters, targets, self._links, self._lengths, self._longest, *self._match
        )

    def longest_matches(self) -> list[int]:
        """Return for each text the length of its longest substring that the source contains."""
        longest, links, lengths = self._longest.copy(), self._links, self._lengths
        by_length = np.argsort(lengths).tolist()
        for state in reversed(by_length[1:]):
            if longest[state]:  # the source contains its suffixes too, which the state that it links to represents
                longest[links[state]] = lengths[links[state]]
        for state in by_length[1:]:
            longest[state] = longest[state] or longest[links[state]]
        return [int(longest[ends].max(initial=0)) for ends in self._ends]


class _Automaton:
    """A suffix automaton of texts, one after the other with a separator between them."""

    def __init__(self) -> None:
        self.transitions: list[dict[int, int]] = [{}]
        """For each state the next state by character; state 0 represents the empty string."""
        self.links, self.lengths = [-1], [0]
        """For each state its link, and the length of its longest substring."""
        self._last = 0

    def append(self, text: Iterable[int]) -> list[int]:
        """Add a text; return for each character the state of the substrings that end there and nowhere before."""
        self._add(_SEPARATOR)
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
        """Return the state of the longest substring of ``state`` followed by ``character``; split a state if needed."""
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
    """Follow the characters of a block from a state; note in ``longest`` which substrings occur.

    Return the last state and the length of its match.
    """
    for character in block:
        while True:
            first, last = firsts[state], firsts[state + 1]
            index = first + np.searchsorted(characters[first:last], character)
            if index < last and characters[index] == character:
                state, length = targets[index], length + 1
                longest[state] = max(longest[state], length)
                break
            if state == 0:
                break
            state = links[state]
            length = lengths[state]
    return state, length
