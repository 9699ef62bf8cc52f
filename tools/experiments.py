"""Compare experiments in a table that fits a terminal: `python tools/experiments.py`, or `make experiments`.

One row for the last commit and one for each experiment that started from it, best first: bits
per character of the best mixture, network and n-gram model, and the settings that differ from
the commit, written as for `-S`. `--model NAME` adds a column for a run. `make diff
REV=EXPERIMENT` compares every model, on test too.
"""

import argparse
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from check_lock import dvc
from preset import written

BEST = {"best mixture": "mixture", "best network": "network", "best n-gram": "ngram"}
"""Column -> its name in reports/evaluate/best.json."""
Cells = list[tuple[str, str]]
"""The file of metrics and the name in it of each column."""


class Row(NamedTuple):
    """One experiment."""

    name: str
    bits: list[float | None]
    changes: list[str]


def experiments() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the data of the last commit, then those of its experiments and of the workspace."""
    result = dvc(Path(), "exp", "show", "--json")
    if result.returncode:
        sys.exit(result.stderr)
    workspace, commit = json.loads(result.stdout)[:2]
    yield commit["name"] or commit["rev"][:7], commit["data"]
    for experiment in commit["experiments"] or ():
        newest = experiment["revs"][0]
        if newest["data"]:  # an experiment in the queue has none yet
            yield newest["name"] or newest["rev"][:7], newest["data"]
    yield "workspace", workspace["data"]


def settings(data: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of params.yaml by their dotted names; a run is one setting."""

    def flat(section: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for key, value in section.items():
            if isinstance(value, dict) and prefix != "runs.":
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    return dict(flat(data["params"]["params.yaml"]["data"], ""))


def changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield the settings that differ, written as for `-S`."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if name not in after:
            yield f"~{name}"
        elif name not in before:
            yield f"+{name}={written(new)}"
        elif isinstance(old, dict) and isinstance(new, dict):
            yield from changes(*({f"{name}.{key}": value for key, value in run.items()} for run in (old, new)))
        elif old != new:
            yield f"{name}={written(new)}"


def bits(data: dict[str, Any], cells: Cells) -> list[float | None]:
    """Return bits per character from the files of metrics; None where there are none."""
    values = [data["metrics"].get(path, {}).get("data", {}).get(name) for path, name in cells]
    return [value if isinstance(value, float) else None for value in values]


def rows(cells: Cells) -> list[Row]:
    """Return the commit, then its experiments by their bits, and the workspace if its settings are new."""
    (commit, before), *others = experiments()
    found: list[Row] = []
    for name, data in others:
        row = Row(name, bits(data, cells), list(changes(settings(before), settings(data))))
        if name != "workspace" or row.changes not in ([], *(known.changes for known in found)):
            found.append(row)
    found.sort(key=lambda row: [math.inf if value is None else value for value in row.bits])
    return [Row(commit, bits(before, cells), []), *found]


def table(names: list[str], found: list[Row], width: int) -> str:
    """Return the rows under these names of columns as text of at most ``width`` columns; long settings are wrapped."""
    first = max(len("experiment"), *(len(row.name) for row in found))
    lines = ["  ".join(["experiment".ljust(first), *(name.rjust(6) for name in names), "changed settings"])]
    indent = lines[0].index("changed settings")
    for row in found:
        numbers = ["" if value is None else f"{value:.3f}" for value in row.bits]
        cells = [number.rjust(max(len(name), 6)) for number, name in zip(numbers, names, strict=True)]
        wrapped = [
            line
            for change in row.changes
            for line in textwrap.wrap(change, max(width - indent, 24), break_on_hyphens=False)
        ]
        lines.append("  ".join([row.name.ljust(first), *cells, *wrapped[:1]]))
        lines += [" " * indent + line for line in wrapped[1:]]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], help="a run to add as a column; may be repeated")
    arguments = parser.parse_args()
    cells = [("reports/evaluate/best.json", name) for name in BEST.values()]
    cells += [(f"reports/score/{name}.json", "val_bits") for name in arguments.model]
    found = rows(cells)
    for column, name in enumerate(arguments.model, start=len(BEST)):
        if all(row.bits[column] is None for row in found):
            parser.error(f"--model {name}: no experiment has this run")
    print("Bits per character on val; lower is better.\n")
    width = shutil.get_terminal_size((120, 24)).columns
    print(table([*BEST, *arguments.model], found, width))


if __name__ == "__main__":
    main()
