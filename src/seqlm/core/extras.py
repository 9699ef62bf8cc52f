"""Packages that only some models need: the extras of ``pyproject.toml``."""

from collections.abc import Iterator
from contextlib import contextmanager

from seqlm.core.errors import MachineError


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Import a package of an extra inside this context; ``what`` needs it.

    Raises MachineError, which names the extra, if the package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MachineError(f"{what} needs the package {error.name}: pip install 'seqlm[{extra}]'") from error
