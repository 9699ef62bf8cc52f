"""Loops compiled by Numba, and kept on disk: compiling takes seconds, reading what was compiled hundredths of one."""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

import platformdirs
from numba import config, njit
from numba.core.caching import FunctionCache

_MOST_VERSIONS = 8
"""Versions of the sources whose loops are kept."""


def compiled(**options: Any) -> Any:
    """Return a decorator that compiles a function when it is first called, or reads what was compiled before.

    ``options`` are those of :func:`numba.njit`. What is read depends on the sources, the processor and the
    versions of Python and Numba alone. A compiled function may call others of its own folder, but of no other:
    by the sources of a folder it is seen that what is kept has grown old. Where nothing can be kept or read, the
    function is compiled in each process.
    """
    # Numba takes a change for one only if it is in the file of the function that Python calls.
    config.CACHE_LOCATOR_CLASSES = f"{__name__}.{SourceHashLocator.__name__}"

    def decorate(function: Callable[..., Any]) -> Any:
        loop = njit(**options)(function)
        loop._cache = TolerantCache(function)  # what njit(cache=True) does, but for the class
        return loop

    return decorate


class TolerantCache(FunctionCache):  # type: ignore[misc]
    """What Numba keeps of a function: a disk that is full, a folder that went or a broken file costs the seconds of
    compiling, and ends nothing."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was kept for a signature; none if there is nothing that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # of a broken file, unpickling may raise any
            with suppress(OSError):
                self.flush()  # an index that stays broken would refuse all that is kept from now on
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was made for a signature, if that is possible."""
        with suppress(Exception):
            super().save_overload(sig, data)


class SourceHashLocator:
    """Where Numba keeps what it made of a function: equal sources, in whatever folder, share it."""

    def __init__(self, function: Any, file: str) -> None:
        """Take the place for a function that stands in a file."""
        self._py_file, self._line = file, function.__code__.co_firstlineno
        self._stamp = _stamp(Path(file).parent)
        self._path = _folder() / self._stamp[:16]

    @classmethod
    def from_function(cls, function: Any, file: str) -> Self:
        """Return the place for a function. Numba calls this, and the methods below."""
        return cls(function, file)

    def ensure_cache_path(self) -> None:
        """Make the folder, and remove those of the oldest versions."""
        if not self._path.is_dir():
            self._path.mkdir(parents=True, exist_ok=True)
            versions = sorted(self._path.parent.iterdir(), key=_time_written)
            for version in versions[:-_MOST_VERSIONS]:
                shutil.rmtree(version, ignore_errors=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Return what differs where the sources do."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return str(self._line)


def _folder() -> Path:
    return Path(config.CACHE_DIR or platformdirs.user_cache_path("seqlm")) / "compiled"


def _time_written(version: Path) -> float:
    try:
        return version.stat().st_mtime
    except OSError:  # another process has removed it since
        return 0.0


@cache
def _stamp(folder: Path) -> str:
    sources = hashlib.sha256()
    for path in (Path(__file__), *sorted(folder.glob("*.py"))):
        sources.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return sources.hexdigest()
