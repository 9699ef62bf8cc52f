"""Files are written whole or not at all."""

import json
from pathlib import Path

import numpy as np
import pytest

from seqlm.core.errors import DataError, MachineError
from seqlm.core.files import read_csv, read_json, read_npy, replacing, sha256_of_file, write_csv, write_json, write_npy


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")

    def write_half() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_missing_folders_are_made_and_refusals_named(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "b" / "c.json", {"x": 1})
    (tmp_path / "plain").write_text("")
    with pytest.raises(MachineError, match="cannot be written"):
        write_json(tmp_path / "plain" / "c.json", {})


def test_json_has_no_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"perplexity": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_broken_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(DataError, match="no such file"):
        read_json(path)
    path.write_text('{"a": ')
    with pytest.raises(DataError, match="not JSON"):
        read_json(path)
    path.write_bytes(b"\xff")
    with pytest.raises(DataError, match="not UTF-8 at byte 0"):
        read_json(path)


def test_truncated_arrays_and_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    write_npy(path, np.arange(100))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match="not a whole array"):
        read_npy(path)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a whole array"):
        read_npy(path)


def test_a_word_that_looks_like_a_missing_value_stays_a_word(tmp_path: Path) -> None:
    import pandas as pd

    write_csv(tmp_path / "x.csv", pd.DataFrame({"token": ["null", "nan"], "count": [1, None]}))
    frame = read_csv(tmp_path / "x.csv")
    assert frame["token"].tolist() == ["null", "nan"]
    assert frame["count"].isna().tolist() == [False, True]


def test_the_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    # SHA-256 of "abc", from FIPS 180-2.
    assert sha256_of_file(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_equal_values_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_json(tmp_path / name, {"z": 0.1, "a": [1, None]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert json.loads((tmp_path / "a").read_text()) == {"z": 0.1, "a": [1, None]}
