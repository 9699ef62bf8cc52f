"""Run an experiment with the settings of a preset: `python tools/preset.py raw_text -S download.corpus=my.txt`.

A preset is a file in presets/; each of its lines is one `-S` of `dvc exp run`. Several presets, which come first, are
combined in the order given. Everything else is passed on to `dvc exp run`, into which this script turns.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dvc.utils.cli_parse import to_path_overrides
from dvc.utils.hydra import apply_overrides, to_hydra_overrides
from ruamel.yaml import YAML

from smoke import ROOT, environment_of_python

PRESETS = {path.stem: path for path in sorted((ROOT / "presets").glob("*.txt"))}


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


def check(arguments: list[str]) -> None:
    """End with one line for settings that `dvc exp run` refuses in many, or that a stage refuses after hours."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-S", "--set-param", action="append", default=[])
    options, others = parser.parse_known_args(arguments)
    changes = to_path_overrides(options.set_param).get("params.yaml", [])
    with TemporaryDirectory() as folder:
        try:
            sweeps = [each.input_line for each in to_hydra_overrides(changes) if each.is_sweep_override()]
            if not sweeps:
                apply_overrides(shutil.copy("params.yaml", folder), changes)
        except Exception as error:  # of DVC, Hydra or its parser
            sys.exit(f"error: {str(error.__cause__ or error).splitlines()[0]}{nearest(changes)}")
        if sweeps and "--queue" not in others:
            sys.exit(f"error: {sweeps[0]}: a comma separates several values, which need --queue; a decimal has a point")
        command = [sys.executable, str(ROOT / "stages" / "configure.py"), "--check"]
        if not sweeps and (code := subprocess.run(command, cwd=folder, check=False).returncode):
            sys.exit(code)


def nearest(changes: list[str]) -> str:
    """Return the name that a misspelt setting may stand for."""
    names = list(dotted(YAML(typ="safe", pure=True).load(Path("params.yaml"))))
    keys = [change.partition("=")[0] for change in changes if change[:1] not in ("+", "~")]
    near = [get_close_matches(key, names, 1) for key in keys if key not in names]
    return "".join(f" Did you mean {name}?" for match in near for name in match)


def dotted(params: Any, *parents: str) -> Iterator[str]:
    """Yield the names of all settings, as `-S` takes them."""
    for name, value in params.items() if isinstance(params, dict) else ():
        yield ".".join([*parents, name])
        yield from dotted(value, *parents, name)


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
    options += map(quoted, arguments[len(names) :])
    check(options)
    command = ["dvc", "exp", "run", *options]
    print(shlex.join(command), flush=True)
    # Not as a child: this Python would kill it after Ctrl-C, before DVC is back on the branch.
    os.execvpe(command[0], command, environment_of_python())


if __name__ == "__main__":
    main(sys.argv[1:])
