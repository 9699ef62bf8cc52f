"""The catalogue of paths: every file and folder of the pipeline by name, below one root.

``dvc.yaml`` names the same paths. What a folder holds is named by the module that writes it.
"""

from pathlib import Path

from seqlm.core.errors import ParamsError

NETWORK_FILES = ("model.json", "weights.safetensors")
"""What the folder of a trained network holds: its description, and its weights."""
MODEL_FORMAT = 10
"""The format of all descriptions of models."""


def as_path(value: object, name: str) -> Path:
    """Return the path that a caller gave as argument ``name``. Raises ParamsError if it is not a
    path."""
    if not isinstance(value, (str, Path)):
        raise ParamsError(f"{name} must be a string or a Path, not {type(value).__name__}")
    return Path(value)


class Layout:
    """The paths below ``root``, the folder that holds ``params.yaml``."""

    def __init__(self, root: Path) -> None:
        """Set the fixed paths; methods return those that depend on a split, a kind of token, a
        run or a stage."""
        data, reports = root / "data", root / "reports"
        self.root = root
        self.params = root / "params.yaml"
        """The settings."""
        self.pipeline = root / "dvc.yaml"
        """The stages, and the descriptions of plots."""
        self.registry = data / "corpora.yaml"
        """The known corpora."""
        self.sample = data / "sample.txt"
        """The embedded corpus."""
        self.raw_text = data / "raw" / "corpus.txt"
        """The corpus as it was downloaded or copied."""
        self.corpus_record = reports / "download" / "summary.json"
        """Which corpus it is, and whether it replaces another one."""
        self.splits = data / "text"
        """The folder of the cleaned splits."""
        self.code = data / "code"
        """The folder of the fingerprints of each stage's code."""
        self.configs = data / "configs"
        """The folder of the runs' resolved settings."""
        self.models = data / "models"
        """The folder of the trained models."""
        self.runs = self.models / "runs"
        """The folder of the trained runs."""
        self.mixtures = self.models / "mixtures"
        """The folder of the mixtures: their members and weights."""
        self.scores = data / "scores"
        """The folder of all scores."""
        self.run_scores = self.scores / "runs"
        """The folder of the runs' scores."""
        self.folds = self.scores / "ngrams" / "char" / "folds.json"
        """How much parts of the text differ: the scores of two models on parts of train."""
        self.passages = data / "evaluation" / "passages.json"
        """The passages of test that the page shows with their surprisals."""
        self.checkpoints = root / "checkpoints"
        """Where an interrupted training continues from. It is not an output, because DVC would
        delete it."""
        self.page = reports / "index.html"
        """The page that a person reads."""
        self.playground = reports / "playground.html"
        """The page with the models themselves."""
        self.summary = reports / "summary.txt"
        """The most important models, and the main table, as text."""

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
        return self.models / "ngrams" / kind

    def config(self, run: str) -> Path:
        """The resolved settings of a run."""
        return self.configs / f"{run}.json"

    def run(self, name: str) -> Path:
        """A trained run: its weights and their description."""
        return self.runs / name

    def description_of_run(self, name: str) -> Path:
        """What a trained run is, and what opening it needs."""
        return self.run(name) / NETWORK_FILES[0]

    def samples_of_run(self, name: str) -> Path:
        """What a run wrote while it was trained."""
        return self.run(name) / "samples.json"

    def scores_of_run(self, name: str) -> Path:
        """A run's scores on the splits."""
        return self.run_scores / name

    def scores_of_ngrams(self, kind: str) -> Path:
        """The scores of the n-gram models over one kind of token."""
        return self.scores / "ngrams" / kind

    def reports(self, stage: str, *parts: str) -> Path:
        """A stage's folder of tables, or a folder or file in it."""
        return self.root.joinpath("reports", stage, *parts)

    def figure(self, name: str) -> Path:
        """A figure of the page, as SVG."""
        return self.root / "reports" / "figures" / f"{name}.svg"

    def benchmark(self, name: str) -> Path:
        """A file that a benchmark wrote, once and not in the pipeline."""
        return self.root / "benchmarks" / "results" / name
