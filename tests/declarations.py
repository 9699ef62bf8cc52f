"""Compares what each stage declares in ``dvc.yaml`` with the files it opens and the settings it reads."""

import ast
from pathlib import Path

from workspace import Workspace

# What any stage may open: the settings, and folders that hold no results.
FREE = {"params.yaml", "src/seqlm/__init__.py", "checkpoints", "data/work", ".venv", "tests/tracing/sitecustomize.py"}

# What a stage opens only if a mixture has a member that needs it.
_OF_MIXTURES = {"generate": {"data/text/train.txt"}}


def require_declared_files(workspace: Workspace, unneeded: frozenset[str] = frozenset()) -> None:
    """Raise AssertionError unless every stage opened all that it declares except ``unneeded``, and nothing else."""
    wrong = []
    for name, stage in workspace.lock().items():
        opened = workspace.traced[name]["opened"]
        deps = {dep["path"] for dep in stage.get("deps", [])}
        outs = {out["path"] for out in stage.get("outs", [])}
        writes = {str(Path(out).parent) for out in outs} | outs
        # Python lists the folders that it imports from; a folder that is only listed needs no declaration.
        read = {path for path in opened if not path.endswith("/") and not is_only_a_docstring(workspace.folder / path)}
        wrong += [f"{name} opens {path}" for path in read if not inside(path, deps | FREE | writes)]
        needed = deps - unneeded - _OF_MIXTURES.get(name, set())
        unopened = {dep for dep in needed if not any(inside(path.rstrip("/"), {dep}) for path in opened)}
        wrong += [f"{name} never opens its dependency {dep}" for dep in unopened]
    assert not wrong, "\n".join(sorted(wrong))


def inside(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def is_only_a_docstring(path: Path) -> bool:
    if path.name != "__init__.py":
        return False
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


def require_declared_settings(workspace: Workspace) -> None:
    """Raise AssertionError unless every stage read the settings that it declares, and no others."""
    wrong = []
    for name, stage in workspace.lock().items():
        declared = {key.partition(".")[0] for key in stage.get("params", {}).get("params.yaml", {})}
        if any(dep["path"] == "params.yaml" for dep in stage.get("deps", [])):
            declared.add("*")
        if (read := set(workspace.traced[name]["settings"])) != declared:
            wrong.append(f"{name} declares {sorted(declared)} and reads {sorted(read)}")
    assert not wrong, "\n".join(wrong)
