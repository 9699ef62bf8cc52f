"""Loops compiled by Numba and cached on disk: compiling takes seconds, loading takes hundredths of
a second.

Numba optimises a function together with everything it calls, and makes machine code of it even if
only compiled code calls it, so deeply nested functions are compiled again and again; it compiles a
function anew for each literal among its arguments; and it gives each function a wrapper for Python,
which for large tuples of arrays is larger than the function itself. The decorators below keep the
seconds that compiling takes low.
"""

import hashlib
import platform
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import platformdirs
from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, get_host_cpu_features
from numba.core.compiler import Compiler
from numba.core.runtime import rtsys

from seqlm.core.sources import source_files

_MAX_FOLDERS = 80
"""Folders of cached loops that are kept, the newest: each version of the sources has about ten."""


def compiled(**options: Any) -> Any:
    """Return a decorator that compiles a function when it is first called, or loads it from the
    cache.

    ``options`` are those of :func:`numba.njit`. The cache key depends only on the sources of its
    module and of all that this one imports, the processor and the versions of Python and Numba. If
    the cache cannot be used, the function is compiled in each process.

    Numba has no public way to keep its cache working on a full disk or after a broken file:
    ``_cache`` and ``_load_overload`` below are its own, which is why ``pyproject.toml`` bounds its
    version.
    """
    # Numba itself only notices changes in the file of the function that Python calls.
    config.CACHE_LOCATOR_CLASSES = f"{__name__}.{SourceHashLocator.__name__}"

    def decorate(function: Callable[..., Any]) -> Any:
        loop = njit(no_cfunc_wrapper=True, **options)(function)
        loop._cache = TolerantCache(function)  # as njit(cache=True) does, with another class
        return loop

    return decorate


class TolerantCache(FunctionCache):  # type: ignore[misc]
    """The cache of a function: a full disk, a missing folder or a broken file costs compile time,
    nothing else."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function of a signature; None if none can be read.

        Two processes that add a signature each at the same time may both choose the same file name.
        Then the index names the other's function for this signature, which would write to wrong
        addresses.
        """
        try:
            # Numba's own method also loads all that compiling needs, which takes half a second.
            rtsys.initialize(target_context)
            found = self._load_overload(sig, target_context)
            if found is None or found.signature.args == tuple(sig):
                return found
        except Exception:  # unpickling a broken file may raise anything
            pass
        with suppress(OSError):
            self.flush()  # a broken index would refuse every later entry
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache the compiled function of a signature, if possible."""
        with suppress(Exception):
            super().save_overload(sig, data)


class SourceHashLocator:
    """Where Numba caches a function: equal sources share the cache, whatever folder they are in."""

    def __init__(self, function: Any, file: str) -> None:
        """Locate the cache of a function that is defined in ``file``."""
        self._py_file, self._line = file, function.__code__.co_firstlineno
        self._stamp = _stamp(function.__module__, Path(file))
        self._path = _folder() / self._stamp[:16]

    @classmethod
    def from_function(cls, function: Any, file: str) -> Self:
        """Return the locator of a function. Numba calls this and the methods below."""
        return cls(function, file)

    def ensure_cache_path(self) -> None:
        """Make the folder, and remove the oldest versions."""
        if not self._path.is_dir():
            self._path.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # another process may have removed one since
                folders = filter(Path.is_dir, self._path.parent.iterdir())
                by_age = sorted(folders, key=lambda folder: folder.stat().st_mtime)
                for folder in by_age[:-_MAX_FOLDERS]:
                    shutil.rmtree(folder, ignore_errors=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Return a hash of the sources."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return what distinguishes functions of the same name."""
        return str(self._line)


def _folder() -> Path:
    return Path(config.CACHE_DIR or platformdirs.user_cache_path("seqlm")) / "compiled"


@cache
def _stamp(module: str, path: Path) -> str:
    sources = hashlib.sha256(path.read_bytes())
    root = path.parents[module.count(".")]  # from which modules are imported
    for file in source_files([module], [root]).values():
        sources.update(file.read_bytes())
    return sources.hexdigest()


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that only compiled code calls, as it is before any optimisation."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Add what the function calls, once."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    codegen = property(lambda self: self)

    def set_env(self, *_: object) -> None:
        """Do nothing: there is no machine code that could ask for its environment."""


class _PartCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, typing: Any, target: Any, _: None, *others: Any) -> None:
        super().__init__(typing, target, _PartLibrary(target.codegen(), "part"), *others)


# Loops of networks create no arrays, so reference counts (_nrt) are not needed.
jit_entry = compiled(nogil=True, error_model="numpy", _nrt=False)
"""For a function that Python calls. The compiled code is cached with everything it calls, unless
some arguments are functions."""
jit_internal = njit(
    nogil=True,
    error_model="numpy",
    _nrt=False,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    pipeline_class=_PartCompiler,
)
"""For a function that only compiled code calls."""
jit_inline = njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
"""For a function whose body replaces the call: a short one, or one that is called in one place."""

ZERO, ONE = np.int64(0), np.int64(1)
"""0 and 1 as variables: Numba compiles a function again for each literal that it is called with."""


@cache
def has_fma() -> bool:
    """Whether this processor multiplies and adds in one instruction: x86 with FMA, every ARM
    processor of 64 bits.

    On others each fused operation is a call of a C function, and the loops, which consist of little
    else, are many times slower than PyTorch.
    """
    return platform.machine().lower() in {"aarch64", "arm64"} or "+fma" in cpu_features().split(",")


def cpu_features() -> str:
    """Return the features of this processor that Numba uses, as LLVM writes them:
    ``+avx2,-avx512f,...``."""
    found: str = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return found
