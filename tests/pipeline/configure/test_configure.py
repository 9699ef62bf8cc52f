"""The configure stage: it checks every setting, resolves each run, and fingerprints the code of stages."""

import ast
import copy
import json
import re
from functools import reduce
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from default_params import PARAMS_FILE
from seqlm.core.errors import ParamsError
from seqlm.core.settings import read_params
from seqlm.networks.architectures import ARCHITECTURES
from seqlm.pipeline.configure.fingerprints import SHARED_SCRIPTS, fingerprints
from seqlm.pipeline.configure.settings import resolve_runs
from smoke import ROOT, change_params, overlaid
from stages_by_hand import RunStage, refused, succeeded

PARAMS = read_params(PARAMS_FILE)
WRONG = [{"a": "mapping"}, float("nan"), float("inf"), 10**30, "\x00" * 10_001]
# Settings that must be positive integers or numbers, or seeds.
NUMBERS = {"seed", "num_threads", "lr", "num_epochs", "batch_size", "tau"}
NOT_NUMBERS = [-1, True, "1", None, [1]]
CHAR = {"token": "char"}


def leaves(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}".lstrip("."))]
    return [path]


def changed(name: str, value: object) -> dict[str, Any]:
    """Return the settings with one of them set to ``value``, or without it if that is Ellipsis."""
    params: dict[str, Any] = overlaid(copy.deepcopy(PARAMS), {name: value})
    if value is ...:
        *parents, key = name.split(".")
        del reduce(dict.__getitem__, parents, params)[key]
    return params


def refusal(params: dict[str, Any]) -> str:
    """Return the message with which settings are refused; empty if they are accepted."""
    try:
        resolve_runs(params, source="params.yaml")
    except ParamsError as error:
        return str(error)
    return ""


def test_each_run_gets_its_own_config_file(run_stage: RunStage, tmp_path: Path) -> None:
    (tmp_path / "data/configs").mkdir()
    (tmp_path / "data/configs/gone.json").write_text("{}")
    change_params(tmp_path / "params.yaml", {"launcher": "python -X utf8"})
    succeeded(run_stage("configure"))
    files = {path.stem: json.loads(path.read_text())["config"] for path in (tmp_path / "data/configs").iterdir()}
    assert set(files) == set(PARAMS["runs"])
    assert files["scratch-random"]["sampling"] == "random"
    assert files["scratch-random"]["lr"] == PARAMS["train"]["lr"] != files["lstm"]["lr"]
    assert files["lstm"]["seed"] == PARAMS["seed"]


@pytest.mark.parametrize("name", leaves(PARAMS))
def test_a_setting_refuses_every_wrong_value(name: str) -> None:
    section, key = name.split(".")[0], name.split(".")[-1]
    for value in WRONG + (NOT_NUMBERS if key in NUMBERS else []):
        # In one line that names the section.
        assert re.fullmatch(f".*{section}.*", refusal(changed(name, value))), repr(value)[:40]
    neighbour = ".".join([*name.split(".")[:-1], "no_such_setting"])
    assert re.search("unknown setting|should be", refusal(changed(neighbour, 1)))
    # Any run may leave out any setting.
    assert section == "runs" or re.search("missing|at least", refusal(changed(name, ...)))


def test_the_settings_of_the_project_and_of_the_tests_are_accepted_and_have_equal_names() -> None:
    project = read_params(ROOT / "params.yaml")
    resolve_runs(project, source="params.yaml")
    resolve_runs(PARAMS, source="tests/helpers/params.yaml")
    # An experiment may have added runs.
    names, in_tests = ({name for name in leaves(of) if not name.startswith("runs.")} for of in (project, PARAMS))
    assert names == in_tests, "run python tests/helpers/default_params.py"


def test_a_run_overrides_the_defaults() -> None:
    own = {"lr": 0.25, "seed": 7, "device": "cuda", "num_threads": 1}
    top = {"seed": 3, "device": "auto", "num_threads": 4}
    runs = resolve_runs(PARAMS | top | {"runs": {"a": CHAR | own, "b": {"token": "word"}}}, source="params.yaml")
    assert {key: getattr(runs["a"], key) for key in own} == own
    assert {key: getattr(runs["b"], key) for key in own} == top | {"lr": PARAMS["train"]["lr"]}
    assert runs["a"].run == "a"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"runs": {}}, "runs: Dictionary should have at least 1 item"),
        *(
            ({"runs": {name: {}}}, f"{name!r:.80}: a run's name has 1 to 100 characters: letters A to Z")
            for name in ("char-x", "../up", "", "x" * 101, "-x", "end.")
        ),
        ({"runs": {True: {}}}, "runs.1 = True: should be a valid string"),
        ({"runs": {"a": 3}}, "runs.a = 3: should be a valid dictionary"),
        ({"runs": {"a": None}}, "runs.a.token: missing"),
        # What would be overridden.
        *(
            ({"train": PARAMS["train"] | {key: 1}}, f"train: must not have the key {key}: it belongs outside train")
            for key in ("run", "token", "device", "seed", "num_threads")
        ),
        *(
            ({"runs": {"a": CHAR | own}}, f"runs.a{complaint}")
            for own, complaint in (
                ({"seed": None}, ".seed = None: should be a valid integer"),
                ({"run": "y"}, ": must not have the key run: the entry's own name is the run"),
                ({"launcher": "python"}, ".launcher: unknown setting"),
                ({"format": 1}, ".format: unknown setting"),
                ({"num_layers": 2}, ": model scratch needs num_layers: 1"),
                ({"model": "lstm", "truncation": "full"}, ": model lstm needs truncation: regular"),
                (
                    {"checkpoint": "best", "eval_every": 1000},
                    ": checkpoint: best needs an evaluation on the validation",
                ),
                ({"warmup_share": 0.1}, ": warmup_share has no effect with schedule: constant"),
                ({"weight_decay": 0.1}, ": weight_decay has no effect with optimizer: sgd"),
            )
        ),
    ],
)
def test_runs_need_good_names_and_settings_that_are_known_and_fit_together(changes: dict, complaint: str) -> None:
    message = refusal(PARAMS | changes)
    assert message.startswith("params.yaml: ")
    assert complaint in message


@pytest.mark.parametrize("options", [(), ("--check",)])
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("^    token: char\n", "", "token: missing"),
        ("^runs:", "run:", "params.yaml: run: unknown setting: did you mean runs?"),
        (r"\A(.|\n)*", "", "params.yaml: must be a mapping"),
        ("^  lr: .*$", "  lr: 0,5", "train.lr = '0,5': should be a valid number"),
        ("^  lr: ", "  lrr: ", "train.lrr: unknown setting: did you mean lr?"),
        ("^runs:$", "runs:\n  my run: {token: char}", "runs.my run"),
        ("^runs:$", "runs:\n  LSTM: {token: char}", "LSTM and lstm differ only in small and capital letters"),
        ("^seed: .*", "seed: -3", "error: params.yaml: seed = -3: should be greater than or equal to 0\n"),
        ("^    max_order: 3", "    max_order: 4", "laplace.max_order must not exceed max_order of any"),
        ("^    epsilons: .*", "    epsilons: [1]", "laplace.epsilons must hold one value for each order up to 3"),
        # The launcher is checked before the first training needs it.
        ("^launcher: .*", "launcher: pyton", "launcher = 'pyton': no such program on PATH"),
        ("^launcher: .*", 'launcher: "\'pyton"', 'launcher = "\'pyton": No closing quotation'),
        ("^device: cpu", "device: mps", "device: mps: this machine has none"),
        ("^    token: char$", "    token: char\n    device: mps", "device: mps: this machine has none"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(
    options: tuple[str, ...], old: str, new: str, complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    params = tmp_path / "params.yaml"
    params.write_text(re.sub(old, new, params.read_text(), count=1, flags=re.MULTILINE))
    before = sorted(tmp_path.rglob("*"))
    refused(run_stage("configure", *options), 5 if "device" in complaint else 2, complaint)
    assert sorted(tmp_path.rglob("*")) == before


SCRIPT = """
import click
from seqlm.tools import halve

@click.option("--size", default=1, help="The size.")
def main(size):
    from seqlm.models import fit
    click.echo(f"size {size}")
    return fit(halve(size))
"""
MODELS = """
'''Models.'''
from typing import TYPE_CHECKING
from seqlm.core.errors import ParamsError
if TYPE_CHECKING:
    from seqlm.types import Number

def fit(value):
    if value < 0:
        raise ParamsError(f"{value}: must not be negative")
    return log(2 * value)  # of course
"""


def modules(text: str) -> dict[str, str]:
    return {line.split()[1]: line.split()[0] for line in text.splitlines()}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    files = {
        "stages/fit.py": SCRIPT, "src/seqlm/models.py": MODELS, "src/seqlm/tools.py": "def halve(x): return x / 2",
        "src/seqlm/other.py": "KIND = 1", "src/seqlm/types.py": "Number = float",
        "src/seqlm/core/errors.py": "class ParamsError(Exception): pass",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    return tmp_path


def test_code_is_what_a_script_imports_but_errors_and_types(sources: Path) -> None:
    found = fingerprints(sources, {"mine": "seqlm.other"})
    assert set(modules(found["fit.txt"])) == {"stages.fit", "seqlm.models", "seqlm.tools"}
    assert set(modules(found["runs/mine.txt"])) == {"seqlm.other"}


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("stages/fit.py", "The size.", "Size.", False),
        ("stages/fit.py", "size {size}", "{size:.3f}!", False),
        ("stages/fit.py", "default=1", "default=2", True),
        ("src/seqlm/models.py", "Models.", "All models.", False),
        ("src/seqlm/models.py", "  # of course", "", False),
        ("src/seqlm/models.py", "must not be negative", "is negative", False),
        ("src/seqlm/models.py", "value < 0", "value < 1", True),
        ("src/seqlm/models.py", "2 * value", "3 * value", True),
        ("src/seqlm/models.py", "    return value", "\n\n    return (value)", False),
        ("src/seqlm/tools.py", "x / 2", "x / 2.0", True),
        ("src/seqlm/core/errors.py", "pass", "exit_code = 2", False),
        ("src/seqlm/types.py", "float", "int", False),
    ],
)
def test_only_what_can_change_a_number_changes_a_fingerprint(
    file: str, old: str, new: str, changes: bool, sources: Path
) -> None:
    before, path = fingerprints(sources, {}), sources / file
    path.write_text(path.read_text().replace(old, new))
    assert (fingerprints(sources, {}) != before) == changes


def test_the_script_that_stages_share_only_dispatches() -> None:
    # Their fingerprints leave it out, so it may do nothing for them but call the modules that do their work.
    tree = ast.parse((ROOT / "stages" / "score.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    work = {
        name
        for name in imported
        if name.startswith("seqlm.") and not name.endswith((".settings", ".layout", ".errors", ".kinds", ".harness"))
    }
    assert work == set(SHARED_SCRIPTS.values())


def test_a_run_depends_on_its_own_kind_of_network_and_on_no_other() -> None:
    found = fingerprints(ROOT, {"mine": ARCHITECTURES["transformer"].network.partition(":")[0]})
    assert "seqlm.networks.transformer" in modules(found["runs/mine.txt"])
    assert "seqlm.networks.transformer" not in modules(found["train.txt"])
    # A new kind is a new entry, and reruns nothing.
    assert "seqlm.networks.architectures" not in modules(found["train.txt"])
    assert "seqlm.networks.framework" in modules(found["gradients.txt"])
