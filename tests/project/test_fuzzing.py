"""Anything at all as input: what must hold of every result, and that nothing but this project's errors comes out.

`make test-all` tries many more examples than a normal run.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from default_params import PARAMS_FILE
from reference import clean_line
from seqlm.configure.settings import check_values
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_json, read_npy
from seqlm.core.settings import read_params
from seqlm.ngrams.arpa import read_arpa
from seqlm.ngrams.models.registry import load_models
from seqlm.preprocess.cleaning import DecodingReport, RawText, clean_blocks
from seqlm.rnn.building import load_network
from seqlm.score.store import load_score
from seqlm.train.runs import read_config
from seqlm.vocab.corpus import SPLITS, build_corpus, load_split
from seqlm.vocab.vocabulary import Vocab

PARAMS = PARAMS_FILE.read_bytes()
ARPA = (
    b"\\data\\\nngram 1=3\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-0.3\ta\t-0.2\n-0.5\tb\t-0.1\n\n"
    b"\\2-grams:\n-0.2\ta b\n-0.4\tb a\n\n\\end\\\n"
)
# Texts whose characters are the ones that matter: letters, marks of line ends, spaces, several bytes, none.
texts = st.text(alphabet="aBz 1é漢\n\r\t\u2028\ufeff-", max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@contextmanager
def file_of(content: bytes, name: str = "file") -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        yield path


def require_one_line(error: Exception) -> None:
    assert "\n" not in str(error)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A valid file with some bytes replaced, cut out or put in."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 20)))
        content = content[:start] + draw(st.binary(max_size=8)) + content[end:]
    return content


@given(st.binary(max_size=200) | texts.map(str.encode), st.sampled_from(["letters", "none"]), st.integers(1, 7))
def test_any_bytes_are_cleaned_or_refused(content: bytes, normalise: str, block: int) -> None:
    with file_of(content) as path:
        try:
            blocks = list(clean_blocks(RawText(path, "x"), normalise, "strict", DecodingReport(), block))
        except DataError as error:
            require_one_line(error)
            return
    cleaned = b"".join(blocks).decode()
    assert cleaned == "" or cleaned.endswith("\n")
    lines = content.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    if normalise == "none":
        assert cleaned.removesuffix("\n") == lines
        return
    assert cleaned.removesuffix("\n").split("\n") == [clean_line(line) for line in lines.split("\n")]
    assert re.fullmatch("(([a-z]+( [a-z]+)*)?\n)*", cleaned)


@given(st.binary(max_size=100) | texts.map(str.encode), st.integers(1, 7))
@example(b"\xe2\x82", 1)
@example(b"\xf0\x9f\x98a\r", 2)
def test_replacing_in_blocks_is_replacing_in_the_whole(content: bytes, block: int) -> None:
    content = b"x" + content.replace(b"\0", b"")  # no byte order mark, no NUL
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return
    report = DecodingReport()
    with file_of(content) as path:
        text = b"".join(RawText(path, "x").decoded_blocks("replace", report, block)).decode()
    whole = content.decode("utf-8", "replace")
    assert text == whole.replace("\r\n", "\n").replace("\r", "\n")
    assert report.replaced == whole.count("\ufffd") - content.count("\ufffd".encode())


@given(st.lists(texts, min_size=3, max_size=3), st.sampled_from(["char", "word"]), st.integers(0, 3))
def test_a_corpus_read_back_is_the_text(splits: list[str], kind: Any, min_freq: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = {}
        for split, text in zip(SPLITS, splits, strict=True):
            paths[split] = folder / f"{split}.txt"
            paths[split].write_bytes(("a\n" + text.replace("\r", "") + "\n").encode())
        try:
            made = build_corpus(paths, folder, kind, "", min_freq, ["<pad>"])
        except ParamsError as error:  # a min_freq that leaves nothing
            require_one_line(error)
            return
        vocab = Vocab.load(folder / "vocab.json")
        assert vocab == made
        assert (vocab.tokens[0], vocab.tokens[1], len(set(vocab.tokens))) == ("<unk>", "<pad>", len(vocab))
        for split in SPLITS:
            ids = load_split(folder, split)
            tokens = vocab.tokenize(paths[split].read_bytes().decode().removesuffix("\n"))
            assert vocab.decode(ids) == [token if token in vocab else "<unk>" for token in tokens]
            assert vocab.splits[split].num_unknown == np.count_nonzero(ids == 0)
        assert sum(vocab.counts) == len(load_split(folder, "train"))


@given(st.binary(max_size=200) | damaged(ARPA))
def test_any_bytes_are_a_model_or_no_arpa_file(content: bytes) -> None:
    for name in ("x.arpa", "x.arpa.gz"):
        with file_of(content, name) as path:
            try:
                model = read_arpa(path)
            except DataError as error:
                require_one_line(error)
                continue
            probs = model.probs(np.arange(len(model.tokens)))
            assert len(probs) == max(0, len(model.tokens) - 1)
            assert np.isfinite(probs).all()


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | damaged(PARAMS))
@example(b"a: 2001-99-99")
@example(b"a: &b [*b]")
@example(b"[" * 1500)
@example(b"? {a: b}\n: c")
@example(b"{[a]: b}")
@example(b"%YAML 9.9\n---\na: 1")
@example(b"a: !!python/object/apply:os.system [id]")
@example(b"a: 1\n---\nb: 2")
@example(b"a: !!float x")
def test_any_bytes_are_settings_or_refused(content: bytes) -> None:
    with file_of(content, "params.yaml") as path:
        try:
            check_values(read_params(path), source=str(path))
        except ParamsError as error:
            require_one_line(error)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
@example(b"[" * 100_000)
@example(b'{"format": 1}')
@example(b'{"format": 1, "config": {}, "vocab_size": "x", "sha256": null}')
@example(b'{"format": 1, "vocab_size": 3}')
@example(b'{"format": 1, "splits": []}')
@example(b"1" * 5000)
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_in_place_of_a_stored_file_are_refused(content: bytes) -> None:
    def refuses(read: Any, *arguments: Any, **named: Any) -> None:
        try:
            read(*arguments, **named)
        except (DataError, ParamsError) as error:
            require_one_line(error)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = ["vocab.json", "train.npy", "model.json", "weights.safetensors", "models.json", "run.json"]
        names.append("score.json")
        for file in names:
            (folder / file).write_bytes(content)
        refuses(read_json, folder / "run.json")
        refuses(read_npy, folder / "train.npy")
        refuses(load_split, folder, "train")
        refuses(Vocab.load, folder / "vocab.json")
        refuses(load_network, folder, "run", torch.device("cpu"))
        refuses(load_score, folder)
        refuses(load_models, folder, 3)
        refuses(read_config, folder / "run.json")
