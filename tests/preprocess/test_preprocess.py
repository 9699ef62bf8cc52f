"""The preprocess stage, by hand, on good text and on bad."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from smoke import ROOT
from stages_by_hand import RunStage

TEXT = "The tide went out.\n\nIt came back, slowly.\n" * 40


def put_corpus(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data" / "raw").mkdir()
    (tmp_path / "data" / "raw" / "corpus.txt").write_bytes(content)


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


def test_marks_and_line_ends_do_not_change_the_splits(run_stage: RunStage, tmp_path: Path) -> None:
    found = []
    for content in (TEXT, "\ufeff" + TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("\n", "\r")):
        (tmp_path / "data" / "raw").mkdir(exist_ok=True)
        (tmp_path / "data/raw/corpus.txt").write_bytes(content.encode())
        assert run_stage("preprocess").returncode == 0
        found.append([(tmp_path / f"data/text/{split}.txt").read_bytes() for split in ("train", "val", "test")])
    assert found[0] == found[1] == found[2] == found[3]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "holds no letters"),
        (b"   \n \n", "holds no letters"),
        (b"1234 5678\n" * 100, "holds no letters"),
        (b"abc\xff" * 100, "not UTF-8 at byte 3"),
        (b"abc\x00def\n" * 10, "NUL byte at byte 3"),
        (("some text\n" * 50).encode("utf-16"), "UTF-16"),
        (b"a" * 1000, "too few lines and words"),
        (b"a b c d\n" * 100 + b"1\n" * 5000 + b"end\n", "the val split holds no words"),
    ],
)
def test_text_that_cannot_be_used_ends_with_one_line_and_code_3(
    content: bytes, complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    put_corpus(tmp_path, content)
    old = tmp_path / "data" / "text" / "train.txt"
    old.parent.mkdir()
    old.write_text("old\n")
    result = run_stage("preprocess")
    assert result.returncode == 3, result.stderr
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert old.read_text() == "old\n"
    assert [path.name for path in old.parent.iterdir()] == ["train.txt"]
    assert not (tmp_path / "reports").exists()


def test_bytes_that_are_not_utf8_can_be_replaced_on_demand(run_stage: RunStage, tmp_path: Path) -> None:
    put_corpus(tmp_path, TEXT.encode() + b"\xff\xfe\n")
    set_params(tmp_path, "errors: strict", "errors: replace")
    result = run_stage("preprocess")
    assert result.returncode == 0
    assert "2 byte sequences were not UTF-8" in result.stderr
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


def test_a_missing_corpus_is_named(run_stage: RunStage) -> None:
    result = run_stage("preprocess")
    assert result.returncode == 3
    assert "data/raw/corpus.txt: no such file: run the stage that writes it" in result.stderr


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
