"""Subwords: parts of words, learned from train, and bytes for the characters that they lack.

A subword may begin with the space before its word, which marks where words begin. It never
crosses from one word into the next, nor from letters into punctuation. So a text may be cut
before every space and at every line end without a change of its tokens. What joins lines is
a token of its own, or nothing: then no token crosses a line end, although no character marks it.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from seqlm.core.settings import Section
from seqlm.core.text import BLOCK_BYTES
from seqlm.vocab import byte_fallback
from seqlm.vocab.interning import Interner
from seqlm.vocab.kinds.kind import TokenKind
from seqlm.vocab.subword_tokenizer import SubwordInterner, SubwordTokenizer
from seqlm.vocab.subword_training import SubwordParams, sample_text, train_tokenizer

# A fixed list instead of a Unicode property, so that all versions of Unicode give equal pretokens.
_MARKS = re.escape("".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum()))
_MARKS += "¡-©«-´¶-¹»-¿×÷،؛؟۔।॥\u2010-\u2027\u2030-\u205e\u20a0-\u20c0\u2190-\u2bff"
_MARKS += "\u3001-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_PRETOKENS = re.compile(rf" ?[^ \n{_MARKS}]+(?:['’][^ \n{_MARKS}]+)*| ?[{_MARKS}]+|[ \n]")
"""A word with the space before it and the apostrophes inside it; punctuation; or a single blank."""
_MAX_PRETOKEN = 100
"""Characters of a pretoken; longer ones are cut."""


class SubwordKind(TokenKind):
    """Parts of words."""

    name, noun, separator = "subword", "subword", ""
    settings = SubwordParams
    has_unknown = False
    interned_bytes = 16 * BLOCK_BYTES

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the parts of a text that are tokenized one by one."""
        found = _PRETOKENS.findall(text.replace("\n", " ") if line_separator == " " else text)
        if any(len(pretoken) > _MAX_PRETOKEN for pretoken in found):
            found = [
                pretoken[start : start + _MAX_PRETOKEN]
                for pretoken in found
                for start in range(0, len(pretoken), _MAX_PRETOKEN)
            ]
        return found if line_separator else [pretoken for pretoken in found if pretoken != "\n"]

    def tokenize(self, text: str, line_separator: str, tokenizer: SubwordTokenizer | None) -> list[str]:
        """Return the subwords of a text, its lines joined."""
        return _required(tokenizer).tokenize(self.pretokenize(text, line_separator))

    def interner(self, num_bytes: int, line_separator: str, tokenizer: SubwordTokenizer | None) -> Interner:
        """Return an interner of subwords, which has all of them from the start."""
        return SubwordInterner(_required(tokenizer), partial(self.pretokenize, line_separator=line_separator))

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of subwords; bytes that form no character become U+FFFD."""
        return byte_fallback.decode_bytes("".join(tokens))

    def decode_incremental(self, joined: str) -> tuple[str, str]:
        """Return the text of joined subwords without the bytes at their end, and these."""
        head, trailing = byte_fallback.split_trailing_bytes(joined)
        return self.join([head]), trailing

    def length(self, token: str) -> int:
        """Return how many characters begin in a subword: among the bytes of a character, only the first counts."""
        return byte_fallback.num_characters(token)

    def vocab_rule(self, settings: Section) -> tuple[int, Sequence[str]]:
        """Return that every subword is in the vocabulary."""
        return 0, ()

    def train_tokenizer(self, path: Path, line_separator: str, settings: Section) -> SubwordTokenizer:
        """Train a tokenizer on a sample of the training split."""
        assert isinstance(settings, SubwordParams)
        blocks = (self.pretokenize(text, line_separator) for text in sample_text(path))
        return train_tokenizer(blocks, path.stat().st_size, settings)


def _required(tokenizer: SubwordTokenizer | None) -> SubwordTokenizer:
    if tokenizer is None:
        raise ValueError("subwords need the tokenizer that was trained on train")
    return tokenizer
