"""Each list of CONTRIBUTING.md is followed in a copy of the project: it names every file, and what it adds works."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Any

import pandas as pd
import pytest
from ruamel.yaml import YAML

from declarations import require_declared_files, require_declared_settings
from smoke import ROOT, SMALL, environment_of_python
from workspace import HEADLESS, Repository, Workspace

TEMPLATES = Path(__file__).with_name("templates")
TEXT = (ROOT / "data" / "sample.txt").read_text(encoding="utf-8") + "The end.\n"


def edit(path: Path, before: str, added: str) -> None:
    """Add text to a file, after the only place that matches a pattern."""
    text, found = re.subn(before, lambda match: match[0] + added, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert found == 1, (path, before)
    path.write_text(text, encoding="utf-8")


def add_import(path: Path, statement: str) -> None:
    edit(path, r"\A\"{3}(?:.|\n)*?\"{3}\n\n", f"{statement}\n")


def change_yaml(path: Path, change: Callable[[Any], object]) -> None:
    yaml = YAML()
    values = yaml.load(path.read_text(encoding="utf-8"))
    change(values)
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(values, file)


def add_stage(folder: Path) -> None:
    (folder / "src/seqlm/lengths/__init__.py").write_text('"""Lengths of lines."""\n')
    edit(folder / "tests/project/test_layering.py", '"gradients", "report"', ', "lengths"')
    settings = folder / "src/seqlm/configure/settings.py"
    add_import(settings, "from seqlm.lengths.settings import LengthsParams")
    edit(settings, "    report: .*Params\n", "    lengths: LengthsParams\n")
    entry = indent((TEMPLATES / "lengths.dvc.yaml").read_text(), "    ")
    edit(folder / "dvc.yaml", r"^    - reports/book/metrics.json.*\n", f"\n  lengths:\n{entry}")
    edit(folder / "params.yaml", r"(?!\A)\Z", "lengths:\n  longest: 40  # longer lines count as this long\n")


def add_network(folder: Path) -> None:
    edit(folder / "params.yaml", r"^train:\n  model: .*", " or mgu")
    fixed = '_RNN | {"activation": "tanh", "num_layers": 1, "embedding": "one_hot"}'
    entry = f'    "mgu": NetworkKind("seqlm.networks.minimal_gated:MinimalGatedRNN", {fixed}),\n'
    edit(folder / "src/seqlm/networks/kinds.py", r"^KINDS = \{\n", entry)


def add_smoothing(folder: Path) -> None:
    registry = folder / "src/seqlm/ngrams/models/registry.py"
    add_import(registry, "from seqlm.ngrams.models.absolute import AbsoluteDiscounting")
    edit(registry, r"^SMOOTHINGS: .*KneserNey(?=\))", ", AbsoluteDiscounting")
    field = "    absolute_discount: Annotated[float, Field(gt=0, lt=1)]\n"
    edit(folder / "src/seqlm/ngrams/settings.py", r"^class NgramsParams.*\n    \".*\n\n", field)
    edit(folder / "params.yaml", r"^ngrams:.*\n", "  absolute_discount: 0.75  # what is taken from each count\n")


def add_column(folder: Path) -> None:
    column = 'Column("test_tokens", "Tokens of test.", lambda r: r.score.metrics["test"]["tokens"], int, "tokens"),'
    edit(folder / "src/seqlm/evaluate/columns.py", r"^COLUMNS = \[\n(?:.+\n)*(?=\])", f"    {column}\n")


def add_kind_of_token(folder: Path) -> None:
    kinds, template = folder / "src/seqlm/vocab/kinds.py", (TEMPLATES / "folded.py").read_text()
    imports, _, classes = template.partition("\n\nclass ")
    for statement in re.findall("^(?:from|import) (?!.*TokenKind).*", imports, re.MULTILINE):
        add_import(kinds, statement)
    edit(kinds, r"\n\n(?=ALL: )", f"class {classes}\n\n")
    edit(kinds, r"SubwordKind\(\)(?=\))", ", FoldedKind()")

    def add(params: Any) -> None:
        params["vocab"]["folded"] = {"min_freq": 0, "reserved_tokens": []}
        params["ngrams"]["max_order"]["folded"] = 3
        params["score"]["dynamic_counts"]["order"]["folded"] = 3

    change_yaml(folder / "params.yaml", add)
    pipeline = folder / "dvc.yaml"
    pipeline.write_text(pipeline.read_text().replace("[char, word, subword]", "[char, word, subword, folded]"))


def add_corpus(folder: Path) -> None:
    entry = {
        "file": "sea.txt",
        "urls": ["https://example.org/sea.txt"],  # never contacted: the data folder comes first
        "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        "bytes": len(TEXT.encode()),
        "line_separator": " ",
        "licence": "CC0-1.0",
        "description": "The sample and its last two words",
    }
    with (folder / "data" / "corpora.yaml").open("a") as file:
        file.write(f"  sea: {json.dumps(entry)}\n")


@dataclass(frozen=True)
class Addition:
    """Something that one list of CONTRIBUTING.md tells how to add."""

    heading: str
    add_entries: Callable[[Path], None]
    files: dict[str, str] = field(default_factory=dict)
    """New files: path -> template."""


ADDITIONS = [
    Addition("Add a stage", add_stage, {
        "src/seqlm/lengths/settings.py": "lengths_settings.py", "src/seqlm/lengths/counting.py": "lengths_counting.py",
        "stages/lengths.py": "lengths_stage.py", "tests/lengths/test_counting.py": "lengths_checks.py",
    }),
    Addition("Add a model", add_network, {"src/seqlm/networks/minimal_gated.py": "minimal_gated.py"}),
    Addition("Add a smoothing method", add_smoothing, {"src/seqlm/ngrams/models/absolute.py": "absolute.py"}),
    Addition("Add a column to the main table", add_column),
    Addition("Add a corpus", add_corpus),
    Addition("Add a kind of token", add_kind_of_token),
]  # fmt: skip
MAX_PLACES = {"Add a model": 3, "Add a smoothing method": 4, "Add a column to the main table": 1}


def named(heading: str) -> set[str]:
    """Return the paths that the section under a heading names."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return {path.replace("NAME", "lengths").rstrip("/") for path in re.findall(r"`([\w./-]+)`", section)}


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, dict[str, set[str]]]:
    """A copy of the project with all additions, and the files that each of them touched."""
    workspace = Workspace(tmp_path_factory.mktemp("extended"))
    # The project's settings with their comments, and its results, which tests compare with each other.
    for name in ("params.yaml", "dvc.lock"):
        shutil.copyfile(ROOT / name, workspace.folder / name)
    shutil.copytree(ROOT / "reports", workspace.folder / "reports", dirs_exist_ok=True)
    workspace.begin({})
    touched = {}
    for addition in ADDITIONS:
        for path, template in addition.files.items():
            (workspace.folder / path).parent.mkdir(exist_ok=True)
            (workspace.folder / path).write_bytes((TEMPLATES / template).read_bytes())
        addition.add_entries(workspace.folder)
        workspace.git("add", "--all")
        touched[addition.heading] = set(workspace.git("diff", "--cached", "--name-only").splitlines())
        workspace.commit(addition.heading)
    return workspace, touched


@pytest.mark.parametrize("heading", [addition.heading for addition in ADDITIONS])
def test_a_list_names_every_file_it_takes(heading: str, extended: tuple[Workspace, dict[str, set[str]]]) -> None:
    touched, paths = extended[1][heading], named(heading)
    assert len(touched) <= MAX_PLACES.get(heading, len(touched))
    assert {path for path in touched if not {path, str(Path(path).parent)} & paths} == set()


@pytest.mark.slow
def test_make_test_passes_with_what_the_lists_add(extended: tuple[Workspace, dict[str, set[str]]]) -> None:
    extended[0].git("clone", "--quiet", ".", "../copy")
    copy = Repository(extended[0].folder.parent / "copy")
    # As if typed into a terminal of its own.
    environment = {
        name: value for name, value in environment_of_python().items() if not name.startswith(("PYTEST_", "SEQLM_"))
    }
    copy.environment = environment | HEADLESS | {"PYTHONPATH": str(copy.folder / "src")}
    copy.run("python", "tests/default_params.py")
    copy.run("python", "tools/doc_reference.py")
    copy.run("ruff", "check", "--fix-only", "--select", "I", ".")  # the order of the imports added here
    copy.run("ruff", "format", "--quiet", ".")  # entries are added to lines that may become too long
    copy.run("ruff", "check", ".")
    copy.run("mypy")
    # Not these walks again, nor tests that look in reports/ for what `dvc repro` has not made yet.
    stale = "project/test_doc_values.py::test_tables_have_the_documented_columns", "report/test_made_up_models.py"
    deselected = [f"--deselect=tests/{name}" for name in stale]
    copy.run("pytest", "-q", "--ignore=tests/project/test_contributing.py", *deselected)


@pytest.mark.slow
def test_everything_that_the_lists_add_works(extended: tuple[Workspace, dict[str, set[str]]]) -> None:
    workspace, _ = extended
    # Nothing is left of the project's own runs, which `download` would remove.
    shutil.rmtree(workspace.folder / "reports")
    (workspace.folder / "dvc.lock").unlink()
    corpora = workspace.folder.parent / "corpora"
    corpora.mkdir()
    (corpora / "sea.txt").write_bytes(TEXT.encode())
    workspace.environment["SEQLM_DATA_DIR"] = str(corpora)
    runs = {"mine": {"token": "char", "model": "mgu"}, "plain": {"token": "folded"}}
    own = {"download.corpus": "sea", "preprocess.normalise": "none", "ngrams.max_order.folded": 2, "runs": runs}
    workspace.update_params(SMALL | own)
    workspace.run("dvc", "repro")
    workspace.keep_traces()
    reports, metrics = workspace.folder / "reports", workspace.metrics()
    page, table = (reports / "index.html").read_text(), pd.read_csv(reports / "evaluate/table.csv")

    # The corpus.
    assert (workspace.folder / "data/raw/corpus.txt").read_text() == TEXT
    # The stage.
    counts = json.loads((reports / "lengths/counts.json").read_text())
    assert sum(counts.values()) == len((workspace.folder / "data/text/train.txt").read_text().splitlines())
    # The network: better than a uniform distribution, worse than certainty.
    assert 1 < metrics["mine"]["test"]["perplexity"] < metrics["char-uniform"]["test"]["perplexity"]
    # The smoothing method, over every kind of token.
    assert {"char-absolute-3", "word-absolute-2", "subword-absolute-2", "folded-absolute-2"} <= set(metrics)
    assert set(table.loc[table["model"] == "char-absolute-3", "smoothing"]) == {"absolute"}
    # The column.
    assert (table["test_tokens"] > 0).all()
    assert "tokens" in (reports / "table.txt").read_text().splitlines()[0].split()
    assert ">tokens<" in page
    # The kind of token: without capitals fewer words are unknown.
    assert {"folded-kneser-ney-2", "folded-laplace-2", "plain"} <= set(metrics)
    unknown = {kind: metrics[f"{kind}-uniform"]["test"]["unknown_share"] for kind in ("folded", "word", "subword")}
    assert 0 == unknown["subword"] < unknown["folded"] < unknown["word"]
    assert "folded" in page

    # The corpus is another one, and raw text keeps its line ends, whatever the corpus.
    require_declared_files(workspace, unneeded=frozenset({"data/sample.txt", "reports/download/summary.json"}))
    require_declared_settings(workspace)
