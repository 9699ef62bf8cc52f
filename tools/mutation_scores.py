"""Print what share of the mutants the tests killed, for each package.

`make mutants` feeds it what `mutmut results --all true` prints.
"""

import sys
from collections import Counter
from collections.abc import Iterable

CAUGHT = ("killed", "timeout", "segfault")


def scores(lines: Iterable[str]) -> list[str]:
    """Return the rows of a table from lines such as ``seqlm.sine.study.x__rmse__mutmut_1: survived``."""
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        name, colon, status = line.strip().rpartition(": ")
        if colon and name.startswith("seqlm."):
            counts.setdefault(name.split(".")[1], Counter())[status] += 1
    rows = ["| package | mutants checked | killed | survived | no test | share killed |", "| --- " * 6 + "|"]
    for package, found in sorted(counts.items()):
        killed = sum(found[status] for status in CAUGHT)
        checked = sum(found.values()) - found["not checked"] - found["skipped"]
        if checked:
            untested = found["no tests"]
            rows.append(
                f"| {package} | {checked} | {killed} | {checked - killed - untested} | {untested} | "
                f"{killed / checked:.1%} |"
            )
    return rows


if __name__ == "__main__":
    print("\n".join(scores(sys.stdin)))
