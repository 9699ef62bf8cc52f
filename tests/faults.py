"""Writes docs/reliability.md, the table of faults tried and survived, from the names of the tests.

`python tests/faults.py` writes it again; a test fails while the committed page differs.
"""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "reliability.md"

# Fault, and where it is provoked: modules, each with words of which a test's name has one (none: all of its tests).
AREAS: list[tuple[str, dict[str, tuple[str, ...]]]] = [
    ("Downloads, from a real server that misbehaves", {"download/test_download.py": ()}),
    ("A corpus that is here already", {"download/test_existing_corpus.py": ()}),
    (
        "Own text",
        {"preprocess/test_preprocess.py": ("cannot", "utf8", "dropped", "missing", "megabytes", "warned")},
    ),
    ("Settings, through `dvc exp run -S`", {"project/test_wrong_settings.py": ()}),
    (
        "Settings, against the typed model",
        {"configure/test_configure.py": ("refuse", "must", "bad", "leaves_nothing")},
    ),
    ("Kills, under a real `dvc repro`", {"project/test_kills.py": (), "project/test_parents.py": ()}),
    ("Kills, under a real `dvc exp run`", {"project/test_restore.py": ()}),
    (
        "Kills in the middle of a training",
        {
            "train/test_resume.py": (),
            "train/test_checkpoints.py": ("checkpoint", "at_once"),
            "train/test_train.py": ("checkpoint",),
            "train/test_machines.py": ("checkpoint",),
        },
    ),
    ("Full disk, read-only folder, permissions", {"project/test_disk.py": ()}),
    ("Stored files, in every stage that reads them", {"project/test_stored_files.py": ()}),
    ("Files in general", {"core/test_files.py": ("failure", "refus", "broken", "nan", "changed")}),
    (
        "Compiled loops that are kept on disk",
        {"core/test_compiling.py": ("without_a_place", "full_disk", "may_not", "goes", "broken")},
    ),
    ("Any input at all", {"project/test_fuzzing.py": ()}),
    ("Code hidden in files", {"project/test_layering.py": ("stored_code",)}),
    (
        "The same again",
        {
            "project/test_pipeline.py": ("second_run", "same_bytes", "killed"),
            "project/test_experiments.py": ("way_back", "ghost"),
        },
    ),
    ("Scripts by hand", {"project/test_by_hand.py": ("ghost", "goes", "leaves", "nothing")}),
    ("A lock file that is stale, or data that came in part", {"project/test_stale_lock.py": ("pulled", "renamed")}),
    ("The same from scratch", {"project/test_verify.py": ("scratch",)}),
]
HEAD = """# Faults tried and survived

Each line is a test that provokes the fault for real: a server that misbehaves, a signal in the middle of a stage, a
disk without space, a file with one bit flipped. What must hold each time: the stage ends with one line and the exit
code of its kind, old files stay as they were, nothing half-written and no temporary file is left, and the next run ends
with the results of one that was never disturbed. `make test` runs the quick ones, `make test-all` all of them.

One fault is DVC's own: killed in the moment in which it writes its table of locks, it refuses to run again and names
`.dvc/tmp/rwlock`. `make repro` removes a broken one; by hand it is `rm .dvc/tmp/rwlock`. Killed at any other moment,
it prints a dozen warnings at the next start, of processes that "had been killed": they are harmless.

`python tests/faults.py` writes this page from the names of the tests.
"""


def is_slow(node: ast.AST) -> bool:
    return "mark.slow" in ast.unparse(node)


def rows(module: str, words: tuple[str, ...]) -> list[str]:
    """Return a row of the table for each test of a module that one of the words picks."""
    found = []
    tree = ast.parse((TESTS / module).read_text())
    all_slow = any(isinstance(node, ast.Assign) and is_slow(node) for node in tree.body)
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        if words and not any(word in node.name for word in words):
            continue
        slow = all_slow or any(is_slow(decorator) for decorator in node.decorator_list)
        sentence = node.name.removeprefix("test_").replace("_", " ")
        found.append(f"| {sentence} | `{'make test-all' if slow else 'make test'}` |")
    assert found, f"{module} has no test with any of {words}"
    return found


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for title, modules in AREAS:
        table = "\n".join(row for module, words in modules.items() for row in rows(module, words))
        places = ", ".join(f"`tests/{module}`" for module in modules)
        parts.append(f"## {title}\n\nIn {places}.\n\n| what is shown | with |\n| --- | --- |\n{table}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
