"""Whoever follows a list of CONTRIBUTING.md arrives: each is followed here, in a copy of the project."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from declarations import require_declared_files, require_declared_settings
from smoke import ROOT, SMALL
from workspace import Workspace

TEXT = "the sea, the sea and the tide that comes and goes\n" * 200


def steps(heading: str) -> list[str]:
    """Return the numbered steps under a heading of CONTRIBUTING.md, or its one paragraph."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    numbered = re.findall(r"^\d\. (.*?)(?=^\d\. |\n\n|\Z)", section, flags=re.M | re.DOTALL)
    return numbered or [section.split("\n\n")[1 if section.startswith("\n\n") else 0]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path)
    workspace.run("git", "init", "--quiet", "--initial-branch=main")
    workspace.update_params(SMALL)
    return workspace


def edit(workspace: Workspace, name: str, old: str, new: str) -> None:
    """Put ``new`` in place of ``old`` everywhere in a file that has it."""
    path = workspace.folder / name
    text = path.read_text()
    assert old in text, f"{name} has no {old!r} any more: bring this test up to date"
    path.write_text(text.replace(old, new))


def write(workspace: Workspace, name: str, text: str) -> None:
    (workspace.folder / name).parent.mkdir(exist_ok=True)
    (workspace.folder / name).write_text(text)


PARAMS = '''"""Settings of the ``lengths`` stage."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section


class LengthsParams(Section):
    """How lines are counted."""

    longest: Annotated[int, Field(ge=1)]
    """Longer lines count as this long."""
'''
LIBRARY = '''"""Counts of lines by their length."""

from collections.abc import Iterable


def count_lengths(lines: Iterable[str], longest: int) -> dict[str, int]:
    """Return the number of lines of each length in characters."""
    counts: dict[str, int] = {}
    for line in lines:
        length = str(min(len(line), longest))
        counts[length] = counts.get(length, 0) + 1
    return counts
'''
SCRIPT = '''"""Count lines by their length."""

from harness import stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.lengths.settings import LengthsParams


@stage()
def main(layout: Layout) -> None:
    """Count lines by their length."""
    from seqlm.core.files import write_json
    from seqlm.lengths.counting import count_lengths

    params = load(layout.params, "lengths", LengthsParams)
    text = layout.split("train").read_text(encoding="utf-8")
    write_json(layout.reports("lengths", "counts.json"), count_lengths(text.splitlines(), params.longest))


if __name__ == "__main__":
    main()
'''
ENTRY = """  lengths:
    desc: Count lines by their length
    cmd: python stages/lengths.py
    params: [lengths]
    deps:
    - data/text/train.txt
    - src/seqlm/core
    - src/seqlm/lengths
    - stages/harness.py
    - stages/lengths.py
    plots:
    - reports/lengths/counts.json: {cache: false}

"""
TEST = """from seqlm.lengths.counting import count_lengths


def test_long_lines_count_as_the_longest() -> None:
    # "abc" has 3 characters, "a" has 1, "abcdef" counts as 4.
    assert count_lengths(["abc", "a", "abcdef"], 4) == {"3": 1, "1": 1, "4": 1}
"""


@pytest.mark.slow
def test_a_stage_is_added_by_its_list(workspace: Workspace) -> None:
    package, script, entry, test = (" ".join(step.split()) for step in steps("Add a stage"))

    for name in ("src/seqlm/NAME/", "settings.py", "PACKAGES", "tests/project/test_layering.py",
                 "src/seqlm/configure/settings.py", "deps of `configure`", "params.yaml"):  # fmt: skip
        assert name in package
    write(workspace, "src/seqlm/lengths/__init__.py", '"""Lengths of lines."""\n')
    write(workspace, "src/seqlm/lengths/settings.py", PARAMS)
    write(workspace, "src/seqlm/lengths/counting.py", LIBRARY)
    edit(workspace, "tests/project/test_layering.py", '    "report",\n', '    "lengths", "report",\n')
    whole = "src/seqlm/configure/settings.py"
    edit(workspace, whole, "from seqlm.ngrams.settings", "from seqlm.lengths.settings import LengthsParams\n"
         "from seqlm.ngrams.settings")  # fmt: skip
    edit(workspace, whole, "    compare: CompareParams\n", "    compare: CompareParams\n    lengths: LengthsParams\n")
    path = "    - src/seqlm/ngrams/settings.py\n"
    edit(workspace, "dvc.yaml", path, f"    - src/seqlm/lengths/settings.py\n{path}")
    with (workspace.folder / "params.yaml").open("a") as file:
        file.write("\nlengths:\n  longest: 40  # longer lines count as this long\n")

    for name in ("stages/NAME.py", "`@stage()`", '`layout.reports("NAME")`'):
        assert name in script
    write(workspace, "stages/lengths.py", SCRIPT)

    assert "dvc.yaml" in entry
    edit(workspace, "dvc.yaml", "  report:\n", f"{ENTRY}  report:\n")

    for name in ("tests/NAME/", "README's table", "graph"):
        assert name in test
    write(workspace, "tests/lengths/test_counting.py", TEST)
    edit(workspace, "README.md", "| `report` |", "| `lengths` | counts lines by their length |\n| `report` |")
    edit(workspace, "README.md", "  sine --> report\n", "  sine --> report\n  preprocess --> lengths\n")

    # What the project asks of every stage.
    workspace.run("dvc", "repro", "configure", "lengths")
    workspace.keep_traces()
    counts = json.loads((workspace.folder / "reports/lengths/counts.json").read_text())
    assert sum(counts.values()) == len((workspace.folder / "data/text/train.txt").read_text().splitlines())
    require_declared_files(workspace)
    require_declared_settings(workspace)
    workspace.run("ruff", "check", ".")
    workspace.run("mypy")
    workspace.environment.pop("SEQLM_TRACE")
    tests = ("tests/project/test_layering.py", "tests/lengths", "tests/project/test_docs.py")
    workspace.run("pytest", "-q", "-n", "0", *tests, "-k", "layering or lengths or graph or import or stage")


NETWORK = Path(__file__).with_name("templates") / "minimal_gated.py"
NETWORK_ENTRY = """    "mgu": NetworkKind(
        "seqlm.rnn.minimal_gated:MinimalGatedRNN", None, {**_ONE_LAYER, "activation": "tanh", "truncation": "regular"}
    ),
"""


@pytest.mark.slow
def test_a_kind_of_network_is_added_by_its_list(workspace: Workspace) -> None:
    module, entry, comment = (" ".join(step.split()) for step in steps("Add a model"))

    for name in ("`src/seqlm/rnn/`", "`AutogradNetwork`", "src/seqlm/rnn/network.py", f"templates/{NETWORK.name}"):
        assert name in module
    write(workspace, f"src/seqlm/rnn/{NETWORK.name}", NETWORK.read_text())

    for name in ("`KINDS`", "src/seqlm/rnn/settings.py"):
        assert name in entry
    scratch = '    "scratch": NetworkKind('
    edit(workspace, "src/seqlm/rnn/settings.py", scratch, NETWORK_ENTRY + scratch)

    for name in ("`train.model`", "params.yaml"):
        assert name in comment

    workspace.update_params({"runs": {"mine": {"token": "char", "model": "mgu", "carry_state": False}}})
    workspace.run("dvc", "repro", "evaluate")
    workspace.keep_traces()
    # Softer than certain, better than uniform over 28 tokens.
    assert 1 < workspace.metrics()["mine"]["test"]["perplexity"] < 28.5
    require_declared_files(workspace)
    workspace.run("mypy")


KIND = '''"""Words whatever their case."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seqlm.vocab.kinds.word import WordKind

if TYPE_CHECKING:
    from seqlm.vocab.subword_tokenizer import Pieces


class FoldedKind(WordKind):
    """Words in small letters."""

    name, noun = "folded", "folded word"

    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks in small letters."""
        for block in super().blocks(path, line_separator, block_bytes):
            yield block.lower()

    def tokenize(self, text: str, line_separator: str, pieces: "SubwordTokenizer | None") -> list[str]:
        """Return the words of a text in small letters."""
        return super().tokenize(text.lower(), line_separator, pieces)
'''


@pytest.mark.slow
def test_a_kind_of_token_is_added_by_its_list(workspace: Workspace) -> None:
    module, settings, stages = (" ".join(step.split()) for step in steps("Add a kind of token"))

    for name in ("src/seqlm/vocab/kinds/", "`TokenKind`", "`ALL`", "src/seqlm/vocab/kinds/registry.py"):
        assert name in module
    write(workspace, "src/seqlm/vocab/kinds/folded.py", KIND)
    known = "src/seqlm/vocab/kinds/registry.py"
    edit(workspace, known, "from seqlm.vocab.kinds.kind ", "from seqlm.vocab.kinds.folded import FoldedKind\n"
         "from seqlm.vocab.kinds.kind ")  # fmt: skip
    edit(workspace, known, "SubwordKind())", "SubwordKind(), FoldedKind())")

    for name in ("`vocab`", "params.yaml", "`ngrams.max_order`"):
        assert name in settings
    orders = SMALL["ngrams.max_order"] | {"folded": 2}
    own = {"vocab.folded": {"min_freq": 0, "reserved_tokens": []}, "ngrams.max_order": orders}
    workspace.update_params(own | {"preprocess.normalise": "none", "runs.plain": {"token": "folded"}})

    for name in ("foreach", "`vocab`", "`ngrams`", "`score-ngrams`", "dvc.yaml"):
        assert name in stages
    edit(workspace, "dvc.yaml", "foreach: [char, word, subword]", "foreach: [char, word, subword, folded]")

    workspace.run("dvc", "repro")
    workspace.keep_traces()
    metrics = workspace.metrics()
    assert {"folded-kneser-ney-2", "folded-laplace-2", "word-kneser-ney-2", "plain"} <= set(metrics)
    # Without capitals fewer words are unknown.
    unknown = {kind: metrics[f"{kind}-uniform"]["test"]["unknown_share"] for kind in ("folded", "word", "subword")}
    assert 0 == unknown["subword"] < unknown["folded"] < unknown["word"]
    assert "folded" in (workspace.folder / "reports/index.html").read_text()
    require_declared_files(workspace)
    workspace.run("mypy")


def test_a_corpus_is_added_by_its_list(workspace: Workspace) -> None:
    (asked,) = steps("Add a corpus")
    folder = workspace.folder.parent / "corpora"
    folder.mkdir()
    (folder / "sea.txt").write_text(TEXT)
    entry = {
        "file": "sea.txt",
        "urls": ["https://example.org/sea.txt"],  # never asked: the data folder comes first
        "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        "bytes": len(TEXT),
        "licence": "CC0-1.0",
        "description": "The sea, again and again",
    }
    named = {"file": "file's name", "urls": "URLs", "sha256": "SHA-256", "bytes": "bytes", "licence": "licence",
             "description": "description"}  # fmt: skip
    assert all(words in asked for words in named.values())
    assert set(named) == set(entry)
    with (workspace.folder / "data" / "corpora.yaml").open("a") as file:
        file.write(f"  sea: {json.dumps(entry)}\n")
    workspace.environment["SEQLM_DATA_DIR"] = str(folder)
    workspace.update_params({"download.corpus": "sea"})
    assert "corpus sea" in workspace.run("python", "stages/download.py").stdout
    assert (workspace.folder / "data/raw/corpus.txt").read_text() == TEXT
