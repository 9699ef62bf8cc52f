"""A wrong value of every setting, through the real `dvc exp run -S`, and the way back."""

import copy
import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from default_params import PARAMS_FILE
from seqlm.configure.settings import check_whole
from seqlm.core.errors import ParamsError
from smoke import SMALL, overlaid
from workspace import Workspace, finished

pytestmark = pytest.mark.slow

# As they are typed behind -S, and what they are then.
WRONG = {
    "{a: b}": {"a": "b"}, "nan": float("nan"), "inf": float("inf"), "-1": -1, "0": 0, "1e30": 1e30, "null": None,
    "[[]]": [[]], "true": True, "none_such": "none_such",
}  # fmt: skip


def settings(value: object, path: str = "") -> Iterator[str]:
    """Yield the names of all settings, as -S takes them."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from settings(inner, f"{path}.{key}".lstrip("."))
    else:
        yield path


def small_params() -> dict[str, Any]:
    # A copy: who changes what lies inside these settings must not change those of the next test.
    found: dict[str, Any] = overlaid(YAML().load(PARAMS_FILE.read_text()), copy.deepcopy(SMALL))
    return found


def refused(name: str, value: object, folder: Path) -> bool:
    """Whether the typed model refuses this value; some settings may be null, or 0.

    DVC takes a value that Python finds equal to the present one, as true is to 1.0, for no
    change at all, and starts no stage that could refuse it.
    """
    present = functools.reduce(lambda inner, key: inner[key], name.split("."), small_params())
    if value == present:
        return False
    with (folder / "params.yaml").open("w") as file:
        YAML().dump(overlaid(small_params(), {name: value}), file)
    try:
        check_whole(folder / "params.yaml")
    except ParamsError:
        return True
    return False


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A committed workspace in which the pipeline ran once."""
    workspace = finished(tmp_path_factory.mktemp("settings"), SMALL)
    workspace.commit("A run")
    return workspace


def results(workspace: Workspace) -> dict[str, bytes]:
    """Return what every file holds that the pipeline made."""
    folders = ("data", "reports")
    files = [path for name in folders for path in sorted((workspace.folder / name).rglob("*")) if path.is_file()]
    return {str(path.relative_to(workspace.folder)): path.read_bytes() for path in files}


# Kinds of wrong values take turns, so that every kind meets many settings.
TURNS = [(name, turn) for turn, name in enumerate(settings(small_params()))]


@pytest.mark.parametrize(("name", "turn"), TURNS, ids=[name for name, _ in TURNS])
def test_a_wrong_setting_ends_with_one_line_and_two_commands_restore(
    name: str, turn: int, workspace: Workspace, tmp_path: Path
) -> None:
    before = results(workspace)
    candidates = itertools.islice(itertools.cycle(WRONG), turn, turn + len(WRONG))
    for typed in (text for text in candidates if refused(name, WRONG[text], tmp_path)):
        result = workspace.run("dvc", "exp", "run", "--set-param", f"{name}={typed}", check=False)
        # DVC itself refuses a list in place of a mapping, before any stage could.
        if "Invalid `--set-param` value" not in result.stderr:
            break
    assert result.returncode != 0, typed
    said = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(said) == 1, result.stderr
    assert said[0].startswith("error: params.yaml: "), said
    assert name.rpartition(".")[2] in said[0], said
    assert "Traceback" not in result.stderr
    assert "`make restore` goes back to the last commit" in result.stderr
    # The stage that failed removed its outputs and made none; no temporary file is left.
    assert not [path for path in results(workspace) if path.endswith(".part")]
    workspace.show_changed_settings()
    workspace.run("git", "checkout", "params.yaml", "dvc.lock", "reports")
    workspace.run("dvc", "checkout")
    assert results(workspace) == before
    assert workspace.run("git", "status", "--porcelain").stdout == ""


@pytest.mark.parametrize("name", ["no_such_section", "train.no_such_setting", "runs.plain.no_such_setting"])
def test_an_unknown_setting_ends_with_one_line(name: str, workspace: Workspace) -> None:
    result = workspace.run("dvc", "exp", "run", "--set-param", f"+{name}=1", check=False)
    assert result.returncode != 0
    assert f"error: params.yaml: {name}: unknown setting" in result.stderr
    workspace.show_changed_settings()
    workspace.run("git", "checkout", "params.yaml", "dvc.lock", "reports")
    workspace.run("dvc", "checkout")
    assert workspace.run("git", "status", "--porcelain").stdout == ""
