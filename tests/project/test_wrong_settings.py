"""Wrong settings through the real ``dvc exp run -S``, and the way back; each wrong value is in tests/configure."""

import copy
import functools
from typing import Any

import pytest
from ruamel.yaml import YAML

from default_params import PARAMS_FILE
from seqlm.configure.settings import check_values
from seqlm.core.errors import ParamsError
from smoke import SMALL, overlaid
from workspace import Workspace

pytestmark = pytest.mark.slow

# As they are typed after -S, and their values.
WRONG = {
    "{a: b}": {"a": "b"}, "nan": float("nan"), "inf": float("inf"), "-1": -1, "0": 0, "1e30": 1e30, "null": None,
    "true": True, "none_such": "none_such", "[[]]": [[]],
}  # fmt: skip


PARAMS: dict[str, Any] = overlaid(YAML(typ="safe", pure=True).load(PARAMS_FILE), copy.deepcopy(SMALL))


def leaves(value: object, path: str = "") -> list[str]:
    """Return the names of all settings, as -S takes them."""
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}".lstrip("."))]
    return [path]


def is_refused(name: str, value: object) -> bool:
    """Whether the typed model refuses this value.

    DVC takes a value that Python finds equal to the present one, as true is to 1.0, for no change, and runs nothing.
    """
    present = functools.reduce(lambda inner, key: inner[key], name.split("."), PARAMS)
    try:
        check_values(overlaid(copy.deepcopy(PARAMS), {name: value}), source="")
    except ParamsError:
        return value != present
    return False


def cases() -> list[tuple[str, str]]:
    """Return the first and the last setting of each section, each with another kind of wrong value where possible."""
    found, values = [], list(WRONG)
    for section, inner in PARAMS.items():
        names = leaves(inner, section)
        for name in dict.fromkeys((names[0], names[-1])):
            typed = next(text for text in values if is_refused(name, WRONG[text]))
            values.append(values.pop(values.index(typed)))
            found.append((name, typed))
    return found


def contents(workspace: Workspace) -> dict[str, bytes]:
    """Return the content of every file that the pipeline made."""
    files = [path for name in ("data", "reports") for path in (workspace.folder / name).rglob("*") if path.is_file()]
    return {str(path.relative_to(workspace.folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(("name", "typed"), cases(), ids=lambda text: text)
def test_a_wrong_setting_ends_with_one_line_and_two_commands_restore(
    name: str, typed: str, workspace: Workspace
) -> None:
    before = contents(workspace)
    result = workspace.run("dvc", "exp", "run", "--set-param", f"{name}={typed}", check=False)
    assert result.returncode != 0
    if "Invalid `--set-param` value" not in result.stderr:  # DVC itself refuses a list in place of a mapping
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert line.startswith("error: params.yaml: ")
        assert name.rpartition(".")[2] in line
        assert "`make restore` goes back to the last commit" in result.stderr
    assert "Traceback" not in result.stderr
    # The stage that failed removed its outputs and left no temporary file.
    assert not [path for path in contents(workspace) if path.endswith(".part")]
    go_back(workspace)
    assert contents(workspace) == before


@pytest.mark.parametrize("name", ["no_such_section", "train.no_such_setting", "runs.plain.no_such_setting"])
def test_an_unknown_setting_ends_with_one_line(name: str, workspace: Workspace) -> None:
    result = workspace.run("dvc", "exp", "run", "--set-param", f"+{name}=1", check=False)
    assert result.returncode != 0
    assert f"error: params.yaml: {name}: unknown setting" in result.stderr
    go_back(workspace)


def go_back(workspace: Workspace) -> None:
    workspace.show_changed_settings()
    workspace.git("checkout", "params.yaml", "dvc.lock", "reports")
    workspace.run("dvc", "checkout")
    assert workspace.git("status", "--porcelain") == ""
