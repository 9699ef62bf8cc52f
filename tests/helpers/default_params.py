"""The settings that tests start from, in a file of their own: the project's ``params.yaml`` may hold an experiment.

After a change of the project's defaults, ``python tests/helpers/default_params.py`` writes the file again.
"""

import re
from pathlib import Path

import pytest

from seqlm.core.settings import read_params

PARAMS_FILE = Path(__file__).with_name("params.yaml")
_PROJECT_FILE = Path(__file__).resolve().parents[2] / "params.yaml"


def skip_if_experiment_is_applied() -> None:
    """Skip a test of the committed results if the project's settings are not the default ones."""
    here, defaults = (read_params(path) | {"num_threads": None} for path in (_PROJECT_FILE, PARAMS_FILE))
    if changed := [section for section in defaults if here.get(section) != defaults[section]]:
        pytest.skip(f"params.yaml differs from tests/helpers/params.yaml: {', '.join(changed)}")


if __name__ == "__main__":
    # Without comments and empty lines, and with one thread: tests share the processors.
    settings = re.sub(r"[ ]*#.*|\n(?=\n)", "", _PROJECT_FILE.read_text(encoding="utf-8")).lstrip()
    PARAMS_FILE.write_text(re.sub("^num_threads: .*", "num_threads: 1", settings, flags=re.M), encoding="utf-8")
