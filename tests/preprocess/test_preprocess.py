"""The preprocess stage, by hand, on good text and on bad."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seqlm.core.errors import DataError
from seqlm.core.files import write_json
from seqlm.core.layout import Layout
from seqlm.preprocess import preparing
from seqlm.preprocess.preparing import find_raw_text
from smoke import ROOT
from stages_by_hand import RunStage

TEXT = "The tide went out.\n\nIt came back, slowly.\n" * 40
PROSE = "The tide went out, slowly; and when it came back nobody was there to see it.\n"
START, END = (f"*** {which} OF THE PROJECT GUTENBERG EBOOK TIDES ***\n" for which in ("START", "END"))


def put_corpus(tmp_path: Path, content: bytes, name: str = "diary.txt") -> None:
    """Write a corpus as the download stage would, under the name of the user's own file."""
    layout = Layout(tmp_path)
    layout.raw_text.parent.mkdir(exist_ok=True)
    layout.raw_text.write_bytes(content)
    write_json(layout.corpus_record, {"name": name, "file": name})


def set_params(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "params.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_three_splits_and_a_table_of_their_sizes(run_stage: RunStage, tmp_path: Path) -> None:
    put_corpus(tmp_path, TEXT.encode())
    result = run_stage("preprocess")
    assert result.returncode == 0, result.stderr
    summary = json.loads((tmp_path / "reports/preprocess/summary.json").read_text())
    # 40 times "the tide went out" (17 characters), "" and "it came back slowly" (19): 3 lines, 8 words.
    assert sum(summary[split]["characters"] for split in ("train", "val", "test")) == 40 * 36
    assert sum(summary[split]["words"] for split in ("train", "val", "test")) == 40 * 8
    assert sum(summary[split]["lines"] for split in ("train", "val", "test")) == 120
    assert summary["train"]["characters"] / (40 * 36) == pytest.approx(0.8, abs=0.02)
    assert (tmp_path / "reports/preprocess/splits.csv").read_text().startswith("split,lines,characters,words\ntrain,")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no letters A-Z: use another text, or set preprocess.normalise: none for other scripts"),
        (b"   \n \n", "has no letters A-Z"),
        (b"1234 5678\n" * 100, "has no letters A-Z"),
        (b"one\r\ntwo\rthree \xe9t\xe9\n" * 100, "line 3: not UTF-8 at byte 15: convert it"),
        (b"one\n\ntw\x00\n" * 100, "line 3: NUL byte at byte 7: this is not a text file"),
        (("some text\n" * 50).encode("utf-16"), "UTF-16"),
        (b"x", "has only 1 character after cleaning, too few to train on and to score"),
        # Four lines of 77 characters, of which cleaning drops four each.
        (PROSE.encode() * 4, "has only 292 characters after cleaning"),
        # However long it is, a text without blanks cannot be split, and a longer one would not help.
        (b"a" * 1_000_000, "has too few line ends and spaces to be split into train, val, test: break it into lines"),
        (b"a b c d\n" * 100 + b"1\n" * 5000 + b"end\n", "the val split has no words: change preprocess.split"),
    ],
)
def test_a_text_that_cannot_be_used_ends_with_one_line_and_code_3(
    content: bytes, complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    put_corpus(tmp_path, content)
    old = tmp_path / "data" / "text" / "train.txt"
    old.parent.mkdir()
    old.write_text("old\n")
    result = run_stage("preprocess")
    assert (result.returncode, result.stderr.count("\n")) == (3, 1), result.stderr
    assert f"error: diary.txt: {complaint}" in result.stderr
    assert "longer text" not in result.stderr
    assert old.read_text() == "old\n"
    assert [path.name for path in old.parent.iterdir()] == ["train.txt"]
    assert not (tmp_path / "reports" / "preprocess").exists()


@pytest.mark.parametrize("content", [PROSE * 40, "潮水退去，慢慢地；無人在場。\n" * 75], ids=["English", "Chinese"])
def test_three_kilobytes_are_enough(content: str, run_stage: RunStage, tmp_path: Path) -> None:
    assert 3000 < len(content.encode()) < 3300
    put_corpus(tmp_path, content.encode())
    set_params(tmp_path, "normalise: letters", "normalise: none")
    result = run_stage("preprocess")
    assert (result.returncode, result.stderr) == (0, "")


def test_numbers_of_one_are_singular(run_stage: RunStage, tmp_path: Path) -> None:
    put_corpus(tmp_path, b"word " * 198 + b"a\nb\n" + b"\xff")
    set_params(tmp_path, "errors: strict", "errors: replace")
    result = run_stage("preprocess")
    assert "train: 1 line, 7" in result.stdout
    assert "1 byte sequence was not UTF-8 and was replaced" in result.stderr


def test_a_licence_of_project_gutenberg_is_warned_of(run_stage: RunStage, tmp_path: Path) -> None:
    header, body, licence = "Title: Tides\n" * 10, PROSE * 100, "You may copy it.\n" * 100
    text = header + START + body + END + licence
    put_corpus(tmp_path, text.encode())
    # 130 characters before the start marker; the end marker, of 50, and 1,700 after it.
    share = (len(header) + len(END) + len(licence)) / len(text)
    assert (
        f"warning: {share:.1%} of the text is Project Gutenberg's header and licence" in run_stage("preprocess").stderr
    )
    put_corpus(tmp_path, body.encode())
    assert run_stage("preprocess").stderr == ""


def test_a_marker_is_found_wherever_a_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "_BLOCK_BYTES", 100)
    for before in range(50, 110):
        (tmp_path / "x").write_text("a" * before + END + "b" * 100)
        outside = len(END) + 100
        assert preparing.boilerplate_share(tmp_path / "x") == outside / (before + outside), before


def test_bytes_that_are_not_utf8_can_be_replaced_on_demand(run_stage: RunStage, tmp_path: Path) -> None:
    put_corpus(tmp_path, TEXT.encode() + b"\xff\xfe\n")
    set_params(tmp_path, "errors: strict", "errors: replace")
    result = run_stage("preprocess")
    assert result.returncode == 0
    assert "2 byte sequences were not UTF-8 and were replaced" in result.stderr
    assert json.loads((tmp_path / "reports/preprocess/summary.json").read_text())["decoding"]["replaced"] == 2


def test_dropped_scripts_are_warned_of(run_stage: RunStage, tmp_path: Path) -> None:
    put_corpus(tmp_path, ("прилив ушёл tide\n" * 200).encode())
    result = run_stage("preprocess")
    # 10 of the 14 letters of each line are Cyrillic.
    assert result.returncode == 0
    assert "71.4% of the letters are not A-Z" in result.stderr
    set_params(tmp_path, "normalise: letters", "normalise: none")
    result = run_stage("preprocess")
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "data/text/test.txt").read_text().startswith("прилив ушёл tide\n")


def test_a_missing_corpus_and_one_without_a_record_go_by_their_path(run_stage: RunStage, tmp_path: Path) -> None:
    result = run_stage("preprocess")
    assert result.returncode == 3
    assert "data/raw/corpus.txt: no such file: run the stage that writes it" in result.stderr
    with pytest.raises(DataError, match="no such file: run the stage that writes it"):
        find_raw_text(tmp_path / "x", tmp_path / "summary.json")
    (tmp_path / "x").write_text("text")
    assert find_raw_text(tmp_path / "x", tmp_path / "summary.json").name == str(tmp_path / "x")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("train: 0.8", "train: 0.9", "preprocess.split = "),
        ("train: 0.8", "train: -0.8", "preprocess.split.train = -0.8: should be greater than 0"),
        ("normalise: letters", "normalise: latin", "preprocess.normalise = 'latin': should be 'letters' or 'none'"),
        ("errors: strict", "erors: strict", "preprocess.er"),
    ],
)
def test_bad_settings_end_with_code_2(old: str, new: str, complaint: str, run_stage: RunStage, tmp_path: Path) -> None:
    put_corpus(tmp_path, TEXT.encode())
    set_params(tmp_path, old, new)
    result = run_stage("preprocess")
    assert result.returncode == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "data/text").exists()


# A child of its own runs the stage, because the peak that the system notes is that of all children so far.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize("normalise", ["letters", "none"])
def test_one_line_of_200_megabytes_needs_bounded_memory(normalise: str, run_stage: RunStage, tmp_path: Path) -> None:
    assert run_stage("configure").returncode == 0  # any stage: the folder has its files now
    (tmp_path / "data/raw").mkdir()
    with (tmp_path / "data/raw/corpus.txt").open("wb") as file:
        for _ in range(200):
            file.write(b"the tide, " * 100_000)
    if normalise == "none":
        set_params(tmp_path, "normalise: letters", "normalise: none")
    stage = str(ROOT / "stages/preprocess.py")
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, sys.executable, stage], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    peak = int(result.stdout.splitlines()[-1])
    assert peak < 500_000_000, f"{peak / 1e6:.0f} MB"
    summary = json.loads((tmp_path / "reports/preprocess/summary.json").read_text())
    # 20 million times two words; a split may end with the space that stood at its border taken off.
    assert sum(summary[split]["words"] for split in ("train", "val", "test")) == 40_000_000
