"""Run an experiment with the settings of a preset: `python tools/preset.py raw_text -S download.corpus=my.txt`.

A preset is a file in presets/. Each of its lines KEY: VALUE is one `-S KEY=VALUE` of
`dvc exp run`, so a key that begins with + is added and one that begins with ~ is removed.
Several presets, which come first, are combined in the order given; everything else is passed on to `dvc exp run`.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from ruamel.yaml import YAML

from smoke import environment_of_python

PRESETS = Path(__file__).resolve().parent.parent / "presets"
_NO_WORDS = ("null", "true", "false", "inf", "nan")  # Hydra reads these as other types


def names() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def description(name: str) -> str:
    """Return the first line of a preset, which says what it is for."""
    return (PRESETS / f"{name}.yaml").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def overrides(name: str, params: dict[str, Any]) -> Iterator[str]:
    """Yield a preset's settings as values of `-S`, for a project with these settings."""
    for key, value in YAML(typ="safe", pure=True).load(PRESETS / f"{name}.yaml").items():
        if not key.startswith("~"):
            yield f"{key}={written(value)}"
        elif has(params, key[1:].split(".")):  # an earlier preset may have removed it
            yield key


def has(params: Any, parts: list[str]) -> bool:
    """Return whether there is a setting."""
    return not parts or (isinstance(params, dict) and parts[0] in params and has(params[parts[0]], parts[1:]))


def written(value: Any) -> str:
    """Return a value in the grammar of `-S`, which is that of Hydra's overrides."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if not isinstance(value, str):
        return "null" if value is None else str(value).lower()
    is_word = re.fullmatch(r"[A-Za-z_][\w./-]*", value) and value.lower() not in _NO_WORDS
    # A backslash counts as one, except before a quote.
    return value if is_word else "'" + re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + m[2].replace("'", r"\'"), value) + "'"


def is_text(option: str) -> bool:
    """Return whether the value of a user's `KEY=VALUE` must be quoted: the name of a file may have blanks or quotes."""
    try:
        OverridesParser.create().parse_override(option)
        return Path(option.partition("=")[2]).is_file()
    except HydraException:
        return "=" in option
    except OSError:  # too long for the name of a file
        return False


def passed_on(words: list[str]) -> Iterator[str]:
    """Yield what the user adds for `dvc exp run`, with texts quoted."""
    for before, word in zip(["", *words], words, strict=False):
        key, _, value = word.partition("=")
        yield f"{key}={written(value)}" if before in ("-S", "--set-param") and is_text(word) else word


def main(arguments: list[str]) -> int:
    """Run the experiment, and return DVC's exit code; without arguments, list the presets."""
    known = names()
    if not arguments or arguments[0] not in known:
        if arguments:
            print(f"error: {arguments[0]}: no such preset", file=sys.stderr)
        print("presets:", *(f"  {name:18}{description(name)}" for name in known), sep="\n")
        return 2 if arguments else 0
    chosen = list(takewhile(known.__contains__, arguments))
    params = YAML(typ="safe", pure=True).load(Path("params.yaml"))
    settings = [word for name in chosen for override in overrides(name, params) for word in ("-S", override)]
    command = ["dvc", "exp", "run", *settings, *passed_on(arguments[len(chosen) :])]
    print(shlex.join(command), flush=True)
    # The environment of this Python comes first, so that DVC and the stages are found without activating it.
    return subprocess.run(command, env=environment_of_python(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
