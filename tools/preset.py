"""Run an experiment with the settings of a preset: `python tools/preset.py raw_text -S download.corpus=my.txt`.

A preset is a file in presets/; each of its lines is one `-S` of `dvc exp run`. Several presets, which come first, are
combined in the order given. Everything else is passed on to `dvc exp run`, into which this script turns.
"""

import os
import shlex
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from smoke import environment_of_python

PRESETS = {path.stem: path for path in sorted((Path(__file__).resolve().parent.parent / "presets").glob("*.txt"))}


def settings(names: list[str], params: dict[str, Any]) -> list[str]:
    """Return the settings of some presets, for a project with these ``params``: what is gone is not removed again."""
    lines = [line for name in names for line in PRESETS[name].read_text(encoding="utf-8").splitlines()]
    return [line for line in dict.fromkeys(lines) if line[:1] not in ("#", "~") or has(params, line[1:].split("."))]


def has(params: Any, parts: list[str]) -> bool:
    """Return whether there is a setting."""
    return not parts or (isinstance(params, dict) and parts[0] in params and has(params[parts[0]], parts[1:]))


def quoted(option: str) -> str:
    """Return a user's `KEY=VALUE` with quotes around the name of a file, which may have blanks or brackets."""
    key, _, value = option.partition("=")
    mark = '"' if "'" in value else "'"
    return f"{key}={mark}{value}{mark}" if os.path.isfile(value) else option  # noqa: PTH113 - a value may be too long


def main(arguments: list[str]) -> None:
    """Become `dvc exp run`; without a preset, list the presets."""
    names = list(takewhile(PRESETS.__contains__, arguments))
    if not names:
        print(__doc__, "presets:", sep="\n")
        for name, path in PRESETS.items():
            print(f"  {name:18}{path.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}")
        wrong = [word for word in arguments if word not in ("-h", "--help")]
        sys.exit(f"error: {wrong[0]}: no such preset" if wrong else 0)
    params = YAML(typ="safe", pure=True).load(Path("params.yaml"))
    options = [word for setting in settings(names, params) for word in ("-S", setting)]
    command = ["dvc", "exp", "run", *options, *map(quoted, arguments[len(names) :])]
    print(shlex.join(command), flush=True)
    # Not as a child: this Python would kill it after Ctrl-C, before DVC is back on the branch.
    os.execvpe(command[0], command, environment_of_python())


if __name__ == "__main__":
    main(sys.argv[1:])
