"""``python tools/compare.py [BEFORE [AFTER]]``: whether models got worse from one revision to another.

A revision is what DVC takes: a commit, a branch, the name of an experiment; by default HEAD and the workspace. The exit
code is 1 if a model is gone, has no finite value, or needs more bits per character than before by more than the
tolerance, and 2 if the revisions cannot be compared.
"""

import json
import sys
from itertools import product
from typing import Any

import dvc.api
from dvc.exceptions import DvcException

TOLERANCE = 0.02
"""The largest relative rise of a model's bits per character."""
SPLITS = ("val", "test")


def read(name: str, revision: str | None) -> Any:
    """Return a report of a revision; None is the workspace."""
    return json.loads(dvc.api.read(f"reports/{name}", rev=revision, mode="r", encoding="utf-8"))


def main(before: str = "HEAD", after: str | None = None) -> int:
    """Print what changed; return the exit code."""
    try:
        corpora = [read("download/summary.json", revision) for revision in (before, after)]
        old, new = (read("evaluate/metrics.json", revision) for revision in (before, after))
    except (DvcException, OSError, ValueError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    if corpora[0]["sha256"] != corpora[1]["sha256"]:
        print(f"error: the texts differ: {corpora[0]['name']} and {corpora[1]['name']}", file=sys.stderr)
        return 2
    changes, is_worse = list[str](), False
    for model, split in product(dict.fromkeys([*old, *new]), SPLITS):
        bits, now = (found.get(model, {}).get(split, {}).get("bits_per_character") for found in (old, new))
        failed = bits is not None and (now is None or now > bits * (1 + TOLERANCE))
        if failed or (bits or 0) != (now or 0):
            change = f" ({now / bits - 1:+.2%})" if bits and now else ""
            changes.append(f"{'WORSE ' if failed else ''}{model} on {split}: {bits} -> {now}{change}")
        is_worse |= failed
    print("\n".join(changes) or "Every model has the same bits per character as before.")
    return int(is_worse)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
