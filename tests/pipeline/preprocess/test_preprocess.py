"""Decoding, cleaning and splitting: examples, and any text as plain Python treats it; the stage, by hand."""

import math
import re
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reference
from seqlm.core.errors import DataError
from seqlm.core.files import read_json, sha256_of_file, write_json
from seqlm.core.layout import Layout
from seqlm.core.settings import read_params
from seqlm.core.text import TextSize
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.pipeline.preprocess import splitting
from seqlm.pipeline.preprocess.settings import SplitFractions
from seqlm.pipeline.preprocess.splitting import MIN_CHARACTERS, repeated_shares, split_text
from seqlm.preprocess import cleaning
from seqlm.preprocess.cleaning import Letters, clean_text, decode_raw
from seqlm.train.minibatches import Plan
from smoke import ROOT, change_params
from stages_by_hand import Finished, RunStage, refused, succeeded

# Letters, spaces, all that ends lines or looks as if it did, characters of two, three and four bytes; marks and parts
# of Korean syllables, which compose with the character before them.
TRICKY = "aBz \t\n\r\x0b\x85\xa0é\u0301\u0323\u1100\u1161\u11a8\uac00ж漢字\u3000\u2028\ufeff\ufffd😀-0"
texts = st.text(alphabet=TRICKY, max_size=80) | st.text(max_size=80)
pieces = st.sampled_from([b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\xed\xa0\x80"])
broken = st.lists(texts.map(str.encode) | st.binary(max_size=6) | pieces).map(b"".join)
FRACTIONS = {"train": 0.8, "val": 0.1, "test": 0.1}


def cleaned(content: bytes, normalise: str) -> tuple[str, Letters]:
    raw = decode_raw(content, "mine.txt")
    return clean_text(raw.decode(), normalise), Letters.of(raw)


@given(broken | texts.map(str.encode), st.sampled_from(["letters", "none"]), st.booleans())
@example("\ufeffab\r".encode(), "letters", True)
@example(b"\xef\xbb\xbfab\r\n\r\ncd\r\n", "none", True)
@example(b"a \r\n b\r\r\nc", "letters", True)
@example(b"x\x00\xff", "none", True)
@example(b"\xef\xbb\xbfab\xe2\x82", "letters", True)
@example("ab жé 12 ß".encode(), "letters", False)
@example("\fa\v\u2028b\x85".encode(), "none", False)
def test_bytes_are_cleaned_as_in_plain_python(content: bytes, normalise: str, by_line: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if by_line:
            patch.setattr(cleaning, "_BLOCKS", re.compile(rb"(?s).[^\n]*\n?"))
        try:
            expected, *letters = reference.clean(content, normalise)
        except DataError as error:
            with pytest.raises(DataError, match=f"(?:{error})(?!\\d)"):
                cleaned(content, normalise)
            return
        assert cleaned(content, normalise) == (expected.removesuffix("\n"), Letters(*letters))


@given(texts)
def test_a_text_is_counted_as_in_plain_python(text: str) -> None:
    text += "\n"
    assert TextSize.of(text.encode()) == TextSize(*reference.count(text))


lines = st.lists(st.sampled_from(["", "a", "bc d", "漢字 é", "efg hij klm", "no\u3000space", " "]), max_size=40)
fractions = st.sampled_from(
    [FRACTIONS, {"train": 0.34, "val": 0.33, "test": 0.33}, {"train": 0.05, "val": 0.05, "test": 0.9}]
)


@given(lines.map("\n".join).filter(len) | lines.map(" ".join).filter(len), fractions)
def test_a_split_keeps_the_text_and_cuts_at_the_nearest_line_ends(text: str, shares: dict[str, float]) -> None:
    data = text.encode()
    try:
        parts = [part.decode() for part in split_text(data, shares).values()]
    except DataError:
        return
    # A space where the text is cut, or at its end, becomes a line end.
    whole = text if text.endswith((" ", "\n")) else f"{text}\n"
    assert "".join(parts).replace("\n", " ") == whole.replace("\n", " ")
    assert all(part.endswith("\n") for part in parts)
    cut, goal, tolerance = 0, 0.0, len(data) * min(shares.values()) / 10
    for part, share in list(zip(parts, shares.values(), strict=True))[:-1]:
        cut, goal = cut + len(part.encode()), goal + share * len(data)
        distances = {mark: [abs(each.end() - goal) for each in re.finditer(mark, data)] for mark in (b"\n", b" ")}
        mark = b"\n" if min(distances[b"\n"], default=math.inf) <= tolerance else b" "
        assert abs(cut - goal) == pytest.approx(min(distances[mark]))


TEXT = "The tide went out.\n\nIt came back, slowly.\n" * 60
MARKS = map("".join, product(ascii_lowercase, repeat=2))
PROSE = [
    f"The tide went out at the mark {mark}, slowly; when it came back at {mark}, nobody saw the mark {mark}.\n"
    for mark in MARKS
]
"""No line occurs twice, nor do 48 bytes in a row."""
START, END = (f"*** {which} OF THE PROJECT GUTENBERG EBOOK TIDES ***\n" for which in ("START", "END"))


@pytest.fixture
def preprocess(run_stage: RunStage, tmp_path: Path) -> RunStage:
    """Runs the stage on a corpus that the download stage would write under the name of the user's own file."""

    def run(content: str | bytes, **settings: Any) -> Finished:
        layout = Layout(tmp_path)
        layout.raw_text.parent.mkdir(exist_ok=True)
        layout.raw_text.write_bytes(content.encode() if isinstance(content, str) else content)
        write_json(layout.corpus_record, {"file": "diary.txt", "sha256": sha256_of_file(layout.raw_text)})
        change_params(layout.params, {f"preprocess.{name}": value for name, value in settings.items()})
        return run_stage("preprocess")

    return run


def test_three_splits_and_a_table_of_their_sizes(preprocess: RunStage, tmp_path: Path) -> None:
    succeeded(preprocess(TEXT))
    summary = read_json(tmp_path / "reports/preprocess/summary.json")
    # 60 times "the tide went out" (17 characters), "" and "it came back slowly" (19): 3 lines, 8 words.
    total = {what: sum(summary[split][what] for split in FRACTIONS) for what in summary["test"]}
    assert total == {"characters": 60 * 36, "words": 60 * 8, "lines": 60 * 3}
    assert summary["train"]["characters"] / (60 * 36) == pytest.approx(0.8, abs=0.02)
    assert (tmp_path / "reports/preprocess/splits.csv").read_text().startswith("split,lines,characters,words\ntrain,")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"1234 5678\n" * 100, "has only 0 characters and 0 words after cleaning: use a text of at least 1500"),
        (b"one\r\ntwo\rthree \xe9t\xe9\n" * 100, "line 3: not UTF-8 at byte 15: convert it"),
        (b"one\n\ntw\x00\n" * 100, "line 3: NUL byte at byte 7: this is not a text file"),
        # 1 of the 9 letters of each line, 1 of its 18 characters, and 10 of 14 letters are Cyrillic.
        ("ж abcdefgh 123456789\n".encode() * 200, "200 of its 1,800 letters are not A-Z"),
        ("прилив ушёл tide\n".encode() * 200, "2,000 of its 2,800 letters are not A-Z and would be dropped: keep them"),
        # However long it is, a text without blanks cannot be split.
        (b"a" * 1_000_000, "has too few line ends and spaces to be split: break it into lines"),
        (b"a b c d\n" * 300 + b"1\n" * 3900 + b"val\n" + b"1\n" * 1100 + b"end\n", "the val split has 1 word"),
    ],
)
def test_unusable_texts_are_refused(content: bytes, complaint: str, preprocess: RunStage, tmp_path: Path) -> None:
    old = tmp_path / "data" / "text" / "train.txt"
    old.parent.mkdir(parents=True)
    old.write_text("old\n")
    refused(preprocess(content), 3, f"error: diary.txt: {complaint}")
    assert {path: path.read_text() for path in old.parent.iterdir()} == {old: "old\n"}
    assert not (tmp_path / "reports" / "preprocess").exists()


def test_a_licence_of_project_gutenberg_is_warned_of(preprocess: RunStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "_SEARCHED", 2000)  # bytes of the beginning, and of the end
    header, body, licence = "Title: Tides\n" * 10, "".join(PROSE), "You may copy it.\n" * 100
    for text in (header + START + body, body + END + licence):
        assert "warning: the text has Project Gutenberg's header or license" in preprocess(text).stderr
    assert preprocess(body).stderr == ""


def test_a_text_that_changed_after_its_download_is_refused(
    preprocess: RunStage, run_stage: RunStage, tmp_path: Path
) -> None:
    preprocess("".join(PROSE))
    (tmp_path / "data/raw/corpus.txt").write_text("".join(PROSE[1:]))
    refused(run_stage("preprocess"), 3, "data/raw/corpus.txt: its content does not match its SHA-256")


def test_a_few_dropped_letters_are_warned_of(preprocess: RunStage, tmp_path: Path) -> None:
    # 1 of the 10 letters of each line is dropped, which is a tenth and no more.
    text = "the tide äts\n" * 200
    assert "10.0% of the letters are not A-Z" in preprocess(text).stderr
    assert "would be dropped: keep them" in preprocess("the tide ät\n" * 200).stderr
    assert "not A-Z" not in preprocess(text, normalise="none").stderr
    assert (tmp_path / "data/text/test.txt").read_text().startswith("the tide äts\n")


def test_what_a_person_must_know_is_printed_and_stored(preprocess: RunStage, tmp_path: Path) -> None:
    # Of the 15 characters of each line that are not blank, 10 are no letters; a and b keep the lines apart.
    code = "".join(f"{line[29:32]}[0] = (1 + 2);\n" for line in PROSE)
    result = preprocess(code * 2)
    assert "make preset NAME=raw_text keeps them" in result.stderr
    # The second half repeats the first one, so every line of val and test is one of train.
    assert "100% of the val split are passages that the training split has too" in result.stderr
    summary = read_json(tmp_path / "reports/preprocess/summary.json")
    assert summary["repeated"] == {"val": 1, "test": 1}
    assert summary["dropped"] == pytest.approx(10 / 12, abs=0.01)
    assert [f"warning: {warning}" for warning in summary["warnings"]] == result.stderr.splitlines()
    assert "dropped: 83" in result.stdout
    # 3,000 characters: a tenth is too little to compare models on.
    assert re.search("(?s)the val split has only .*the test split has only 2", preprocess("".join(PROSE)[:3000]).stderr)
    assert preprocess("".join(PROSE)).stderr == ""
    assert read_json(tmp_path / "reports/preprocess/summary.json")["warnings"] is None


def test_passages_that_train_has_too_are_found() -> None:
    """Also on one long line, and wherever they begin; what is shorter than a block, or new, is not."""
    new = np.random.default_rng(0).integers(ord("a"), ord("z"), 9000, np.uint8).tobytes()
    train, other = new[:5000], new[5000:]
    parts = {"copy": train[1001:1096], "fourth": other[:3000] + train[777:1777], "new": other[:100], "short": b"a\n"}
    found = repeated_shares({"train": train, **parts})
    assert found == {"copy": 1, "fourth": pytest.approx(1 / 4, abs=0.03), "new": 0, "short": 0}


def test_a_text_that_is_long_enough_for_preprocess_is_long_enough_to_train() -> None:
    params = read_params(ROOT / "params.yaml")
    shares = SplitFractions(**params["preprocess"]["split"]).shares
    train = split_text("".join(PROSE)[:MIN_CHARACTERS].encode(), shares)["train"]
    for config in resolve_runs(params, source="params.yaml").values():
        assert Plan.of(config, len(train.replace(b"\n", b""))).num_rows  # or DataError


def test_shares_that_leave_nothing_for_test_end_with_code_2(preprocess: RunStage) -> None:
    refused(preprocess(TEXT, split={"train": 0.9, "val": 0.1}), 2, "preprocess.split: train and val must leave a share")
