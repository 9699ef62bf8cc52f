"""Finds trained models by the names that a user gives."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from seqlm.core.errors import DataError, ParamsError

Model = TypeVar("Model")


def find_models(names: Sequence[str], sources: Iterable[Callable[[], Mapping[str, Model]]]) -> dict[str, Model]:
    """Return the models with some names, in their order, or all models if there are no names.

    Each source returns models by name. Sources are asked in turn until all names are found, so that nothing is read
    that only other models need, and a source that fails matters only if a name remains. Raises ParamsError if no model
    has a name.
    """
    found: dict[str, Model] = {}
    problems = []
    for source in sources:
        if names and set(names) <= set(found):
            break
        try:
            found |= source()
        except DataError as error:
            if not names:
                raise
            problems.append(f" ({error})")
    if missing := set(names) - set(found):
        raise ParamsError(
            f"--model {min(missing)}: no such model: choose from {', '.join(found)}{''.join(problems[:1])}"
        )
    return {name: found[name] for name in names or found}
