"""How much of a text is copied, compared with a search for every substring."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqlm.generate.copying import Codes, decoded_blocks, longest_common_substrings
from seqlm.vocab.subwords import BYTE_TOKENS
from seqlm.vocab.vocabulary import Vocab


def codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def blocks(text: str, size: int) -> list[Codes]:
    return [codes(text[start : start + size]) for start in range(0, len(text), size)]


def test_copies_by_hand() -> None:
    texts = ["the sea xyz", "qqq", "", "a seat", "漢字 at sea"]
    # "the sea", nothing, nothing, " sea", " sea"
    assert longest_common_substrings(texts, lambda: blocks("near the sea", 5)) == [7, 0, 0, 4, 4]
    assert longest_common_substrings([], lambda: blocks("near the sea", 5)) == []


@given(
    st.lists(st.text(alphabet="ab 漢", max_size=25), max_size=6),
    st.text(alphabet="ab c漢", max_size=60),
    st.integers(1, 60),
    st.sampled_from([1, 10, 1000]),
)
def test_the_longest_copy_is_the_longest(texts: list[str], source: str, size: int, max_chars: int) -> None:
    found = longest_common_substrings(texts, lambda: blocks(source, size), max_chars)
    for text, length in zip(texts, found, strict=True):
        substrings = {text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)}
        assert length == max((len(part) for part in substrings if part in source), default=0)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.sampled_from(["char", "word"]), st.integers(1, 7))
def test_a_decoded_stream_is_the_text_of_its_tokens(ids: list[int], kind: str, size: int) -> None:
    vocab = Vocab(kind, ["<unk>", "ab", "c", "漢字d"], [0] * 4, "", {})
    found = b"".join(block.tobytes() for block in decoded_blocks(vocab, np.array(ids, np.uint8), size))
    assert found.decode("utf-32-le") == vocab.join(vocab.decode(ids))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 7))
def test_characters_are_decoded_from_their_bytes(ids: list[int], size: int) -> None:
    # é is C3 A9 in UTF-8; a byte alone is no character.
    vocab = Vocab("subword", ["<unk>", " ab", "c", BYTE_TOKENS[0xC3], BYTE_TOKENS[0xA9]], [0] * 5, "", {})
    found = b"".join(block.tobytes() for block in decoded_blocks(vocab, np.array(ids, np.uint8), size))
    assert found.decode("utf-32-le") == vocab.join(vocab.decode(ids))


PROGRAM = """
import resource
import numpy as np
from seqlm.generate.copying import decoded_blocks, longest_common_substrings
from seqlm.vocab.vocabulary import Vocab

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

vocab = Vocab("word", ["<unk>", *(f"word{n}" for n in range(1000))], [0] * 1001, "", {})
ids = np.tile(np.arange(1, 1001, dtype=np.uint16), 3000)
texts = [vocab.join(vocab.decode(ids[start : start + 20])) + "!" for start in range(0, 1000, 10)]
longest_common_substrings(texts, lambda: decoded_blocks(vocab, ids[:1000]))
before = peak()
assert longest_common_substrings(texts, lambda: decoded_blocks(vocab, ids)) == [len(text) - 1 for text in texts]
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_source() -> None:
    # Three million words: a list of them and their text as one string take 24 and 27 MB.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30e6
