"""Fingerprints of the code of each stage, so that DVC reruns a stage only if its numbers may have
changed.

The code of a stage is its script, or for the stages in :data:`SHARED_SCRIPTS` the module that does
the work, and all modules of this project that it imports, directly or not, in functions too. What
scripts share in ``stages`` is not part of it: options, messages, exit codes. A fingerprint leaves
out comments, docstrings, layout, type-checking imports, and the words of messages and help texts.
Modules in :data:`CANNOT_CHANGE_NUMBERS` have none.
"""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

CANNOT_CHANGE_NUMBERS = {
    "seqlm.core.errors": "the kinds of errors",
    "seqlm.core.layout": "paths: dvc.yaml names the same ones, so their change reruns a stage",
    "seqlm.core.progress": "times for the person at the terminal",
    "seqlm.pipeline.dvc_watchdog": "ends a stage with DVC",
    "seqlm.pipeline.harness": "options, messages and exit codes of all scripts",
    "seqlm.networks.architectures": "the names of networks: a run has its own module",
    "seqlm.train.callbacks": "what is shown during training, and when checkpoints are saved",
}
"""Modules of which no change reruns a stage, and what they do."""
SHARED_SCRIPTS = {
    "score": "seqlm.pipeline.score.networks",
    "score-ngrams": "seqlm.pipeline.score.ngrams",
}
"""Stages that share one script, and the module that does the work of each."""
_WITHOUT_FINGERPRINT = {"configure", "environment"}
"""Files in ``stages`` that have no fingerprint: the stage that writes them, and what is not a
stage."""
IMPORTED_BY_NAME = {"gradients": {"seqlm.networks.framework"}}
"""Modules that a stage imports by name, whatever the runs."""
_PRINTING = {"echo", "log", "print", "warn"}
"""Functions that print their arguments."""


def fingerprints(root: Path, entry_of_run: Mapping[str, str]) -> dict[str, str]:
    """Return a text for each stage, ``STAGE.txt``, and one for each run, ``runs/RUN.txt``: hashes
    of its modules.

    ``root`` holds ``src`` and ``stages``. ``entry_of_run``: run -> the module of its network, which
    no other module imports by name.
    """
    names = {path.stem for path in (root / "stages").glob("*.py")} - _WITHOUT_FINGERPRINT
    scripts = {name: f"stages.{name}" for name in sorted(names)}
    entries = {
        **scripts,
        **SHARED_SCRIPTS,
        **{f"runs/{run}": entry for run, entry in entry_of_run.items()},
    }
    hashes: dict[str, tuple[str, set[str]]] = {}
    return {
        f"{name}.txt": "".join(
            f"{hashes[module][0]} {module}\n"
            for module in sorted(_closure(root, {entry, *IMPORTED_BY_NAME.get(name, ())}, hashes))
        )
        for name, entry in entries.items()
    }


def _closure(root: Path, entries: set[str], read: dict[str, tuple[str, set[str]]]) -> set[str]:
    """Return some modules and all that they import; ``read`` keeps the hash and the imports of
    each."""
    found, waiting = set[str](), set(entries)
    while waiting:
        module = waiting.pop()
        folder = root if module.startswith("stages.") else root / "src"
        path = folder.joinpath(*module.split(".")).with_suffix(".py")
        if module in found or module in CANNOT_CHANGE_NUMBERS or not path.is_file():
            continue
        if module not in read:
            code = _WhatCounts().visit(ast.parse(path.read_bytes()))
            read[module] = hashlib.sha256(_as_text(code).encode()).hexdigest(), set(_imports(code))
        found.add(module)
        waiting |= read[module][1]
    return found


def _imports(code: ast.AST) -> Iterator[str]:
    """Yield the names of the modules that code imports, and names that are not modules."""
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


class _WithoutWords(ast.NodeTransformer):
    """Removes strings."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST | None:
        """Remove a string."""
        return None if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:  # noqa: ARG002 (its kind is enough)
        """Remove an f-string."""
        return


class _WhatCounts(ast.NodeTransformer):
    """Removes what cannot change a number."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove a docstring."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Remove imports for type checkers."""
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Remove the message of an error."""
        return _WithoutWords().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Remove what is printed, and help texts."""
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name in _PRINTING:
            return _WithoutWords().generic_visit(node)
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "help"]
        return self.generic_visit(node)


def _as_text(value: Any) -> str:
    """Return a syntax tree as text; unlike that of ``ast.dump``, it does not depend on the version
    of Python."""
    if isinstance(value, ast.AST):
        fields = [
            f"{name}={_as_text(child)}"
            for name, child in ast.iter_fields(value)
            if child not in (None, [])
        ]
        return f"{type(value).__name__}({','.join(fields)})"
    return f"[{','.join(map(_as_text, value))}]" if isinstance(value, list) else repr(value)
