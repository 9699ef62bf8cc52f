"""Anything at all as input: nothing but this project's errors, of one line, comes out; `make test-all` tries more."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from default_params import PARAMS_FILE
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_json, sha256_of_file
from seqlm.core.settings import read_params
from seqlm.core.stored import read_array
from seqlm.networks.building import open_network
from seqlm.ngrams.arpa import read_arpa
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.vocab.vocabulary import Vocab

PARAMS = PARAMS_FILE.read_bytes()
ARPA = (
    b"\\data\\\nngram 1=3\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-0.3\ta\t-0.2\n-0.5\tb\t-0.1\n\n"
    b"\\2-grams:\n-0.2\ta b\n-0.4\tb a\n\n\\end\\\n"
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@contextmanager
def one_line_errors() -> Iterator[None]:
    message = ""
    try:
        yield
    except (DataError, ParamsError) as error:
        message = str(error)
    assert "\n" not in message


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A valid file with some bytes replaced, cut out or put in."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 20)))
        content = content[:start] + draw(st.binary(max_size=8)) + content[end:]
    return content


@given(st.binary(max_size=200) | damaged(ARPA))
def test_any_bytes_are_a_model_or_no_arpa_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, one_line_errors():
        path = Path(folder, "x.arpa")
        path.write_bytes(content)
        model = read_arpa(path)
        assert np.isfinite(model.probs(np.arange(len(model.tokens)))).all()


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | damaged(PARAMS))
@example(b"a: 2001-99-99")
@example(b"a: &b [*b]")
@example(b"{[a]: b}")
@example(b"%YAML 9.9\n---\na: 1")
@example(b"a: !!python/object/apply:os.system [id]")
@example(b"a: 1\n---\nb: 2")
def test_any_bytes_are_settings_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, one_line_errors():
        path = Path(folder, "params.yaml")
        path.write_bytes(content)
        resolve_runs(read_params(path), source=str(path))


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
@example(b"[" * 100_000)
@example(b'{"format": 1, "config": {}, "vocab_size": "x", "sha256": null}')
@example(b"1" * 5000)
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_in_place_of_a_stored_file_are_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("vocab.json", "model.json", "weights.safetensors", "array.npy"):
            (folder / file).write_bytes(content)
        reading: list[Callable[[], object]] = [
            lambda: read_json(folder / "vocab.json"),
            lambda: read_array(folder / "array.npy", sha256_of_file(folder / "array.npy"), "again"),
            lambda: Vocab.load(folder / "vocab.json"),
            lambda: open_network(folder, "run", (3, ""), "cpu", 1),
        ]
        for read in reading:
            with one_line_errors():
                read()
