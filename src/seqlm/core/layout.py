"""The catalogue of paths: every file and folder of the pipeline by name, below one root.

``dvc.yaml`` names the same paths in its ``deps`` and ``outs``; nothing else does.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """Where things lie below ``root``, the folder that holds ``params.yaml``."""

    root: Path

    @property
    def params(self) -> Path:
        """The settings."""
        return self.root / "params.yaml"

    @property
    def registry(self) -> Path:
        """The known corpora."""
        return self.root / "data" / "corpora.yaml"

    @property
    def sample(self) -> Path:
        """The embedded corpus."""
        return self.root / "data" / "sample.txt"

    @property
    def raw_text(self) -> Path:
        """The corpus as it came."""
        return self.root / "data" / "raw" / "corpus.txt"

    @property
    def corpus_record(self) -> Path:
        """What corpus it is, and whether it stands in for another."""
        return self.reports("download", "summary.json")

    @property
    def splits(self) -> Path:
        """The folder of the cleaned splits."""
        return self.root / "data" / "text"

    def split(self, name: str) -> Path:
        """A cleaned split: train, val or test."""
        return self.splits / f"{name}.txt"

    def corpus(self, kind: str) -> Path:
        """The vocabulary of one kind of token, and the splits encoded with it."""
        return self.root / "data" / "corpus" / kind

    def vocab(self, kind: str) -> Path:
        """The vocabulary of one kind of token."""
        return self.corpus(kind) / "vocab.json"

    def ngrams(self, kind: str) -> Path:
        """The counts of the n-gram models over one kind of token."""
        return self.root / "data" / "models" / "ngrams" / kind

    def heldout(self, kind: str) -> Path:
        """Which text of the splits is scored, as tokens of one kind."""
        return self.root / "data" / "heldout" / kind

    @property
    def sine(self) -> Path:
        """The weights of the network that predicts a sine."""
        return self.root / "data" / "models" / "sine" / "mlp.safetensors"

    @property
    def configs(self) -> Path:
        """The folder of the runs' resolved settings."""
        return self.root / "data" / "configs"

    def config(self, run: str) -> Path:
        """The resolved settings of a run."""
        return self.configs / f"{run}.json"

    @property
    def runs(self) -> Path:
        """The folder of the trained runs."""
        return self.root / "data" / "models" / "runs"

    def run(self, name: str) -> Path:
        """A trained run: its weights and their description."""
        return self.runs / name

    @property
    def run_scores(self) -> Path:
        """The folder of the scores of runs."""
        return self.root / "data" / "scores" / "runs"

    def scores_of_run(self, name: str) -> Path:
        """The scores of a run."""
        return self.run_scores / name

    def scores_of_ngrams(self, kind: str) -> Path:
        """The scores of the n-gram models over one kind of token."""
        return self.root / "data" / "scores" / "ngrams" / kind

    @property
    def scores_word_to_char(self) -> Path:
        """The scores of the models over words, read as models over characters."""
        return self.root / "data" / "scores" / "word-to-char"

    @property
    def passages(self) -> Path:
        """The passages of test that the page shows with their surprisal."""
        return self.root / "data" / "evaluation" / "passages.json"

    @property
    def checkpoints(self) -> Path:
        """Where an interrupted training goes on from. No output: DVC would delete it."""
        return self.root / "checkpoints"

    def temporary_folder(self, kind: str) -> Path:
        """Where a text that is larger than memory is counted."""
        return self.root / "data" / "work" / f"ngrams-{kind}"

    def reports(self, stage: str, *parts: str) -> Path:
        """What a stage found: its folder of tables, or a folder or file in it."""
        return self.root.joinpath("reports", stage, *parts)

    @property
    def page(self) -> Path:
        """The page that a person reads."""
        return self.root / "reports" / "index.html"

    @property
    def table(self) -> Path:
        """The main table as text."""
        return self.root / "reports" / "table.txt"

    def figure(self, name: str) -> Path:
        """A figure of the page, as SVG."""
        return self.root / "reports" / "figures" / f"{name}.svg"
