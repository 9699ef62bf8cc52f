"""Descriptions and arrays come back as they were written, or are refused in one line."""

import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from seqlm.core.errors import DataError
from seqlm.core.files import read_bytes, sha256_of_file
from seqlm.core.stored import Stored, read_array, write_array, write_checksummed


class Names(Stored):
    version, advice, max_bytes = 1, "run it again", 1000

    names: tuple[str, ...]
    share: float


def test_a_description_comes_back_unless_it_changed(tmp_path: Path) -> None:
    path, changed = tmp_path / "x.json", tmp_path / "changed.json"
    Names(names=("é", '"checksum": ""'), share=1 / 3).write(path)
    assert Names.read(path) == Names(names=("é", '"checksum": ""'), share=1 / 3)
    text = path.read_text()
    for content, complaint in (
        (text.replace("é", "e"), "its content does not match its SHA-256"),
        (text.replace('"format": 1', '"format": 2'), "not in format 1, the one that this version reads"),
        ("[]", "not in format 1"),
        ("[" * 900, "not JSON"),
        (text + " " * 1000, "larger than 1,000 bytes"),
    ):
        changed.write_text(content)
        with pytest.raises(DataError, match=rf"changed\.json: {complaint}.*: run it again$"):
            Names.read(changed)
    for value, complaint in (
        ({"names": ["a"]}, "share: missing"),
        ({"names": ["a"], "share": 1.0, "shares": 2}, "shares: unknown setting"),
        ({"names": 3, "share": 1.0}, "names = 3: should be a valid tuple"),
    ):
        write_checksummed(changed, {"format": 1} | value)
        with pytest.raises(DataError, match=rf"changed\.json: {re.escape(complaint)}.*: run it again$"):
            Names.read(changed)


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/dev/zero"), os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_not_opened(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x")
    with pytest.raises(DataError, match="not a regular file"):
        Names.read(tmp_path / "x")
    with pytest.raises(DataError, match="not a regular file"):
        read_array(tmp_path / "x", "", "again")


def test_a_limit_reserves_no_memory(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"sea")
    tracemalloc.start()
    assert read_bytes(tmp_path / "x", 1 << 30) == b"sea"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24


def test_blocks_are_one_array_that_is_compared_with_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    blocks = [np.array([1, 2]), np.array([], np.int64), np.array([65_535])]
    digest = write_array(path, blocks, np.uint16, 3)
    assert digest == sha256_of_file(path) == write_array(path, np.array([1, 2, 65_535]), np.uint16)
    assert read_array(path, digest, "again").tolist() == [1, 2, 65_535]
    assert read_array(path, digest, "again").dtype == np.uint16
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"\xfe")
    with pytest.raises(DataError, match=r"x\.npy: its content does not match its SHA-256: again$"):
        read_array(path, digest, "again")


def test_arrays_that_are_cut_or_hold_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    write_array(path, np.arange(100))
    cut = path.read_bytes()[:-8]
    for array in (np.array([{}], object), np.ones(3), np.ones((2, 2), int), np.arange(3, dtype=">i4"), cut, b""):
        if isinstance(array, bytes):
            path.write_bytes(array)
        else:
            np.save(path, array, allow_pickle=True)
        with pytest.raises(DataError, match="not a complete array") as caught:
            read_array(path, sha256_of_file(path), "again")
        assert "\n" not in str(caught.value)
