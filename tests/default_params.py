"""The settings that tests start from, in a file of their own: the project's ``params.yaml`` may hold an experiment.

After a change of the project's defaults, ``python tests/default_params.py`` writes the file again.
"""

import re
import subprocess
from pathlib import Path

import pytest

PARAMS_FILE = Path(__file__).with_name("params.yaml")
_PROJECT_FILE = Path(__file__).resolve().parent.parent / "params.yaml"


def skip_if_experiment_is_applied() -> None:
    """Skip a test of the committed results if the project's settings are not the committed ones."""
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", _PROJECT_FILE], cwd=_PROJECT_FILE.parent)
    if changed.returncode == 1:
        pytest.skip("params.yaml differs from the last commit: the results may be those of an experiment")


def without_comments(text: str) -> str:
    """Return the settings of a ``params.yaml`` without its comments and empty lines."""
    return re.sub(r"[ ]*#.*|\n(?=\n)", "", text).lstrip()


if __name__ == "__main__":
    # One thread: tests share the processors.
    settings = without_comments(_PROJECT_FILE.read_text(encoding="utf-8"))
    PARAMS_FILE.write_text(re.sub("^num_threads: .*", "num_threads: 1", settings, flags=re.M), encoding="utf-8")
