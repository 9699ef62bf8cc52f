"""Reads ``params.yaml`` and checks it against typed models.

``params.yaml`` holds every value, the models hold every rule: no model has defaults, so
a value stands in one place only.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from seqlm.core.errors import ParamsError

T = TypeVar("T")

Seed = Annotated[int, Field(ge=0, lt=2**32)]
NumThreads = Annotated[int, Field(ge=1, le=1024)]
Device = Literal["cpu", "cuda", "mps", "auto"]


class Section(BaseModel):
    """A section of ``params.yaml``: unknown keys, nan and infinity are refused, types are strict."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def read_params(path: Path) -> dict[str, Any]:
    """Return the whole of a ``params.yaml`` as plain values (YAML 1.2, as DVC reads it).

    Raises ParamsError where the file is missing, not YAML, or not a mapping.
    """
    try:
        value = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParamsError(f"{path}: cannot be read: {error.strerror}") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise ParamsError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except Exception as error:  # the YAML reader lets many kinds escape: of dates, numbers, nesting
        raise ParamsError(f"{path}: not YAML: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise ParamsError(f"{path}: must be a mapping of section names to settings")
    return value


def load(path: Path, key: str, kind: type[T]) -> T:
    """Return the top-level ``key`` of the params file at ``path``, checked as ``kind``.

    Raises ParamsError, one line that names the key, the value and what is allowed.
    """
    values = read_params(path)
    if key not in values:
        raise ParamsError(f"{path}: {key}: missing")
    return check(values[key], key, kind, source=str(path))


def check(value: object, key: str, kind: type[T], *, source: str) -> T:
    """Return ``value`` as a checked ``kind``; ``key`` and ``source`` name it in the error."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise ParamsError(f"{source}: {describe_first(error, key)}") from error


def describe_first(error: ValidationError, key: str) -> str:
    """Return the first complaint of ``error`` as ``key = value: what is allowed``.

    ``key`` is where the checked value stands, "" for a whole file.
    """
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in (key, *first["loc"]) if part != "")
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if first["type"] == "extra_forbidden":
        return f"{name}: unknown setting (check the spelling)"
    if first["type"] == "missing":
        return f"{name}: missing"
    return f"{name} = {_shown(first['input'])}: {message}"


def _shown(value: object) -> str:
    """Return ``value`` as YAML would write it, cut where it is long."""
    words = {"None": "null", "True": "true", "False": "false"}
    text = words.get(repr(value), repr(value))
    return text if len(text) <= 80 else text[:77] + "..."
