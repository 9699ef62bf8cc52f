"""What each stage declares in ``dvc.yaml``, held against what it opens and which settings it reads."""

import ast
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

from stages_by_hand import in_this_process
from workspace import Workspace

# By the workspace's own code. All stages run in one process: most of what each costs is to import PyTorch.
TRY_SETTINGS = """
import sys
sys.path[:0] = ["tests", "tools"]
import json
from declarations import wrong_settings
print(json.dumps(list(wrong_settings())))
"""
# A stage may look at params.yaml, at its checkpoints and its place of work.
FREE = {"params.yaml", "checkpoints", "data/work", ".venv", "tests/tracing/sitecustomize.py"}


def require_declared_files(workspace: Workspace) -> None:
    """Raise AssertionError unless every stage opened what it declares, and nothing else."""
    for name, stage in workspace.lock().items():
        opened = workspace.opened[name]
        deps = {dep["path"] for dep in stage.get("deps", [])}
        outs = {out["path"] for out in stage.get("outs", [])}
        writes = {str(Path(out).parent) for out in outs} | outs
        # Python lists the folders that it imports from; what is only listed needs no declaration.
        read = {path for path in opened if not path.endswith("/") and not is_bare(workspace.folder / path)}
        undeclared = {path for path in read if not inside(path, deps | FREE | writes)}
        assert not undeclared, f"{name} opens {undeclared} without declaring it"
        unopened = {dep for dep in deps if not any(inside(path.rstrip("/"), {dep}) for path in opened)}
        assert not unopened, f"{name} declares {unopened} and never opens it"


def inside(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def is_bare(path: Path) -> bool:
    """Whether this is a package's own file, with a docstring alone."""
    if path.name != "__init__.py":
        return False
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


def require_declared_settings(workspace: Workspace) -> None:
    """Raise AssertionError unless every stage reads the settings that it declares, and no others.

    Leaves the settings as they were; the results are those of a run by hand.
    """
    params = workspace.folder / "params.yaml"
    before = params.read_bytes()
    try:
        said = workspace.run("python", "-c", TRY_SETTINGS)
    finally:
        params.write_bytes(before)
    assert json.loads(said.stdout.splitlines()[-1]) == []


def wrong_settings() -> Iterator[str]:
    """Yield what is wrong with the declared settings: each stage runs here with those alone, and without each."""
    folder = Path.cwd()
    params = folder / "params.yaml"
    whole = YAML(typ="safe", pure=True).load(params)
    run = in_this_process(folder)
    for name, stage in YAML(typ="safe", pure=True).load(folder / "dvc.lock")["stages"].items():
        declared = {key.partition(".")[0] for key in stage.get("params", {}).get("params.yaml", {})}
        if any(dep["path"] == "params.yaml" for dep in stage.get("deps", [])):
            if name != "configure":
                yield f"{name} depends on the whole of params.yaml"
            continue
        words = shlex.split(stage["cmd"])
        place = next(place for place, word in enumerate(words) if word.startswith("stages/"))
        script, arguments = Path(words[place]).stem, words[place + 1 :]
        params.write_text(json.dumps({key: whole[key] for key in declared}))
        result = run(script, *arguments)
        if result.returncode:
            yield f"{name} needs more than {sorted(declared)}: {result.stderr}"
        for key in declared:
            params.write_text(json.dumps({other: whole[other] for other in declared - {key}}))
            result = run(script, *arguments)
            if (result.returncode, f"{key}: missing" in result.stderr) != (2, True):
                yield f"{name} never reads {key}: code {result.returncode}, {result.stderr}"
