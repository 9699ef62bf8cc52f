"""Settings are typed and checked, and every complaint is one line."""

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from seqlm.core.errors import ParamsError
from seqlm.core.settings import Section, Seed, load, read_params


class Inner(Section):
    lr: Annotated[float, Field(gt=0)]
    steps: Annotated[int, Field(ge=1)]
    shuffle: bool


def write(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(content)
    return path


GOOD = "seed: 1\ninner: {lr: 1e-3, steps: 5, shuffle: true}\n"


def test_values_are_read_as_yaml_1_2(tmp_path: Path) -> None:
    # PyYAML reads 1e-3 as a string and `no` as false; DVC and this project do not.
    assert load(write(tmp_path, GOOD), "inner", Inner).lr == 0.001
    assert read_params(write(tmp_path, "a: no\n"))["a"] == "no"


def test_whole_numbers_serve_as_floats_and_not_the_other_way(tmp_path: Path) -> None:
    assert load(write(tmp_path, GOOD.replace("1e-3", "1")), "inner", Inner).lr == 1.0
    with pytest.raises(ParamsError, match=r"inner\.steps = 5\.5"):
        load(write(tmp_path, GOOD.replace("steps: 5", "steps: 5.5")), "inner", Inner)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("lr: 1e-3", "lr: -1", r"inner\.lr = -1: should be greater than 0"),
        ("lr: 1e-3", "lr: .nan", r"inner\.lr = nan: should be a finite number"),
        ("lr: 1e-3", "lr: .inf", r"inner\.lr = inf: should be a finite number"),
        ("lr: 1e-3", "lr: fast", r"inner\.lr = 'fast': should be a valid number"),
        ("lr: 1e-3", "lr: null", r"inner\.lr = null: should be a valid number"),
        ("lr: 1e-3", "lr: true", r"inner\.lr = true: should be a valid number"),
        ("steps: 5", "steps: true", r"inner\.steps = true: should be a valid integer"),
        ("steps: 5", "stepz: 5", r"inner\.(stepz: unknown setting|steps: missing)"),
        ("shuffle: true", "shuffle: 1", r"inner\.shuffle = 1: should be a valid boolean"),
        ("inner:", "outer:", r"inner: missing"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=complaint) as caught:
        load(write(tmp_path, GOOD.replace(old, new)), "inner", Inner)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    for content in ("- 1\n", "a: [1\n", ""):
        with pytest.raises(ParamsError):
            load(write(tmp_path, content), "seed", Seed)
    with pytest.raises(ParamsError, match="cannot be read"):
        load(tmp_path / "missing.yaml", "seed", Seed)
