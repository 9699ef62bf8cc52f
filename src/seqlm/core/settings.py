"""Reads ``params.yaml`` and checks it against typed models.

``params.yaml`` has every value, the models have every rule: no model has defaults, so each
value is in one place only.
"""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from ruamel.yaml import YAML

from seqlm.core.errors import ParamsError

T = TypeVar("T")

Seed = Annotated[int, Field(ge=0, lt=2**32)]
NumThreads = Annotated[int, Field(ge=1, le=1024)]
Device = Literal["cpu", "cuda", "mps", "auto"]

_ALTERNATIVE = re.compile(r"[\[(]|^(constrained-)?(int|float|str|bool)$")
"""In the library's names for the alternatives of a union."""


class Section(BaseModel):
    """A section of ``params.yaml``: unknown keys, NaN and infinity are refused, types are
    strict."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def read_params(path: Path) -> dict[str, Any]:
    """Return the whole of a ``params.yaml`` as plain values (YAML 1.2, as DVC reads it).

    Raises ParamsError if the file is missing, not YAML, or not a mapping.
    """
    try:
        value = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParamsError(f"{path}: cannot be read: {error.strerror}") from error
    except Exception as error:  # of many kinds, for dates, numbers and nesting
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ParamsError(f"{path}: not YAML: {problem}") from error
    if not isinstance(value, dict):
        raise ParamsError(f"{path}: must be a mapping of section names to settings")
    return value


def load(path: Path, key: str, model: type[T]) -> T:
    """Return the top-level ``key`` of the params file at ``path``, checked as ``model``.

    Raises ParamsError, one line that names the key, the value and what is allowed.
    """
    values = read_params(path)
    if key not in values:
        raise ParamsError(f"{path}: {key}: missing")
    return check(values[key], key, model, source=str(path))


def check(value: object, key: str, model: type[T], *, source: str, strict: bool | None = True) -> T:
    """Return ``value`` as a checked ``model``; ``key`` ("" for a whole file) and ``source`` name it
    in errors. ``strict`` None leaves to the model which types it converts."""
    try:
        return TypeAdapter(model).validate_python(value, strict=strict)
    except ValidationError as error:
        raise ParamsError(f"{source}: {_describe(error, key, model)}") from error


def check_argument(value: Any, name: str, kind: Any, *, function: str) -> Any:
    """Return an argument of a public function, if it is of a kind. Raises ParamsError for others,
    text for a number."""
    return check(plain_number(value), name, kind, source=function)


def plain_number(value: Any) -> Any:
    """Return a number of NumPy as one of Python; other values as they are."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _describe(error: ValidationError, key: str, model: Any) -> str:
    """Return what is wrong with the first setting in one line.

    An unknown setting comes before a missing one, which may be the same one, misspelt.
    """
    found = [(_name(details, key), details) for details in error.errors(include_url=False)]
    found.sort(key=lambda one: one[1]["type"] != "extra_forbidden")
    # The alternatives of a union complain one by one: the deepest complaint is about the one that
    # was meant.
    name = max((other for other, _ in found if f"{other}.".startswith(f"{found[0][0]}.")), key=len)
    same = [details for other, details in found if other == name]
    if same[0]["type"] == "missing":
        return f"{name}: missing"
    if same[0]["type"] == "extra_forbidden":
        missing = [details["loc"][-1] for _, details in found if details["type"] == "missing"]
        unknown = str(same[0]["loc"][-1])
        near = get_close_matches(unknown, map(str, missing), 1, 0)
        near += get_close_matches(unknown, _all_names(model), 1, 0.65)
        return f"{name}: unknown setting" + (f": did you mean {near[0]}?" if near else "")
    words = dict.fromkeys(
        details["msg"].removeprefix("Value error, ").removeprefix("Input ") for details in same
    )
    value = same[0]["input"]
    shown = "" if isinstance(value, dict) else f" = {value!r:.80}"
    problem = " or ".join(words).replace(" or should be ", " or ")
    return f"{name}{shown}: {problem}" if name else problem


def _all_names(model: Any) -> set[str]:
    """Return the names of all settings of a model and of those in it."""
    schema = TypeAdapter(model).json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", ())}


def _name(details: Any, key: str) -> str:
    parts = [str(part) for part in (key, *details["loc"]) if not _ALTERNATIVE.search(str(part))]
    return ".".join(part for part in parts if part)
