"""Reads ``params.yaml`` and checks it against typed models.

``params.yaml`` has every value, the models have every rule: no model has defaults, so each
value is in one place only.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from seqlm.core.errors import ParamsError

T = TypeVar("T")

Seed = Annotated[int, Field(ge=0, lt=2**32)]
NumThreads = Annotated[int, Field(ge=1, le=1024)]
Device = Literal["cpu", "cuda", "mps", "auto"]

_PLAIN = {
    "missing": "missing",
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "string_type": "should be text",
    "list_type": "should be a list",
    "dict_type": "should be a mapping of settings",
    "model_type": "should be a mapping of settings",
    "none_required": "should be null",
    "too_short": "should have {min_length} or more entries",
    "too_long": "should have at most {max_length} entries",
    "string_too_short": "should have {min_length} or more characters",
    "string_too_long": "should have at most {max_length} characters",
    "string_pattern_mismatch": "should match the pattern {pattern}",
}
"""Complaints of the library in plain words."""


class Section(BaseModel):
    """A section of ``params.yaml``: unknown keys, NaN and infinity are refused, types are strict."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: Any) -> Any:
        """Refuse an unknown key before a missing one is noticed, which may be the same one, misspelt."""
        for key in values if isinstance(values, dict) else ():
            if key not in cls.model_fields:
                hint = _suggest(str(key), [name for name in cls.model_fields if name not in values], cls.model_fields)
                raise PydanticCustomError("unknown", "unknown setting{hint}", {"key": str(key), "hint": hint})
        return values


def _suggest(unknown: str, missing: list[str], allowed: Iterable[str]) -> str:
    """Return a hint at the setting that was meant: a missing one, or one with a similar name."""
    near = get_close_matches(unknown, missing or list(allowed), 1, 0 if missing else 0.6)
    return f": did you mean {near[0]}?" if near else " (check the spelling)"


def read_params(path: Path) -> dict[str, Any]:
    """Return the whole of a ``params.yaml`` as plain values (YAML 1.2, as DVC reads it).

    Raises ParamsError if the file is missing, not YAML, or not a mapping.
    """
    try:
        value = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParamsError(f"{path}: cannot be read: {error.strerror}") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise ParamsError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except Exception as error:  # the YAML reader lets many other kinds through, for dates, numbers and nesting
        raise ParamsError(f"{path}: not YAML: {type(error).__name__}: {' '.join(str(error).split())}") from error
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


def check(value: object, key: str, model: type[T], *, source: str) -> T:
    """Return ``value`` as a checked ``model``; ``key`` ("" for a whole file) and ``source`` name it in errors."""
    try:
        return TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        raise ParamsError(f"{source}: {_describe(error, value, key)}") from error


def _describe(error: ValidationError, value: Any, key: str) -> str:
    """Return the first complaint of ``error`` in one line."""
    found = [(_path(details, value), details) for details in error.errors(include_url=False)]
    # The alternatives of a union complain one by one: the deepest complaint is about the one that was meant.
    path = max((other for other, _ in found if other[: len(found[0][0])] == found[0][0]), key=len)
    same = [details for other, details in found if other == path]
    message = " or ".join(dict.fromkeys(map(_in_plain_words, same))).replace(" or should be ", " or ")
    if same[0]["type"] == "unknown":
        path = (*path, same[0]["ctx"]["key"])
    name = ".".join(str(part) for part in (key, *path) if part != "")
    if same[0]["type"] in ("unknown", "missing") or isinstance(same[0]["input"], dict):
        return f"{name}: {message}"
    if same[0]["loc"][-1:] == ("[key]",):
        return f"{name}: unknown setting: {message}"
    return f"{name} = {_shown(same[0]['input'])}: {message}"


def _in_plain_words(details: Any) -> str:
    message: str = details["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return _PLAIN[details["type"]].format(**details.get("ctx", {})) if details["type"] in _PLAIN else message


def _path(details: Any, value: Any) -> tuple[Any, ...]:
    """Return where the value of a complaint is, without the library's names for the alternatives of a union."""
    path: list[Any] = []
    for part in details["loc"]:
        if isinstance(value, dict) and (part in value or details["type"] == "missing"):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            continue
        path.append(part)
    return tuple(path)


def _shown(value: object) -> str:
    """Return ``value`` as YAML would write it, shortened if it is long."""
    words = {"None": "null", "True": "true", "False": "false"}
    text = words.get(repr(value), repr(value))
    return text if len(text) <= 80 else text[:77] + "..."
