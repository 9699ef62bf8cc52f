"""``tools/verify.py`` with made-up runs: what differs is named and ends with code 1."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import verify
from smoke import ROOT, SMALL

EQUAL = {"preprocess": {"a": "1"}, "train@x": {"b": "2", "c": "3"}}
CHANGED = {"train@x": {"b": "0", "c": "3"}, "preprocess": {"a": "9"}}
DIFFERING = ("preprocess: a", "train@x: b")


def write_lock(folder: Path, stages: dict[str, dict[str, str]]) -> None:
    outs = {name: {"outs": [{"path": path, "md5": md5} for path, md5 in of.items()]} for name, of in stages.items()}
    YAML().dump({"stages": outs}, folder / "dvc.lock")


@pytest.mark.parametrize(
    ("options", "runs", "code", "printed"),
    [
        ([], [EQUAL], 0, ["first run: 3 of 3 outputs are equal"]),
        (
            [],
            [CHANGED],
            1,
            ["first run: 1 of 3 outputs are equal", "first run: preprocess: a", "first run: train@x: b"],
        ),
        ([], [{"preprocess": {"a": "1"}}], 1, ["first run: 1 of 3 outputs are equal", "first run: train@x: b, c"]),
        (["--small"], [EQUAL, EQUAL], 0, [f"{run} run: 3 of 3 outputs are equal" for run in ("first", "second")]),
        (["--small"], [CHANGED, EQUAL], 1, [f"second run: {each}" for each in DIFFERING]),
        ([], [None], 255, []),
    ],
)
def test_every_output_that_differs_is_named(
    options: list[str], runs: list[Any], code: int, printed: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    write_lock(tmp_path, EQUAL)
    (tmp_path / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    waiting: Iterator[Any] = iter(runs)

    def run_copy(folder: Path, changes: dict[str, Any], _: object) -> int:
        # The small settings, or those of params.yaml on no other corpus.
        assert changes == (SMALL if options else {"download.fallback": None})
        if (stages := next(waiting)) is None:
            return 255  # of a pipeline that fails
        folder.mkdir()
        write_lock(folder, stages)
        return 0

    monkeypatch.setattr(verify, "ROOT", tmp_path)
    monkeypatch.setattr(verify, "run_copy", run_copy)
    monkeypatch.setattr("sys.argv", ["verify.py", *options])
    with pytest.raises(SystemExit) as end:
        sys.exit(verify.main())
    assert end.value.code == code
    assert capsys.readouterr().out.splitlines()[-len(printed) :] == printed or not printed
    assert next(waiting, None) is None
