"""Written files may be read by whom the system lets read new files, and no setting of the process is touched for it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from seqlm.core.files import write_text

SCRIPT = """
import os, sys
from pathlib import Path
os.umask(0o027)
os.umask = None  # of the whole process: changing it for a moment would change what other threads create
from seqlm.core.files import write_text
write_text(Path(sys.argv[1]), "x")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_written_file_has_the_mode_of_a_new_file(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "x")], check=True)
    # 0o666 without the bits of 0o027.
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_an_old_file_is_replaced_and_its_name_may_hold_any_letters(tmp_path: Path) -> None:
    target = tmp_path / "Zeit und Reise – время" / "a b.txt"
    write_text(target, "old")
    write_text(target, "new")
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["a b.txt"]  # noqa: PTH208
