"""Files are written whole or not at all."""

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqlm.core import files
from seqlm.core.errors import DataError, MachineError
from stages_by_hand import run_python, succeeded

WRITE_UNDER_UMASK = """
import os, sys
from pathlib import Path
os.umask(0o027)
os.umask = None  # it belongs to the whole process: a change, however short, would affect what other threads create
from seqlm.core.files import write_text
write_text(Path(sys.argv[1]), "x")
"""


def write_half(target: Path) -> None:
    with files.atomic_write(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError


def test_an_old_file_is_replaced_or_left_as_it_was_and_its_name_may_have_any_letters(tmp_path: Path) -> None:
    target = tmp_path / "Zeit und Reise – время" / "a b.txt"
    files.write_text(target, "old")
    files.write_text(target, "new")
    with pytest.raises(RuntimeError):
        write_half(target)
    with pytest.raises(MachineError, match="cannot be written"):
        files.write_text(target / "below a file", "")
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["a b.txt"]  # noqa: PTH208


def test_reports_have_nine_significant_digits_and_whole_numbers_in_full(tmp_path: Path) -> None:
    large, values = 12345678901234567, {"c": np.float64(1e-20 / 3), "d": (1.0, True, None)}
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "x.json", {"perplexity": float("nan")})
    assert list(tmp_path.iterdir()) == []
    files.write_json(tmp_path / "x.json", {"a": [1 / 3, large], "b": values})
    assert files.read_json(tmp_path / "x.json") == {
        "a": [0.333333333, large], "b": {"c": 3.33333333e-21, "d": [1, True, None]},
    }  # fmt: skip
    columns = {
        "double": [2 / 3, np.nan],
        "single": np.array([0.1, 2], np.float32),
        "mixed": pd.Series([1, None], dtype=object),
        "whole": [large, 0],
        "text": ["0.3333333333333333", None],
        "nullable": pd.array([7, None], "Int64"),
    }
    files.write_csv(tmp_path / "x.csv", pd.DataFrame(columns))
    assert (tmp_path / "x.csv").read_text().splitlines()[1:] == [
        f"0.666666667,0.100000001,1,{large},0.3333333333333333,7", ",2.0,,0,,",
    ]  # fmt: skip


def test_metrics_have_five_significant_digits(tmp_path: Path) -> None:
    files.write_metrics(tmp_path / "metrics.json", {"test_bits": 2.0684835712, "met": 123456, "val_bits": None})
    assert files.read_json(tmp_path / "metrics.json") == {"test_bits": 2.0685, "met": 123456, "val_bits": None}


def test_rows_are_written_as_a_frame_is(tmp_path: Path) -> None:
    rows = [{"token": '"', "count": np.int64(3), "share": 2 / 3}, {"token": "a,\n", "count": 2**70, "share": None}]
    files.write_csv(tmp_path / "rows.csv", rows)
    files.write_csv(tmp_path / "frame.csv", pd.DataFrame(rows))
    assert (tmp_path / "rows.csv").read_bytes() == b'token,count,share\n"""",3,0.666666667\n"a,\n",%d,\n' % 2**70
    assert (tmp_path / "frame.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()


def test_broken_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(DataError, match="no such file"):
        files.read_json(path)
    for content, complaint in ((b'{"a": ', "not JSON"), (b"\xff", "not UTF-8")):
        path.write_bytes(content)
        with pytest.raises(DataError, match=complaint):
            files.read_json(path)


def test_a_word_that_looks_like_a_missing_value_stays_a_word(tmp_path: Path) -> None:
    files.write_csv(tmp_path / "x.csv", pd.DataFrame({"token": ["null", "nan"], "count": [1, None]}))
    frame = files.read_csv(tmp_path / "x.csv")
    assert frame["token"].tolist() == ["null", "nan"]
    assert frame["count"].isna().tolist() == [False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_written_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    assert succeeded(run_python(WRITE_UNDER_UMASK, tmp_path / "x")) == ""
    # 0o666 without the bits of 0o027.
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
