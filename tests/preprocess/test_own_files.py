"""What a user's own text meets: refused at once in the user's own words, or taken."""

import json
import time
from pathlib import Path

import pytest

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.preprocess.cleaning import clean_blocks
from seqlm.preprocess.decoding import DecodingReport, RawText
from seqlm.preprocess.preparing import find_raw_text
from stages_by_hand import RunStage

PROSE = "The tide went out, slowly; and when it came back nobody was there to see it.\n"


def bring(tmp_path: Path, content: bytes, name: str = "diary.txt") -> None:
    layout = Layout(tmp_path)
    layout.raw_text.parent.mkdir()
    layout.raw_text.write_bytes(content)
    layout.corpus_record.parent.mkdir(parents=True)
    layout.corpus_record.write_text(json.dumps({"name": name, "file": name}))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "diary.txt: holds no letters A-Z"),
        (b"one\r\ntwo\rthree \xe9t\xe9\n" * 100, "diary.txt: line 3: not UTF-8 at byte 15: convert it"),
        (b"one\n\ntw\x00\n" * 100, "diary.txt: line 3: NUL byte at byte 7: this is not a text file"),
        (b"x" * 1000, "diary.txt: 1001 characters in too few lines and words"),
        # Four lines of 77 characters, of which cleaning drops the four marks of each.
        (PROSE.encode() * 4, "diary.txt: 292 characters are left after cleaning, too few to train on and to score"),
    ],
)
def test_errors_name_the_users_own_file(content: bytes, complaint: str, run_stage: RunStage, tmp_path: Path) -> None:
    bring(tmp_path, content)
    result = run_stage("preprocess")
    assert (result.returncode, result.stderr.count("\n")) == (3, 1)
    assert complaint in result.stderr
    assert "corpus.txt" not in result.stderr
    assert "cleaned" not in result.stderr
    assert not list((tmp_path / "data" / "text").glob("*.txt"))


@pytest.mark.parametrize("content", [PROSE * 40, "潮水退去，慢慢地；無人在場。\n" * 75], ids=["English", "Chinese"])
def test_three_kilobytes_are_enough(content: str, run_stage: RunStage, tmp_path: Path) -> None:
    assert 3000 < len(content.encode()) < 3300
    bring(tmp_path, content.encode())
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("normalise: letters", "normalise: none", 1))
    result = run_stage("preprocess")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_corpus_without_a_record_goes_by_its_path(tmp_path: Path) -> None:
    raw = tmp_path / "corpus.txt"
    with pytest.raises(DataError, match="no such file: run the stage that writes it"):
        find_raw_text(raw, tmp_path / "summary.json")
    raw.write_text("text")
    assert find_raw_text(raw, tmp_path / "summary.json").name == str(raw)


def test_the_line_of_an_error_is_found_across_blocks(tmp_path: Path) -> None:
    raw = tmp_path / "corpus.txt"
    raw.write_bytes(b"ab\r\n" * 600_000 + b"\xff")  # blocks of a megabyte; 4 bytes a line
    with pytest.raises(DataError, match="line 600001: not UTF-8 at byte 2400000"):
        list(clean_blocks(RawText(raw, "x"), "none", "strict", DecodingReport()))


def test_replacing_takes_time_in_proportion_to_the_text(tmp_path: Path) -> None:
    """A megabyte of cp1251, in which nearly every byte is no UTF-8, took 16 seconds when each was cut out by itself."""
    raw, report = tmp_path / "corpus.txt", DecodingReport()
    raw.write_bytes(("прилив ушёл\n" * 90_000).encode("cp1251"))
    start = time.process_time()
    text = b"".join(clean_blocks(RawText(raw, "x"), "none", "replace", report)).decode()
    assert time.process_time() - start < 2
    # 10 letters a line, none of them the beginning of a character with the letter behind it.
    assert report.replaced == text.count("\N{REPLACEMENT CHARACTER}") == 900_000
