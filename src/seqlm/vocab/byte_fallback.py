"""Bytes as tokens: how subwords write the characters that their alphabet lacks.

The code points U+10FF00 to U+10FFFF stand for the 256 bytes of UTF-8. If a text has such
characters of its own, they are written in bytes too.
"""

import re
from itertools import groupby

_FIRST_BYTE, _LAST_BYTE = 0x10FF00, 0x10FFFF
BYTE_TOKENS = tuple(map(chr, range(_FIRST_BYTE, _LAST_BYTE + 1)))
_ALL_BYTES = "".join(BYTE_TOKENS)
_RUNS_OF_BYTES = re.compile(f"[{BYTE_TOKENS[0]}-{BYTE_TOKENS[-1]}]+")


def with_byte_fallback(pretoken: str, alphabet: frozenset[str]) -> list[str]:
    """Return the parts of a pretoken that an alphabet can write, and between them each byte of the rest."""
    if alphabet.issuperset(pretoken):
        return [pretoken]
    parts = []
    for is_known, run in groupby(pretoken, alphabet.__contains__):
        text = "".join(run)
        parts += [text] if is_known else [BYTE_TOKENS[byte] for byte in text.encode("utf-8", "surrogatepass")]
    return parts


def decode_bytes(text: str) -> str:
    """Return a text with its byte tokens decoded; bytes that form no character become U+FFFD."""
    return _RUNS_OF_BYTES.sub(_decoded, text)


def split_trailing_bytes(text: str) -> tuple[str, str]:
    """Return a text up to the byte tokens at its end, and these."""
    head = text.rstrip(_ALL_BYTES)
    return head, text[len(head) :]


def num_characters(token: str) -> int:
    """Return how many characters begin in a token: among the bytes of a character, only the first counts."""
    if token[0] < BYTE_TOKENS[0]:
        return len(token)
    return int(ord(token) - _FIRST_BYTE & 0xC0 != 0x80)


def _decoded(run: re.Match[str]) -> str:
    return bytes(ord(token) - _FIRST_BYTE for token in run.group()).decode("utf-8", "replace")
