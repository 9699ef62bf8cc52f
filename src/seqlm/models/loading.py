"""Opening the models of a finished run, or of a folder that was exported from one, and mixtures of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, cached_property, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.settings import Device
from seqlm.evaluate.mixtures import Weights, load_mixtures, mix
from seqlm.heldout.folds import Folds
from seqlm.heldout.scored_text import Ids
from seqlm.models.exporting import require_intact
from seqlm.models.language_model import LanguageModel, Probs, Reader
from seqlm.models.ngram_models import NGram, Recounting, WordToChar
from seqlm.models.requests import strings
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import highest_orders, load_counts, load_models
from seqlm.score.model_info import ModelInfo, describe_ngram
from seqlm.score.ngrams import recounted_on
from seqlm.score.store import Score, load_description
from seqlm.score.word_to_char import WordToCharReader
from seqlm.train.settings import run_names
from seqlm.vocab.corpus import load_split
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:
    import pandas as pd

    from seqlm.models.networks import StaticNetwork


class Mixture(LanguageModel):
    """A linear mixture: p is the weighted mean of the members' p."""

    def __init__(self, info: ModelInfo, members: Sequence[LanguageModel], weights: Sequence[float]) -> None:
        """Take models over the same tokens, and their weights."""
        super().__init__(info, members[0].vocab)
        self.members, self.weights = list(members), np.array(weights)

    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of tokens 2 to N."""
        return mix([member.token_nll(ids) for member in self.members], self.weights)

    def texts_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return -log p of tokens 2 to N of each text."""
        members = [member.texts_nll(texts) for member in self.members]
        return [mix(each, self.weights) for each in zip(*members, strict=True)]

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts. Members that are dynamic learn from what it reads."""
        return _MixtureReader([member.reader(num_rows) for member in self.members], self.weights)


class _MixtureReader(Reader):
    def __init__(self, readers: Sequence[Reader], weights: Weights) -> None:
        self._readers, self._weights = readers, weights

    def read(self, tokens: Ids) -> None:
        for reader in self._readers:
            reader.read(tokens)

    def next_probs(self) -> Probs:
        # Added up in this order: the order of a product by NumPy depends on the processor.
        probs = (weight * reader.next_probs() for weight, reader in zip(self._weights, self._readers, strict=True))
        return reduce(np.add, probs)


Loaders = Mapping[str, Callable[[], LanguageModel]]
"""Name of a model -> a function that loads it."""


class ModelNotFoundError(ParamsError, KeyError):
    """No model has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Models(Mapping[str, LanguageModel]):
    """The models of a finished run by name. A model is loaded when it is asked for, and then kept."""

    def __init__(self, layout: Layout, device: Device = "cpu", num_threads: int | None = None) -> None:
        """Name the folder, and for networks the device and the number of threads. Nothing is read.

        Without a number of threads each network has that of its own settings.
        """
        self.layout, self.device, self.num_threads = layout, device, num_threads
        self._loaded: dict[str, LanguageModel] = {}
        ngrams = (partial(self.ngrams, kind) for kind in KINDS)
        sources: tuple[Callable[[], Loaders], ...] = (
            self.runs, *ngrams, self._word_to_char, self.mixtures, self._best_epochs, self._scored,
        )  # fmt: skip
        self._sources = [cache(source) for source in sources]

    def __getitem__(self, name: str) -> LanguageModel:
        """Return a model. Raises ModelNotFoundError, which is a KeyError too, if there is none of this name."""
        if not isinstance(name, str):
            raise ModelNotFoundError(f"the name of a model must be a string, not {type(name).__name__}")
        if name not in self._loaded:
            self._loaded[name] = self._find([name])[name]()
            self._loaded[name].opened_by = _open_model, (*self._opened_by, name)
        return self._loaded[name]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle where the models are; they are opened there again."""
        return _open_again, self._opened_by

    @property
    def _opened_by(self) -> tuple[Path, Device, int | None]:
        return self.layout.root.resolve(), self.device, self.num_threads

    def __iter__(self) -> Iterator[str]:
        return iter(self._find(()))

    def __len__(self) -> int:
        return len(self._find(()))

    def __repr__(self) -> str:
        return f"Models({str(self.layout.root)!r}): {', '.join(self)}"

    def select(self, names: Sequence[str]) -> dict[str, LanguageModel]:
        """Return models by name; without names all runs. Raises ModelNotFoundError before any model is loaded."""
        names = list(names or self.runs())
        self._find(names)
        return {name: self[name] for name in names}

    @cached_property
    def table(self) -> "pd.DataFrame":
        """The main table: name, family and metrics of every model, the best on test first."""
        return read_csv(self.layout.reports("evaluate", "table.csv"))

    def compare(self, text: str, names: Iterable[str]) -> "pd.DataFrame":
        """Return how well models, given by name, predict a text, the best first.

        ``ci_low`` and ``ci_high`` are the 95 % interval of ``bits_per_character``, ``difference`` and ``margin``
        compare a model with the best one, and ``verdict`` holds for all together (:mod:`seqlm.evaluate.uncertainty`).
        They are missing if the text is too short. Raises ModelNotFoundError, and DataError as ``score`` does.
        """
        import pandas as pd

        from seqlm.evaluate.ranking import rank_models

        chosen = self.select(strings(names, "names")).items()
        scored = {name: model.score_tokens(text) for name, model in chosen}
        texts = {found.text.vocab.kind: {"test": found.stream} for found in scored.values()}
        scores = [
            Score(self[name].info, {"test": found.nll}, dict.fromkeys(("val", "test"), found.metrics))
            for name, found in scored.items()
        ]
        rows = [
            {
                "model": result.score.name,
                "tokens": result.score.metrics["test"]["tokens"],
                "bits_per_character": result.bits("test"),
                "ci_low": result.interval[0],
                "ci_high": result.interval[1],
                "perplexity": result.score.metrics["test"]["perplexity"],
                **asdict(result.to_best),
                "only_words": result.only_words,
            }
            for result in rank_models(scores, texts, Folds.load(self.layout.heldout("char")))[0]
        ]
        return pd.DataFrame(rows).drop(columns="against")

    def _find(self, names: Sequence[str]) -> Loaders:
        """Return the loaders of some models, or of all if there are no names.

        Sources are asked in turn until all names are found, so that nothing is read that only other models need, and a
        source that fails matters only if a name remains.
        """
        found: dict[str, Callable[[], LanguageModel]] = {}
        problems = []
        for source in self._sources:
            if names and set(names) <= set(found):
                break
            try:
                found |= {name: load for name, load in source().items() if name not in found}
            except DataError as error:
                if not names:
                    raise
                problems.append(f"; others cannot be opened: {error}")
        if missing := set(names) - set(found):
            if not found:
                raise no_finished_run(self.layout.root)
            choice = f"choose from {', '.join(found)}{''.join(problems[:1])}"
            raise ModelNotFoundError(f"there is no model {min(missing)!r}: {choice}")
        return found

    def runs(self) -> Loaders:
        """Return the networks."""
        return {run: partial(self._open_run, run) for run in run_names(self.layout.configs)}

    def _best_epochs(self) -> Loaders:
        """Return the networks of the best epoch of runs that keep the weights of the last one."""
        runs = [run for run in run_names(self.layout.configs) if self.layout.best_of_run(run).is_dir()]
        return {f"{run}@best": partial(self._open_run, run, is_best=True) for run in runs}

    def _open_run(self, run: str, *, is_best: bool = False) -> "StaticNetwork":
        from seqlm.models.networks import open_run  # imports the compiled loops

        return open_run(self.layout, run, self.device, self.num_threads, is_best=is_best)

    def ngrams(self, kind: Kind, *, only_highest: bool = False) -> Loaders:
        """Return the static n-gram models over a kind of token; if asked, of each smoothing only the highest order."""
        vocab = self._vocab(kind)
        models = load_models(self.layout.ngrams(kind), vocab.key)
        chosen = highest_orders(models) if only_highest else models.values()
        found: dict[str, Callable[[], LanguageModel]] = {}
        for model in chosen:
            info = describe_ngram(model.smoothing, model.order, vocab, chosen_on_val=model.chosen_on_val)
            found[info.name] = partial(NGram, info, vocab, Recounting.fixed(model))
        return found

    def mixtures(self, *, only_static: bool = False) -> Loaders:
        """Return the mixtures that the ``evaluate`` stage has stored."""

        def open_mixture(info: ModelInfo, weights: Mapping[str, float]) -> LanguageModel:
            return Mixture(info, [self[member] for member in info.members], [weights[name] for name in info.members])

        stored = load_mixtures(self.layout.mixtures)
        chosen = (info for info in stored if not (only_static and info.dynamic))
        return {info.name: partial(open_mixture, info, stored[info]) for info in chosen}

    def _scored(self) -> Loaders:
        """Return the dynamic models and all Kneser-Ney models whose scores are stored."""
        folders = sorted(path.parent for path in self.layout.scores.rglob("score.json"))
        return {
            info.name: partial(self._open, info, stored["metadata"])
            for info, stored in map(load_description, folders)
            if info.dynamic or info.smoothing == KneserNey.smoothing
        }

    def _open(self, info: ModelInfo, metadata: Mapping[str, Any]) -> LanguageModel:
        if info.family == "network":
            from seqlm.models.networks import DynamicNetwork  # imports the compiled loops

            static = self._open_run(info.members[0])
            train = load_split(self.layout.corpus(info.token), "train", mmap=True)
            return DynamicNetwork(static, train, metadata)
        if info.counts_predicted_token:
            vocab = self._vocab(info.token)
            return NGram(info, vocab, self._recounting(info, vocab, metadata))
        return WordToChar(info, self._word_to_char_reader, self._recounting(info, self._vocab("word"), metadata))

    def _word_to_char(self) -> Loaders:
        """Return the static model over words that is read as one over characters, which is not always scored."""
        counts, _ = load_counts(self.layout.ngrams("word"), self._vocab("word").key)
        info = self._word_to_char_reader.describe(counts.max_order)
        return {info.name: partial(self._open, info, {})}

    @cached_property
    def _word_to_char_reader(self) -> WordToCharReader:
        return WordToCharReader(self.layout, self._vocab("word"))

    def _recounting(self, info: ModelInfo, counted: Vocab, metadata: Mapping[str, Any]) -> Recounting:
        """Return the Kneser-Ney model at each place of a text; ``counted`` is the vocabulary of what it counts."""
        assert info.order is not None
        counts, settings = load_counts(self.layout.ngrams(counted.kind), counted.key)
        unknown, train_tokens = settings[KneserNey.smoothing]["unknown"], metadata.get("train_tokens")
        if not info.dynamic and train_tokens is None:
            return Recounting.fixed(KneserNey(counts, info.order, unknown=unknown))
        train = load_split(self.layout.corpus(counted.kind), "train", mmap=True)[:train_tokens]
        recount = partial(recounted_on, train, vocab_size=len(counted), order=info.order, unknown=unknown)
        if not info.dynamic:
            return Recounting.fixed(recount(()))
        num_updates = metadata["num_updates"]
        update_every = max(self._vocab(info.token).splits["test"].num_tokens // num_updates, 1)
        return Recounting(recount, num_updates, update_every)

    def _vocab(self, kind: Kind) -> Vocab:
        return Vocab.load(self.layout.vocab(kind), kind)


def _open_again(folder: Path, device: Device, num_threads: int | None) -> Models:
    require_intact(folder)
    return Models(Layout(folder), device, num_threads)


def _open_model(folder: Path, device: Device, num_threads: int | None, name: str) -> LanguageModel:
    return _open_again(folder, device, num_threads)[name]


def open_models(folder: Path, device: Device = "cpu") -> Models:
    """Return the models of a finished run, or of a folder that was exported from one.

    Raises DataError if there is no run, or if an exported file was changed.
    """
    layout = Layout(folder)
    if not layout.params.is_file() or not layout.configs.is_dir():
        raise no_finished_run(folder)
    require_intact(folder)
    return Models(layout, device)


def no_finished_run(folder: Path) -> DataError:
    """Return the error that a folder holds no models."""
    return DataError(f"{folder}: holds no finished run: run the pipeline there, or name another folder")
