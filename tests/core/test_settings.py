"""Settings and stored descriptions are typed and checked, and every complaint is one line in plain words."""

import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from pydantic import Field

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_bytes, sha256_of_file
from seqlm.core.settings import Section, Seed, load, read_params
from seqlm.core.stored import Stored, read_array, write_array, write_checksummed


class Inner(Section):
    lr: Annotated[float, Field(gt=0)]
    steps: Annotated[int, Field(ge=1)]
    shuffle: bool
    epsilons: Literal["auto"] | Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)]
    order: dict[Literal["char", "word"], int]


class Outer(Section):
    inner: Inner
    others: dict[str, Inner]


EMPTY = "inner.epsilons = []: should be 'auto' or List should have at least 1 item after validation, not 0"
INNER = "{lr: 1e-3, steps: 5, shuffle: true, epsilons: auto, order: {char: 2}}"
GOOD = f"seed: 1\ninner: {INNER}\nouter: {{inner: {INNER}, others: {{a: {INNER}}}}}\n"


def write(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(content)
    return path


def test_values_are_read_as_yaml_1_2_and_whole_numbers_are_accepted_as_floats(tmp_path: Path) -> None:
    # PyYAML reads 1e-3 as a string and `no` as false; DVC and this project do not.
    assert load(write(tmp_path, GOOD), "inner", Inner).lr == 0.001
    assert load(write(tmp_path, GOOD.replace("1e-3", "1")), "inner", Inner).lr == 1.0
    assert read_params(write(tmp_path, "a: no\n"))["a"] == "no"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("lr: 1e-3", "lr: -1", "inner.lr = -1: should be greater than 0"),
        ("lr: 1e-3", "lr: .nan", "inner.lr = nan: should be a finite number"),
        ("lr: 1e-3", "lr: true", "inner.lr = True: should be a valid number"),
        ("steps: 5, ", "", "inner.steps: missing"),
        ("epsilons: auto", "epsilons: []", EMPTY),
        ("epsilons: auto", "epsilons: [1, -1]", "inner.epsilons.1 = -1: should be greater than or equal to 0"),
        ("{char: 2}", "{cha: 2}", "inner.order.cha = 'cha': should be 'char' or 'word'"),
        ("inner:", "outer2:", "inner: missing"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ParamsError) as caught:
        load(path, "inner", Inner)
    assert str(caught.value) == f"{path}: {complaint}"


@pytest.mark.parametrize(
    ("new", "hint"),
    [
        ("num_steps: 5", ": did you mean steps?"),
        ("steps: 5, stepps: 2", ": did you mean steps?"),
        ("steps: 5, x: 2", ""),
    ],
)
def test_a_misspelt_setting_is_named_first_with_the_nearest_name(new: str, hint: str, tmp_path: Path) -> None:
    unknown = new.split(", ")[-1].partition(":")[0]
    places: list[tuple[type[Section], str, str]] = [
        (Inner, "inner", "\ninner: {"),
        (Outer, "outer.inner", "outer: {inner: {"),
        (Outer, "outer.others.a", "{a: {"),
    ]
    for model, where, begin in places:
        head, _, tail = GOOD.partition(begin)
        path = write(tmp_path, head + begin + tail.replace("steps: 5", new, 1))
        with pytest.raises(ParamsError) as caught:
            load(path, where.partition(".")[0], model)
        assert str(caught.value) == f"{path}: {where}.{unknown}: unknown setting{hint}"


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    for content in ("- 1\n", "a: [1\n", ""):
        with pytest.raises(ParamsError):
            load(write(tmp_path, content), "seed", Seed)
    with pytest.raises(ParamsError, match="cannot be read"):
        load(tmp_path / "missing.yaml", "seed", Seed)


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
