"""Opening the models of a finished run, or of a folder that was exported from one, and mixtures of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, cached_property, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_csv, read_errors
from seqlm.core.layout import NETWORK_FILES, Layout
from seqlm.core.metrics import Nll
from seqlm.core.settings import Device
from seqlm.evaluate.mixtures import Weights, load_mixtures, mix
from seqlm.heldout.folds import Folds
from seqlm.heldout.scored_text import Ids
from seqlm.models.fixed_ngrams import FixedNGram
from seqlm.models.language_model import LanguageModel, Probs, Reader
from seqlm.models.manifest import sealed_models
from seqlm.models.ngram_models import NGram, Recounting, WordToChar
from seqlm.models.requests import strings
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.pruned import PRUNED, load_pruned
from seqlm.ngrams.models.registry import highest_orders, load_counts, load_models
from seqlm.score.model_info import ModelInfo
from seqlm.score.ngrams import recounted_on
from seqlm.score.store import Score, load_description
from seqlm.score.word_to_char import WordToCharReader
from seqlm.train.settings import read_config, run_names
from seqlm.vocab.corpus import load_split, split_file
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import TOKENIZER_FILE, Vocab

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


class Source(NamedTuple):
    """What a model is loaded from."""

    load: Callable[[], LanguageModel]
    parts: tuple[Path, ...]
    """The files and folders that are read."""
    members: tuple[str, ...] = ()
    """Other models that it is made of."""


Sources = Mapping[str, Source]
"""Name of a model -> what it is loaded from."""


class ModelNotFoundError(ParamsError, KeyError):
    """No model has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Models(Mapping[str, LanguageModel]):
    """The models of a finished run by name. A model is loaded when it is asked for, and then kept."""

    def __init__(
        self,
        layout: Layout,
        device: Device = "cpu",
        num_threads: int | None = None,
        exported: Sequence[str] | None = None,
    ) -> None:
        """Name the folder, and for networks the device and the number of threads. Nothing is read.

        Without a number of threads each network has that of its own settings. ``exported`` names the models of an
        exported folder, which may lack the files of others.
        """
        self.layout, self.device, self.num_threads = layout, device, num_threads
        self._exported = exported
        self._loaded: dict[str, LanguageModel] = {}
        ngrams = (partial(self.ngrams, kind) for kind in KINDS)
        sources: tuple[Callable[[], Sources], ...] = (
            self.runs, *ngrams, self._word_to_char, self.mixtures, self._best_epochs, self._scored, self._pruned,
        )  # fmt: skip
        self._sources = [cache(source) for source in sources]

    def __getitem__(self, name: str) -> LanguageModel:
        """Return a model. Raises ModelNotFoundError, which is a KeyError too, if there is none of this name."""
        if not isinstance(name, str):
            raise ModelNotFoundError(f"the name of a model must be a string, not {type(name).__name__}")
        if name not in self._loaded:
            self._loaded[name] = self._find([name])[name].load()
            self._loaded[name].opened_by = _open_model, (*self._opened_by, name)
        return self._loaded[name]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle where the models are; they are opened there again."""
        return open_models, self._opened_by

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

    def sources(self, names: Sequence[str] = ()) -> Sources:
        """Return what models and their members are loaded from; without names that of all models."""
        wanted, found = list(names or self), dict[str, Source]()
        while missing := [name for name in wanted if name not in found]:
            found |= {name: source for name, source in self._find(missing).items() if name in missing}
            wanted = [*wanted, *(member for name in missing for member in found[name].members)]
        return found

    @cached_property
    def table(self) -> "pd.DataFrame":
        """The main table: name, family and metrics of every model, the best one first."""
        return read_csv(self.layout.reports("evaluate", "table.csv"))

    def compare(self, text: str, names: Iterable[str]) -> "pd.DataFrame":
        """Return how well models, given by name, predict a text.

        The best is first; models that keep learning come after the others.

        ``ci_low`` and ``ci_high`` are the 95 % interval of ``bits_per_character``, ``difference`` and ``margin``
        compare a model with the best one, and ``verdict`` holds for all together (:mod:`seqlm.evaluate.uncertainty`).
        They are missing if the text is too short. Raises ModelNotFoundError, and DataError as ``score`` does.
        """
        import pandas as pd

        from seqlm.evaluate.ranking import rank_models

        selected = self.select(strings(names, "names", "list of strings"))
        scored = {name: model.score_tokens(text) for name, model in selected.items()}
        texts = {found.text.vocab.kind: {"test": found.stream} for found in scored.values()}
        scores = [
            Score(selected[name].info, {"test": found.nll}, dict.fromkeys(("val", "test"), found.metrics))
            for name, found in scored.items()
        ]
        mixtures = [model for model in selected.values() if isinstance(model, Mixture)]
        members = [member.info for mixture in mixtures for member in mixture.members]
        rows = [
            {
                "model": result.score.name,
                "label": result.label,
                "tokens": result.score.metrics["test"]["tokens"],
                "bits_per_character": result.bits("test"),
                "ci_low": result.interval[0],
                "ci_high": result.interval[1],
                "perplexity": result.score.metrics["test"]["perplexity"],
                **asdict(result.to_best),
                "only_words": result.only_words,
            }
            for result in rank_models(scores, texts, Folds.load(self.layout.heldout("char")), members)
        ]
        return pd.DataFrame(rows).drop(columns="against")

    def _find(self, names: Sequence[str]) -> Sources:
        """Return the sources of some models, or of all if there are no names.

        Kinds of models are asked in turn until all names are found, so that nothing is read that only other models
        need, and one that fails matters only if a name remains.
        """
        if self._exported is not None:
            return self._find_exported(names, self._exported)
        found, problems = self._ask(names)
        if missing := set(names) - set(found):
            if not found:
                raise no_finished_run(self.layout.root)
            raise _not_found(missing, found, "".join(problems[:1]))
        return found

    def _find_exported(self, names: Sequence[str], exported: Sequence[str]) -> Sources:
        """Do what :meth:`_find` does in a folder that has the files of some models only."""
        if missing := set(names) - set(exported):
            raise _not_found(missing, exported)
        found, _ = self._ask(names or exported)
        return {name: found[name] for name in names or exported}

    def _ask(self, names: Sequence[str]) -> tuple[Sources, list[str]]:
        """Return the sources that are found, and what went wrong."""
        found: dict[str, Source] = {}
        problems = []
        for source in self._sources:
            if names and set(names) <= set(found):
                break
            try:
                found |= {name: each for name, each in source().items() if name not in found}
            except DataError as error:
                if not names:
                    raise
                problems.append(f"; others cannot be opened: {error}")
        return found, problems

    def runs(self) -> Sources:
        """Return the networks."""
        return {run: self._of_run(run) for run in run_names(self.layout.configs)}

    def _best_epochs(self) -> Sources:
        """Return the networks of the best epoch of runs that keep the weights of the last one."""
        runs = [run for run in run_names(self.layout.configs) if self.layout.best_of_run(run).is_dir()]
        return {f"{run}@best": self._of_run(run, is_best=True) for run in runs}

    def _of_run(self, run: str, *, is_best: bool = False) -> Source:
        folder = self.layout.best_of_run(run) if is_best else self.layout.run(run)
        config = self.layout.config(run)
        parts = (config, *(folder / name for name in NETWORK_FILES), *self._vocab_files(read_config(config).token))
        return Source(partial(self._open_run, run, is_best=is_best), parts)

    def _open_run(self, run: str, *, is_best: bool = False) -> "StaticNetwork":
        from seqlm.models.networks import open_run  # imports the compiled loops

        return open_run(self.layout, run, self.device, self.num_threads, is_best=is_best)

    def ngrams(self, kind: Kind, *, only_highest: bool = False) -> Sources:
        """Return the static n-gram models over a kind of token; if asked, of each smoothing only the highest order."""
        vocab = self._vocab(kind)
        models = load_models(self.layout.ngrams(kind), vocab.key)
        chosen = highest_orders(models) if only_highest else models.values()
        found, parts = dict[str, Source](), self._ngram_files(kind)
        for load in (partial(FixedNGram, model, vocab) for model in chosen):
            found[load().name] = Source(load, parts)
        return found

    def _pruned(self) -> Sources:
        """Return the models that were pruned, which only saved folders have."""
        found: dict[str, Source] = {}
        for kind in KINDS:
            if (self.layout.ngrams(kind) / PRUNED).is_file():
                vocab = self._vocab(kind)
                load = partial(FixedNGram, load_pruned(self.layout.ngrams(kind), vocab.key), vocab)
                found[load().name] = Source(load, self._ngram_files(kind))
        return found

    def mixtures(self, *, only_static: bool = False) -> Sources:
        """Return the mixtures that the ``evaluate`` stage has stored."""

        def open_mixture(info: ModelInfo, weights: Mapping[str, float]) -> LanguageModel:
            return Mixture(info, [self[member] for member in info.members], [weights[name] for name in info.members])

        stored = load_mixtures(self.layout.mixtures)
        chosen = (info for info in stored if not (only_static and info.dynamic))
        return {
            info.name: Source(
                partial(open_mixture, info, stored[info]), (self.layout.mixtures / f"{info.name}.json",), info.members
            )
            for info in chosen
        }

    def _scored(self) -> Sources:
        """Return the dynamic models and all Kneser-Ney models whose scores are stored."""
        found: dict[str, Source] = {}
        for path in sorted(self.layout.scores.rglob("score.json")):
            info, stored = load_description(path.parent)
            if info.dynamic or info.smoothing == KneserNey.smoothing:
                found[info.name] = self._of_score(path, info, stored["metadata"])
        return found

    def _of_score(self, path: Path, info: ModelInfo, metadata: Mapping[str, Any]) -> Source:
        """Return the source of a model whose description is stored with its score."""
        load = partial(self._open, info, metadata)
        counted = info.counted_token or info.token
        text = (split_file(self.layout.corpus(counted), "train"),) if info.dynamic or "train_tokens" in metadata else ()
        if info.family == "network":
            return Source(load, (path, *text), info.members)
        return Source(load, (path, *text, *self._vocab_files(info.token), *self._ngram_files(counted)))

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

    def _word_to_char(self) -> Sources:
        """Return the static model over words that is read as one over characters, which is not always scored."""
        counts, _ = load_counts(self.layout.ngrams("word"), self._vocab("word").key)
        info = self._word_to_char_reader.describe(counts.max_order)
        parts = (*self._ngram_files("word"), *self._vocab_files("char"))
        return {info.name: Source(partial(self._open, info, {}), parts)}

    def _ngram_files(self, kind: Kind) -> tuple[Path, ...]:
        return (self.layout.ngrams(kind), *self._vocab_files(kind))

    def _vocab_files(self, kind: Kind) -> tuple[Path, ...]:
        vocab = self.layout.vocab(kind)
        tokenizer = vocab.with_name(TOKENIZER_FILE)
        return (vocab, tokenizer) if tokenizer.is_file() else (vocab,)

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


def _open_model(folder: Path, device: Device, num_threads: int | None, name: str) -> LanguageModel:
    return open_models(folder, device, num_threads)[name]


def open_models(folder: Path, device: Device = "cpu", num_threads: int | None = None) -> Models:
    """Return the models of a finished run, or of a folder that was exported from one.

    Raises DataError if there is no run, or if an exported file was changed.
    """
    layout = Layout(folder)
    with read_errors(folder):
        exported = sealed_models(folder)
        if exported is None and not (layout.params.is_file() and layout.configs.is_dir()):
            raise no_finished_run(folder)
    return Models(layout, device, num_threads, exported)


def _not_found(missing: Collection[str], choice: Iterable[str], problem: str = "") -> ModelNotFoundError:
    return ModelNotFoundError(f"there is no model {min(missing)!r}: choose from {', '.join(choice)}{problem}")


def no_finished_run(folder: Path) -> DataError:
    """Return the error that a folder holds no models."""
    return DataError(f"{folder}: holds no finished run: run the pipeline there, or name another folder")
