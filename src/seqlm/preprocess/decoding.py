"""Reading text of unknown origin: valid UTF-8 with line ends as ``\\n``, or one line that says what is wrong."""

import codecs
from codecs import utf_8_decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from seqlm.core.errors import DataError
from seqlm.core.text import BLOCK_BYTES

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_REPLACEMENT_BYTES = _REPLACEMENT.encode()


@dataclass
class DecodingReport:
    """What decoding and cleaning met on the way."""

    replaced: int = 0
    """Bytes sequences that were not UTF-8 and were replaced, under ``errors="replace"``."""
    letters: int = 0
    """Letters of any script."""
    foreign_letters: int = 0
    """Letters other than A-Z and a-z."""


@dataclass(frozen=True)
class RawText:
    """A text file as it came, and the name by which its owner knows it."""

    path: Path
    name: str
    """What errors call the file."""

    def decoded_blocks(self, errors: str, report: DecodingReport, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Yield the text in blocks of UTF-8, no character cut, line ends as ``\\n``, no byte order mark.

        ``errors`` is ``"strict"`` or ``"replace"`` (counted in ``report``). Raises DataError,
        with the offset in bytes and the line, for bytes that are not UTF-8 and for NUL bytes.
        """
        pending = b""
        with self.path.open("rb") as file:
            offset = self._skip_byte_order_mark(file)
            while block := file.read(block_bytes):
                self._refuse_nul(block, offset)
                offset += len(block)
                data, pending = self._decoded(pending + block, offset, errors, report, final=False)
                # A return at the end of a block may be the first half of a CRLF.
                if data.endswith(b"\r"):
                    data, pending = data[:-1], b"\r" + pending
                if data:
                    yield _with_plain_line_ends(data)
            data, _ = self._decoded(pending, offset, errors, report, final=True)
            if data:
                yield _with_plain_line_ends(data)

    def _decoded(
        self, data: bytes, end: int, errors: str, report: DecodingReport, *, final: bool
    ) -> tuple[bytes, bytes]:
        """Return what of ``data``, which ends at offset ``end``, is whole characters, and the bytes behind them."""
        if data.isascii():
            return data, b""
        try:
            used = utf_8_decode(data, "strict", final)[1]
        except UnicodeDecodeError as error:
            if errors == "strict":
                raise self._error(
                    end - len(data) + error.start, "not UTF-8", ": convert it, or set preprocess.errors: replace"
                ) from error
            text, used = utf_8_decode(data, "replace", final)
            # These three bytes are one character wherever they stand: the first begins one, and the others go on.
            report.replaced += text.count(_REPLACEMENT) - data.count(_REPLACEMENT_BYTES)
            return text.encode(), data[used:]
        return data[:used], data[used:]

    def _skip_byte_order_mark(self, file: BinaryIO) -> int:
        """Leave ``file`` behind its byte order mark and return the offset there."""
        head = file.read(len(codecs.BOM_UTF8))
        if head.startswith(_UTF16_BOMS):
            raise DataError(f"{self.name}: UTF-16 text: convert it to UTF-8 (for example iconv -f UTF-16 -t UTF-8)")
        return file.seek(len(codecs.BOM_UTF8) if head == codecs.BOM_UTF8 else 0)

    def _refuse_nul(self, block: bytes, offset: int) -> None:
        if (nul := block.find(0)) >= 0:
            raise self._error(offset + nul, "NUL byte", ": this is not a text file")

    def _error(self, offset: int, what: str, advice: str) -> DataError:
        return DataError(f"{self.name}: line {self._line_at(offset)}: {what} at byte {offset}{advice}")

    def _line_at(self, offset: int) -> int:
        """Return the number of the line that the byte at an offset lies in, from 1 on."""
        ends, last = 0, b""
        with self.path.open("rb") as file:
            while block := file.read(min(BLOCK_BYTES, offset - file.tell())):
                ends += block.count(b"\n") + block.count(b"\r") - (last + block).count(b"\r\n")
                last = block[-1:]
        return ends + 1


def _with_plain_line_ends(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
