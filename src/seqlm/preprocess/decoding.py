"""Decoding of text files of unknown origin: UTF-8 with ``\\n`` line ends, or one line that says what is wrong."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from io import IncrementalNewlineDecoder
from pathlib import Path
from typing import BinaryIO

from seqlm.core.errors import DataError
from seqlm.core.text import BLOCK_BYTES

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass
class DecodingReport:
    """What decoding and cleaning found in a text."""

    replaced: int = 0
    """Byte sequences that were not UTF-8 and were replaced, under ``errors="replace"``."""
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
        """Yield the text in blocks of UTF-8 that cut no character: line ends are ``\\n``, no byte order mark.

        ``errors`` is ``"strict"`` or ``"replace"`` (counted in ``report``). Raises DataError,
        with the byte offset and the line, for bytes that are not UTF-8 and for NUL bytes.
        """
        decoder = IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(errors), translate=True)
        with self.path.open("rb") as file:
            offset, block = self._skip_byte_order_mark(file), b" "
            while block:
                block = file.read(block_bytes)
                if (nul := block.find(0)) >= 0:
                    raise self._error(offset + nul, "NUL byte", ": this is not a text file")
                offset += len(block)
                data = decoder.getstate()[0] + block
                try:
                    text = decoder.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    advice = ": convert it, or set preprocess.errors: replace"
                    raise self._error(offset - len(data) + error.start, "not UTF-8", advice) from error
                if _REPLACEMENT in text:
                    # Those that the text itself has do not count. Their bytes cannot be parts of other characters.
                    report.replaced += text.count(_REPLACEMENT) - data.count(_REPLACEMENT.encode())
                if text:
                    yield text.encode()

    def _skip_byte_order_mark(self, file: BinaryIO) -> int:
        """Move ``file`` past its byte order mark and return the offset."""
        head = file.read(len(codecs.BOM_UTF8))
        if head.startswith(_UTF16_BOMS):
            raise DataError(f"{self.name}: UTF-16 text: convert it to UTF-8 (for example iconv -f UTF-16 -t UTF-8)")
        return file.seek(len(codecs.BOM_UTF8) if head == codecs.BOM_UTF8 else 0)

    def _error(self, offset: int, what: str, advice: str) -> DataError:
        return DataError(f"{self.name}: line {self._line_at(offset)}: {what} at byte {offset}{advice}")

    def _line_at(self, offset: int) -> int:
        """Return the number of the line that has the byte at ``offset``, counted from 1."""
        ends, last = 0, b""
        with self.path.open("rb") as file:
            while block := file.read(min(BLOCK_BYTES, offset - file.tell())):
                ends += block.count(b"\n") + block.count(b"\r") - (last + block).count(b"\r\n")
                last = block[-1:]
        return ends + 1
