"""Reading and writing whole files.

Every writer goes through :func:`atomic_write`: the bytes are written to a temporary file beside
the target, which then replaces it. A reader therefore finds the old file or the new one,
never half of one. Text is UTF-8 with ``\\n`` line ends on every system, and equal values
give equal bytes. Reports have at most nine significant digits; what the pipeline reads
again to compute with is written in full.
"""

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import filter as matching
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from seqlm.core.errors import DataError, MachineError

if TYPE_CHECKING:
    import pandas as pd

_DIGITS = 9
"""Significant digits of the numbers in reports: no reader needs more, and rounding hides the last
bits of a sum."""
_METRICS_DIGITS = 5
"""Significant digits of the numbers that `dvc metrics` shows."""
_UNPACKERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
"""What unpacks a file that begins with these bytes."""
_MAX_EXPANSION, _SMALL_FILE = 100, 1 << 20
"""What was read of a packed file may become a hundred times as large; fewer bytes than this, as if
they were as many. Texts become 3 to 20 times as large."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError raised inside into a MachineError that names ``path``."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def reading(path: Path, advice: str = ": run the stage that writes it") -> Iterator[None]:
    """Turn an OSError raised inside into a DataError if ``path`` is missing, into a MachineError
    otherwise."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file{advice}") from error
    except OSError as error:
        raise MachineError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; on success it becomes ``target``.

    Missing parent folders are made. On any error the temporary file is removed and an
    old ``target`` stays as it was. Raises MachineError if the system refuses.
    """
    # Created by `open`, so that its mode is that of any new file; `tempfile` lets nobody else read
    # its files.
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.open("xb").close()
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Make an empty folder inside ``folder`` to prepare files for it, this process alone; remove it
    afterwards.

    Raises MachineError if the system refuses.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(".part", ".", folder, ignore_cleanup_errors=True)
    with temporary as name:
        yield Path(name)


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files below a folder whose names match a pattern, sorted; none without the folder.

    Raises MachineError for a folder that cannot be read, which Path.rglob passes over.
    """

    def fail(error: OSError) -> None:
        with suppress(DataError), reading(Path(error.filename)):  # a missing folder holds none
            raise error

    found = os.walk(folder, onerror=fail)
    return sorted(
        Path(parent, name) for parent, _, names in found for name in matching(names, pattern)
    )


def remove_others(names: list[str], *folders: Path) -> list[Path]:
    """Remove what ``folders`` hold under none of ``names``, files and folders; return what was
    removed."""
    entries = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    others = [path for path in entries if path.name not in names]
    for path in others:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return others


def write_bytes(target: Path, content: bytes) -> None:
    """Write ``content`` to ``target``, whole or not at all."""
    with atomic_write(target) as temporary:
        temporary.write_bytes(content)


def write_text(target: Path, content: str) -> None:
    """Write ``content`` as UTF-8 to ``target``, whole or not at all."""
    write_bytes(target, content.encode("utf-8"))


def write_json(target: Path, value: Any) -> None:
    """Write ``value`` as indented JSON for a report, floats with nine significant digits.

    NaN and infinity raise ValueError, because JSON has no word for them: callers write
    null and a reason.
    """
    write_text(target, as_json(_rounded(value)))


def write_metrics(target: Path, values: Mapping[str, Any]) -> None:
    """Write the headline numbers that `dvc metrics` shows, floats with five significant digits.

    `dvc metrics show` prints a row for each file and a column for each name in any of them: few
    short names fit a terminal.
    """
    write_text(target, as_json(_rounded(values, _METRICS_DIGITS)))


def as_json(value: Any) -> str:
    """Return a value as indented JSON, numbers in full. NaN and infinity raise ValueError."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _rounded(value: Any, digits: int = _DIGITS) -> Any:
    """Return a value with this many significant digits in each float that it is or contains."""
    if isinstance(value, float | np.floating):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(each, digits) for key, each in value.items()}
    return [_rounded(each, digits) for each in value] if isinstance(value, list | tuple) else value


def write_csv(target: Path, table: "pd.DataFrame | Sequence[Mapping[str, Any]]") -> None:
    """Write a frame, without its index, or rows as CSV: nine significant digits, and empty cells
    for missing values.

    All rows have the columns of the first one.
    """
    if isinstance(table, Sequence):
        columns, rows = list(table[0]), (row.values() for row in table)
    else:
        # pandas.NA cannot be compared with itself.
        values = table.astype(object).where(table.notna(), None)
        columns, rows = list(table), values.itertuples(index=False, name=None)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([None if value != value else _rounded(value) for value in row] for row in rows)
    write_text(target, text.getvalue())


def write_table(
    folder: Path, name: str, table: "pd.DataFrame | Sequence[Mapping[str, Any]] | dict[str, Any]"
) -> None:
    """Write a table of a stage's report: a frame or rows as ``NAME.csv``, a mapping as
    ``NAME.json``."""
    if isinstance(table, dict):
        write_json(folder / f"{name}.json", table)
    else:
        write_csv(folder / f"{name}.csv", table)


def read_bytes(path: Path, max_bytes: int | None = None, advice: str = "") -> bytes:
    """Return the content of a regular file. Raises DataError if it is missing, or larger than
    ``max_bytes``, which ends with ``advice``."""
    with _open_regular(path) as file:
        if max_bytes is not None and path.stat().st_size > max_bytes:
            raise DataError(f"{path}: larger than {max_bytes:,} bytes: {advice}")
        return file.read()  # read(max_bytes) would reserve memory for as many


@contextmanager
def _open_regular(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file to read it, if it has an end: not a device or a pipe."""
    with reading(path):
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(f"{path}: not a regular file")
        with path.open("rb") as file:
            yield file


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, its line ends unchanged. Raises DataError if it is missing
    or not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: run the stage that writes it again") from error


def read_json(path: Path) -> Any:
    """Return the value of a JSON file. Raises DataError if it is missing or broken."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # also thousands of digits or brackets
        raise DataError(f"{path}: not JSON: run the stage that writes it again") from error


def read_csv(path: Path) -> "pd.DataFrame":
    """Return a CSV file as a frame. Raises DataError if it is missing or broken."""
    import pandas as pd

    try:
        with reading(path):
            return pd.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise DataError(f"{path}: not CSV: {error}") from error


def require_own_file(path: Path, name: str) -> None:
    """Raise DataError unless a path that a user gave, which errors call ``name``, is a regular
    file: no folder, device or pipe."""
    if not path.is_file():
        problem = "not a regular file" if path.exists() else "no such file"
        raise DataError(f"{name}: {problem}")


class _Unpacked(io.RawIOBase):
    """The content of a packed file, as long as it does not become too large."""

    def __init__(self, packed: BinaryIO, unpack: Callable[[BinaryIO], Any], name: str) -> None:
        self._packed, self._file, self._name, self._size = packed, unpack(packed), name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._file.read(len(buffer))
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            raise DataError(f"{self._name}: not a complete packed file: {error}") from error
        self._size += len(content)
        if self._size > _MAX_EXPANSION * max(self._packed.tell(), _SMALL_FILE):
            raise DataError(f"{self._name}: unpacks to over {_MAX_EXPANSION} times its size")
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def open_unpacked(path: Path, name: str) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, unpacked if it begins like one of gzip, bzip2 or xz, whatever
    its own name.

    ``name`` is what errors call it. Raises DataError if it is missing, and, when it is read, if it
    is packed but not complete, or becomes more than a hundred times as large.
    """
    with reading(path, ""), path.open("rb") as file:
        begins = file.peek()
        for magic, unpack in _UNPACKERS.items():
            if begins.startswith(magic):
                yield io.BufferedReader(_Unpacked(file, unpack, name), _SMALL_FILE)
                return
        yield file


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a regular file's bytes as hexadecimal digits."""
    with _open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
