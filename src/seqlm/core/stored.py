"""Stored results: descriptions with a schema, and arrays. Each is checked when it is read.

A description is JSON with a checksum of its own and the SHA-256 of the files that it describes: a
disk may decay, and a folder may come from somebody else.
"""

import hashlib
import io
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, Strict
from pydantic_core import from_json

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import as_json, atomic_write, read_bytes, sha256_of_file, write_text
from seqlm.core.settings import check

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digests = dict[str, Sha256]
"""The SHA-256 of files by name."""
VocabKey = Annotated[tuple[int, str], Strict(False)]
"""The size of a vocabulary, and the SHA-256 of its tokens: stored models know with which one they
belong."""
_BLOCK = 1 << 18
"""Elements of an array that are written at once, so that a mapped one needs little memory."""


class Stored(BaseModel):
    """The content of a description."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    version: ClassVar[int]
    """The only format that is read."""
    advice: ClassVar[str]
    """What to do about a file that cannot be used."""
    max_bytes: ClassVar[int] = 1 << 24

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a description. Raises DataError if it is missing, broken, changed, too large, or
        not as the schema says."""
        content = read_bytes(path, cls.max_bytes, cls.advice)
        try:
            value = from_json(content)
        except ValueError as error:
            raise DataError(f"{path}: not JSON: {cls.advice}") from error
        if not isinstance(value, dict) or value.pop("format", None) != cls.version:
            problem = f"not in format {cls.version}, the one that this version reads"
            raise DataError(f"{path}: {problem}: {cls.advice}")
        checksum = str(value.pop("checksum", None))
        rest = content.replace(_line(checksum).encode(), _line("").encode())
        _require_equal(path, _sha256(rest), checksum, cls.advice)
        try:
            return check(value, "", cls, source=str(path), strict=None)
        except ParamsError as error:
            raise DataError(f"{error}: {cls.advice}") from error

    def write(self, path: Path) -> None:
        """Write the description as JSON, numbers in full."""
        write_checksummed(path, {"format": self.version} | self.model_dump(exclude_unset=True))


def write_checksummed(path: Path, value: dict[str, Any]) -> None:
    """Write a mapping as JSON, in full, with the SHA-256 of the file without it."""
    text = as_json(value | {"checksum": ""})
    write_text(path, text.replace(_line(""), _line(_sha256(text.encode()))))


def _line(checksum: str) -> str:
    return f'"checksum": "{checksum}"'


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_array(
    path: Path,
    array: NDArray[Any] | Iterable[NDArray[Any]],
    dtype: DTypeLike | None = None,
    length: int | None = None,
) -> str:
    """Write a one-dimensional array in NumPy's own format; return the file's SHA-256.

    It may come in blocks, with the type and the number of all elements.
    """
    if isinstance(array, np.ndarray):
        length, dtype = len(array), array.dtype if dtype is None else dtype
        array = [array[start : start + _BLOCK] for start in range(0, length, _BLOCK)]
    header, digest = io.BytesIO(), hashlib.sha256()
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    described = {"descr": descr, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(header, described)
    contents = (np.ascontiguousarray(block, dtype).data for block in array)
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        for content in chain([header.getbuffer()], contents):
            file.write(content)
            digest.update(content)
    return digest.hexdigest()


def read_array(
    path: Path, sha256: str, advice: str, dtype: type[np.generic] = np.integer
) -> NDArray[Any]:
    """Return the array of a file, mapped into memory. Raises DataError if it is missing or has
    another SHA-256, and if it is not a one-dimensional array of numbers of a type."""
    require_sha256(path, sha256, advice)
    try:
        array = np.asarray(np.lib.format.open_memmap(path, mode="r"))  # read faster than a memmap
        if array.ndim == 1 and array.dtype.isnative and np.issubdtype(array.dtype, dtype):
            return array
        problem = f"not one-dimensional or not of type {dtype.__name__}"
    except (ValueError, OverflowError) as error:
        problem = str(error)
    raise DataError(f"{path}: not a complete array ({problem}): {advice}")


def require_sha256(path: Path, sha256: str, advice: str) -> None:
    """Raise DataError, which ends with ``advice``, if a file is missing or has another SHA-256."""
    _require_equal(path, sha256_of_file(path), sha256, advice)


def read_verified(path: Path, sha256: str, advice: str, max_bytes: int) -> bytes:
    """Return the content of a file. Raises DataError if it is missing, too large, or has another
    SHA-256."""
    content = read_bytes(path, max_bytes, advice)
    _require_equal(path, _sha256(content), sha256, advice)
    return content


def _require_equal(path: Path, found: str, sha256: str, advice: str) -> None:
    if found != sha256:
        raise DataError(f"{path}: its content does not match its SHA-256: {advice}")


def require_vocab(path: Path, stored: VocabKey, vocab: VocabKey, advice: str) -> None:
    """Raise DataError, which ends with ``advice``, unless a model, stored in ``path``, belongs to a
    vocabulary."""
    if stored != vocab:
        raise DataError(f"{path}: built with a different vocabulary: {advice}")
