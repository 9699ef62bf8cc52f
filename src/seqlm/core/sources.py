"""Which code decides a result: a module and all that it imports, directly or not, in functions too.

DVC reruns a stage, a checkpoint is used, and compiled loops are found again by this rule. The hash
of a module leaves out comments, docstrings, layout, type-checking imports, and the words of
messages and help texts. Modules in :data:`IGNORED_MODULES` have none.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE_FOLDER = Path(__file__).parents[2]
"""The folder that this package is in."""
IGNORED_MODULES = {
    "seqlm.core.errors",
    "seqlm.core.layout",  # dvc.yaml names the same paths, so their change reruns a stage
    "seqlm.core.progress",
    "seqlm.core.sources",
    "seqlm.pipeline.dvc_watchdog",
    "seqlm.pipeline.harness",
    "seqlm.networks.architectures",  # the code of a run has the module of its own kind
    "seqlm.pipeline.train.interrupts",  # when a training stops before its end
    "seqlm.train.callbacks",  # what is shown during training, and when checkpoints are saved
}
"""Modules whose changes change no number."""
_PRINTING = {"echo", "log", "print", "warn"}
"""Functions that print their arguments."""
_FOR_TYPES = re.compile(r"(?m)^if TYPE_CHECKING:.*\n(?:(?:[ \t].*)?\n)*")
_IMPORT = re.compile(r"(?m)^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))")


def source_files(entries: Iterable[str], folders: Sequence[Path]) -> dict[str, Path]:
    """Return the files of some modules and of all that they import, by name and sorted; others than
    those below one of the folders are left out."""

    @cache
    def file_of(module: str) -> Path | None:
        paths = (folder.joinpath(*module.split(".")).with_suffix(".py") for folder in folders)
        return next(filter(Path.is_file, paths), None)

    files, waiting = dict[str, Path](), set(entries)
    while waiting:
        module = waiting.pop()
        path = file_of(module)
        if path and module not in files and module not in IGNORED_MODULES:
            files[module] = path
            for other, names in _imports(path.read_text(encoding="utf-8")):
                # A name in a package may be a module; one in a module is not.
                waiting |= {other} if file_of(other) else {f"{other}.{name}" for name in names}
    return dict(sorted(files.items()))


@cache
def _imports(code: str) -> list[tuple[str, list[str]]]:
    """Return the modules or packages that code imports, each with the names that it takes."""
    found = _IMPORT.findall(_FOR_TYPES.sub("", code))
    return [(module or other, re.findall(r"\w+", names)) for module, names, other in found]


def code_hash(path: Path) -> str:
    """Return the SHA-256 of what can change a number in a file."""
    return _code_hash(path.read_bytes())


@cache
def _code_hash(code: bytes) -> str:
    tree = _Normaliser().visit(ast.parse(code))
    return hashlib.sha256(_as_text(tree).encode()).hexdigest()


class _StripStrings(ast.NodeTransformer):
    """Removes strings and f-strings."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST | None:
        return None if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass


class _Normaliser(ast.NodeTransformer):
    """Removes docstrings, imports for type checkers, messages and help texts."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if getattr(node.test, "id", "") == "TYPE_CHECKING" else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return _StripStrings().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if getattr(function, "attr", getattr(function, "id", "")) in _PRINTING:
            return _StripStrings().generic_visit(node)
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "help"]
        return self.generic_visit(node)


def _as_text(value: Any) -> str:
    """Return a syntax tree as text; unlike that of ``ast.dump``, it does not depend on the version
    of Python."""
    if isinstance(value, ast.AST):
        fields = (pair for pair in ast.iter_fields(value) if pair[1] not in (None, []))
        texts = (f"{name}={_as_text(child)}" for name, child in fields)
        return f"{type(value).__name__}({','.join(texts)})"
    return f"[{','.join(map(_as_text, value))}]" if isinstance(value, list) else repr(value)
