"""The registry of corpora, and the ways a corpus comes here.

A registered corpus is known by its SHA-256, so that it is the same text whichever
source it came from; a user's own file is taken as it is.
"""

import gzip
import hashlib
import shutil
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

from pydantic import Field

from seqlm.core.errors import DataError, MachineError, NetworkError, ParamsError
from seqlm.core.files import replacing, sha256_of_file
from seqlm.core.settings import Section, check, read_params
from seqlm.download.fetching import Limits, fetch, wrong_hash

_BLOCK = 1 << 20
_HEAD_BYTES = 512

Log = Callable[[str], None]


class Corpus(Section):
    """A registered corpus."""

    file: str
    """The name of its file in a data folder and in the cache."""
    urls: list[str]
    """Where it is published, in the order in which they are tried."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(gt=0)]
    licence: str
    description: str


class Registry(Section):
    """The content of ``corpora.yaml``."""

    corpora: dict[str, Corpus]


def read_registry(path: Path) -> dict[str, Corpus]:
    """Return the registered corpora by name. Raises ParamsError where the file is broken."""
    return check(read_params(path), "registry", Registry, source=str(path)).corpora


class Sources:
    """Where registered corpora are looked for, and the file of the embedded sample."""

    def __init__(self, data_folder: Path | None, cache: Path, sample: Path, limits: Limits) -> None:
        self._data_folder = data_folder
        self._cache = cache
        self._sample = sample
        self._limits = limits

    def find(self, name: str, corpus: Corpus, log: Log) -> Path:
        """Return a file with the hash of ``corpus``: from the data folder, the cache, or a URL.

        ``say`` is told each source that fails. Raises DataError where a source has other
        bytes, NetworkError where none can be reached.
        """
        if not corpus.urls:
            return _verified(self._sample, corpus)
        if self._data_folder is not None and (own := self._data_folder / corpus.file).exists():
            return _verified(own, corpus)
        limits = Limits(self._limits.timeout_s, self._limits.deadline_s, min(self._limits.max_bytes, corpus.bytes))
        wrong: DataError | None = None
        for url in corpus.urls:
            try:
                return fetch(url, self._cache, corpus.file, corpus.sha256, limits)
            except DataError as error:
                log(str(error))
                wrong = wrong or error
            except NetworkError as error:
                log(str(error))
        if wrong:
            raise wrong
        folder = self._data_folder or "the folder that SEQLM_DATA_DIR names"
        raise NetworkError(
            f"{name}: no source can be reached: bring the network back, or put {corpus.file} into {folder}"
        )


def _verified(path: Path, corpus: Corpus) -> Path:
    found = sha256_of_file(path)
    if found != corpus.sha256:
        with path.open("rb") as file:
            raise DataError(wrong_hash(str(path), corpus.sha256, found, file.read(_HEAD_BYTES)))
    return path


def bring_registered(
    name: str, registry: dict[str, Corpus], sources: Sources, fallback: str | None, text: Path, log: Log
) -> dict[str, Any]:
    """Make ``text`` the registered corpus and return its record; what has its SHA-256 already is kept, unasked.

    Where no source can be reached and ``fallback`` names another corpus, that one comes
    instead, and the record and ``say`` tell so; but never in the place of another text,
    which would be lost. Raises NetworkError or DataError.
    """
    if _is(text, registry[name]):
        return _record(name, registry[name])
    try:
        path = sources.find(name, registry[name], log)
    except NetworkError as error:
        if fallback is None or fallback == name:
            raise
        if text.exists() and not _is(text, registry[fallback]):
            raise NetworkError(
                f"{error}; {text} holds another text, which {fallback!r} does not replace: set download.corpus back "
                "to that one, or remove the file"
            ) from error
        log(f"NO SOURCE OF {name} CAN BE REACHED: going on with the corpus {fallback!r} instead ({error})")
        record = _record(fallback, registry[fallback])
        record |= {"requested": name, "fallback": True, "reason": f"no source of {name} could be reached"}
        path = sources.find(fallback, registry[fallback], log)
    else:
        record = _record(name, registry[name])
    with replacing(text) as temporary:
        shutil.copyfile(path, temporary)
    return record


def _is(text: Path, corpus: Corpus) -> bool:
    return text.is_file() and sha256_of_file(text) == corpus.sha256


def _record(name: str, corpus: Corpus) -> dict[str, Any]:
    record: dict[str, Any] = {"name": name, "requested": name, "fallback": False, "reason": None}
    record |= {"file": corpus.file, "sha256": corpus.sha256, "bytes": corpus.bytes}
    return record | {"licence": corpus.licence, "description": corpus.description}


def bring_own(path: Path, max_bytes: int, text: Path) -> dict[str, Any]:
    """Copy a user's own text file, unpacked if it is ``.gz``, to ``text`` and return its record.

    Raises DataError for what is no file, is empty, broken or larger than ``max_bytes``,
    MachineError for what may not be read.
    """
    _require_regular_file(path)
    digest, size = hashlib.sha256(), 0
    with replacing(text) as temporary:
        try:
            with _opened(path) as source, temporary.open("wb") as target:
                while block := source.read(_BLOCK):
                    size += len(block)
                    if size > max_bytes:
                        raise DataError(f"{path}: more than {max_bytes} bytes unpacked: raise download.max_bytes")
                    digest.update(block)
                    target.write(block)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{path}: not a whole gzip file: {error}") from error
        except PermissionError as error:
            raise MachineError(f"{path}: may not be read: check its permissions") from error
        if size == 0:
            raise DataError(f"{path}: empty: bring a text")
    record = {"name": path.name, "requested": path.name, "fallback": False, "reason": None, "file": path.name}
    return record | {"sha256": digest.hexdigest(), "bytes": size, "licence": "not stated", "description": "own text"}


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _require_regular_file(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        what = "a link to nowhere" if path.is_symlink() else "no such file"
        raise DataError(f"{path}: {what}") from error
    except OSError as error:
        raise MachineError(f"{path}: cannot be read: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        raise DataError(f"{path}: a folder, not a text file")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: not a regular file: copy its content to one")


def is_registered(choice: str, registry: dict[str, Corpus], root: Path) -> bool:
    """Whether ``choice`` names a registered corpus; otherwise it must be the path of a file, from ``root`` on.

    Raises ParamsError where it is neither.
    """
    if choice in registry:
        return True
    path = root / choice
    if path.exists() or path.is_symlink():
        return False
    raise ParamsError(f"download.corpus = {choice!r}: neither a registered corpus ({', '.join(registry)}) nor a file")
