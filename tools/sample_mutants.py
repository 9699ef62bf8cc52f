"""Print the names of some mutants of each package, drawn at random but always the same.

    python tools/sample_mutants.py PATTERN NUMBER

``make mutants SAMPLE=NUMBER`` runs mutmut on them. Their names match ``PATTERN``, such as ``seqlm.sine.*``.
"""

import random
import sys
from collections.abc import Iterable
from fnmatch import fnmatch


def sample(names: Iterable[str], number: int) -> list[str]:
    """Return up to ``number`` of the mutants of each package, from names such as ``seqlm.sine.study.x_f__mutmut_1``."""
    packages: dict[str, list[str]] = {}
    for name in sorted(names):
        packages.setdefault(name.split(".")[1], []).append(name)
    return [name for of_one in packages.values() for name in random.Random(0).sample(of_one, min(number, len(of_one)))]


def all_names() -> list[str]:
    """Return the names of all mutants, which mutmut derives from the code."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.file_utils import walk_mutatable_files
    from mutmut.utils.format_utils import get_mutant_name

    found = ((path, mutate_file_contents(str(path), path.read_text("utf-8"))) for path in walk_mutatable_files())
    return [get_mutant_name(path, name) for path, mutated in found for name in mutated.mutant_names]


if __name__ == "__main__":
    pattern, number = sys.argv[1:]
    print("\n".join(sample((name for name in all_names() if fnmatch(name, pattern)), int(number))))
