"""Compares what each stage declares in ``dvc.yaml`` with the files it opens and the settings it reads."""

import ast
from pathlib import Path

from seqlm.core.sources import IGNORED_MODULES
from smoke import ROOT
from workspace import Workspace

# What any stage may open: the settings, and folders that hold no results.
FREE = {"params.yaml", "dvc.yaml", "checkpoints", ".venv", "tests/tracing/sitecustomize.py"}
# Code that any stage may import: what cannot change a number, and a script that only calls what several stages do.
FREE_CODE = {f"src/{name.replace('.', '/')}.py" for name in IGNORED_MODULES}
FREE_CODE |= {"stages/environment.py", "stages/score.py", "src/seqlm/__init__.py"}
FREE_CODE |= {"tests/tracing/sitecustomize.py"}
# And modules that are only a docstring.
_MARKERS = [path for path in (ROOT / "src").rglob("__init__.py") if len(ast.parse(path.read_text("utf-8")).body) == 1]
FREE_CODE |= {path.relative_to(ROOT).as_posix() for path in _MARKERS}

# What a stage opens only if a mixture has a member that needs it, or if the text is that of the benchmarks.
_SOMETIMES = {
    "generate": {"data/text/train.txt"},
    "report": {"benchmarks/results/curves_data.csv", "benchmarks/results/curves_time.csv"},
}


def require_declared_files(workspace: Workspace) -> None:
    """Raise AssertionError unless every stage opened all that it declares, and nothing else.

    All code that it imported must be in the fingerprints that it declares.
    """
    wrong = []
    for name, stage in workspace.lock().items():
        opened, imported = (workspace.traced[name][key] for key in ("opened", "imported"))
        deps = {dep["path"] for dep in stage.get("deps", [])}
        outs = {out["path"] for out in stage.get("outs", [])}
        writes = {str(Path(out).parent) for out in outs} | outs
        fingerprints = {dep for dep in deps if inside(dep, {"data/code"})}
        code = {path for dep in fingerprints for path in code_in(workspace.folder / dep)} | deps | FREE_CODE
        wrong += [f"{name} imports {path}" for path in imported if not inside(path, code)]
        # Python lists the folders that it imports from; a folder that is only listed needs no declaration.
        read = {path for path in opened if not path.endswith(("/", ".py"))}
        wrong += [f"{name} opens {path}" for path in read if not inside(path, deps | FREE | writes)]
        needed = deps - fingerprints - _SOMETIMES.get(name, set())
        unopened = {dep for dep in needed if not any(inside(path.rstrip("/"), {dep}) for path in opened)}
        wrong += [f"{name} never opens its dependency {dep}" for dep in unopened]
    assert not wrong, "\n".join(sorted(wrong))


def code_in(fingerprint: Path) -> set[str]:
    """Return the files whose hashes a fingerprint, or a folder of fingerprints, has."""
    files = fingerprint.rglob("*.txt") if fingerprint.is_dir() else [fingerprint]
    modules = [line.split()[1] for file in files for line in file.read_text().splitlines()]
    return {f"{'' if name.startswith('stages.') else 'src/'}{name.replace('.', '/')}.py" for name in modules}


def inside(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


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
