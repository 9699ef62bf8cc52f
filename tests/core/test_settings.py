"""Settings are typed and checked, and every complaint is one line in plain words."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from seqlm.core.errors import ParamsError
from seqlm.core.settings import Section, Seed, load, read_params


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
