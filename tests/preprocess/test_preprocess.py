"""The preprocess stage, by hand, on good text and on bad."""

import json
from pathlib import Path
from typing import Any

import pytest

from seqlm.core.files import write_json
from seqlm.core.layout import Layout
from smoke import change_params
from stages_by_hand import Finished, RunStage, refused, succeeded

TEXT = "The tide went out.\n\nIt came back, slowly.\n" * 40
PROSE = "The tide went out, slowly; and when it came back nobody was there to see it.\n"
START, END = (f"*** {which} OF THE PROJECT GUTENBERG EBOOK TIDES ***\n" for which in ("START", "END"))
SUMMARY = "reports/preprocess/summary.json"


class Preprocess:
    """The preprocess stage by hand, in a folder of its own."""

    def __init__(self, run_stage: RunStage, folder: Path) -> None:
        self.run_stage, self.folder = run_stage, folder

    def __call__(self, content: str | bytes, **settings: Any) -> Finished:
        """Run on a corpus that the download stage would write under the name of the user's own file."""
        layout = Layout(self.folder)
        layout.raw_text.parent.mkdir(exist_ok=True)
        layout.raw_text.write_bytes(content.encode() if isinstance(content, str) else content)
        write_json(layout.corpus_record, {"name": "diary.txt", "file": "diary.txt"})
        change_params(layout.params, {f"preprocess.{name}": value for name, value in settings.items()})
        return self.run_stage("preprocess")

    def summary(self) -> Any:
        return json.loads((self.folder / SUMMARY).read_text())


@pytest.fixture
def preprocess(run_stage: RunStage, tmp_path: Path) -> Preprocess:
    return Preprocess(run_stage, tmp_path)


def total(summary: Any, what: str) -> int:
    return sum(summary[split][what] for split in ("train", "val", "test"))


def test_three_splits_and_a_table_of_their_sizes(preprocess: Preprocess, tmp_path: Path) -> None:
    succeeded(preprocess(TEXT))
    summary = preprocess.summary()
    # 40 times "the tide went out" (17 characters), "" and "it came back slowly" (19): 3 lines, 8 words.
    assert [total(summary, what) for what in ("characters", "words", "lines")] == [40 * 36, 40 * 8, 40 * 3]
    assert summary["train"]["characters"] / (40 * 36) == pytest.approx(0.8, abs=0.02)
    assert (tmp_path / "reports/preprocess/splits.csv").read_text().startswith("split,lines,characters,words\ntrain,")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (
            b"1234 5678\n" * 100,
            "has only 0 characters and 0 words after cleaning: use a text of at least 500 characters, or set",
        ),
        (b"one\r\ntwo\rthree \xe9t\xe9\n" * 100, "line 3: not UTF-8 at byte 15: convert it"),
        (b"one\n\ntw\x00\n" * 100, "line 3: NUL byte at byte 7: this is not a text file"),
        (("some text\n" * 50).encode("utf-16"), "line 1: not UTF-8 at byte 0: convert it, for example with iconv"),
        # 10 of the 14 letters of each line are Cyrillic.
        ("прилив ушёл tide\n".encode() * 200, "2,000 of its 2,800 letters are not A-Z and would be dropped: keep them"),
        # Four lines of 77 characters, of which cleaning drops four each.
        (PROSE.encode() * 4, "has only 292 characters and 64 words after cleaning"),
        # However long it is, a text without blanks cannot be split, and a longer one would not help.
        (b"a" * 1_000_000, "has too few line ends and spaces to be split: break it into lines"),
        (b"a b c d\n" * 100 + b"1\n" * 5000 + b"end\n", "the val split has 0 words, and needs two: change"),
    ],
)
def test_unusable_texts_are_refused(content: bytes, complaint: str, preprocess: Preprocess, tmp_path: Path) -> None:
    old = tmp_path / "data" / "text" / "train.txt"
    old.parent.mkdir(parents=True)
    old.write_text("old\n")
    result = preprocess(content)
    refused(result, 3, f"error: diary.txt: {complaint}")
    assert "longer text" not in result.stderr
    assert old.read_text() == "old\n"
    assert [path.name for path in old.parent.iterdir()] == ["train.txt"]
    assert not (tmp_path / "reports" / "preprocess").exists()


def test_three_kilobytes_are_enough(preprocess: Preprocess) -> None:
    for content in (PROSE * 40, "潮水退去，慢慢地；無人在場。\n" * 75):
        assert 3000 < len(content.encode()) < 3300
        result = preprocess(content, normalise="none")
        assert (result.returncode, result.stderr) == (0, "")


def test_a_licence_of_project_gutenberg_is_warned_of(preprocess: Preprocess) -> None:
    header, body, licence = "Title: Tides\n" * 10, PROSE * 100, "You may copy it.\n" * 100
    for text in (header + START + body, body + END + licence):
        assert "warning: the text has Project Gutenberg's header or licence" in preprocess(text).stderr
    assert preprocess(body).stderr == ""


def test_a_few_dropped_letters_are_warned_of(preprocess: Preprocess, tmp_path: Path) -> None:
    # 1 of the 10 letters of each line is dropped, which is a tenth and no more.
    text = "the tide äts\n" * 200
    result = preprocess(text)
    assert result.returncode == 0
    assert "10.0% of the letters are not A-Z" in result.stderr
    assert "would be dropped: keep them" in preprocess("the tide ät\n" * 200).stderr
    result = preprocess(text, normalise="none")
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "data/text/test.txt").read_text().startswith("the tide äts\n")


def test_a_missing_corpus_is_an_error_of_one_line(run_stage: RunStage) -> None:
    refused(run_stage("preprocess"), 3, "no such file: run the stage that writes it")


def test_shares_that_leave_nothing_for_test_end_with_code_2(preprocess: Preprocess, tmp_path: Path) -> None:
    refused(
        preprocess(TEXT, split={"train": 0.9, "val": 0.1}),
        2,
        "preprocess.split: train and val must leave a share for test",
    )
    assert not (tmp_path / "data/text").exists()
