"""Which models a run has, which files each needs, and how it is opened; and the same for a folder
of saved models.

The files of saved models are where a run has them, so both are opened in the same way.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_csv, reading
from seqlm.core.layout import NETWORK_FILES, Layout
from seqlm.core.settings import Device
from seqlm.models.char_from_words import char_from_words_info, open_char_from_words
from seqlm.models.info import ModelInfo, network_info, ngram_info, read_description
from seqlm.models.language_model import LanguageModel
from seqlm.models.mixture import Mixture
from seqlm.models.ngrams import (
    SMALL_SAMPLE_TOKENS,
    dynamic_ngram,
    small_sample_model,
    small_sample_orders,
    static_models,
)
from seqlm.models.saving import check_sealed
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import load_counts
from seqlm.train.settings import read_config, run_names
from seqlm.vocab.corpus import load_split, split_file
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import TOKENIZER_FILE, Vocab

if TYPE_CHECKING:
    import pandas as pd

    from seqlm.models.networks import StaticNetwork


class ModelNotFoundError(ParamsError, KeyError):
    """No model has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Entry:
    """A model of a run."""

    info: ModelInfo
    files: tuple[Path, ...]
    """The files and folders that it needs, without those of its members."""
    open: Callable[[], LanguageModel]


class Models(Mapping[str, LanguageModel]):
    """The models of a finished run by name. A model is loaded when it is asked for, and then
    kept."""

    def __init__(
        self, layout: Layout, device: Device | None = "cpu", num_threads: int | None = None
    ) -> None:
        """Name the folder, and for networks the device and the number of threads. Nothing is read.

        Without these, each network has those of its own settings.
        """
        self.layout, self.device, self.num_threads = layout, device, num_threads
        self._opened_by = layout.root.resolve(), device, num_threads
        self._loaded: dict[str, LanguageModel] = {}

    def __getitem__(self, name: str) -> LanguageModel:
        """Return a model. Raises ModelNotFoundError, which is a KeyError too, if there is none of
        this name."""
        if name not in self._loaded:
            model = self.entry(name).open()
            model.opened_by = getitem, (self, name)
            model.files = self.layout.root, self.files(name)
            self._loaded[name] = model
        return self._loaded[name]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle where the models are; they are opened there again."""
        return open_models, self._opened_by

    def __iter__(self) -> Iterator[str]:
        return (entry.info.name for entry in self.entries())

    def __len__(self) -> int:
        return sum(1 for _ in self.entries())

    def __repr__(self) -> str:
        return f"Models({str(self.layout.root)!r}): {', '.join(self)}"

    @property
    def table(self) -> "pd.DataFrame":
        """The main table: name, family and metrics of every model, the best one first."""
        return read_csv(self.layout.reports("evaluate", "table.csv"))

    def entry(self, name: str) -> Entry:
        """Return the entry of a model. Entries are made in turn, so nothing is read that only later
        ones need."""
        for entry in self.entries():
            if entry.info.name == name:
                return entry
        choice = ", ".join(self) or "none, because no run is finished here"
        raise ModelNotFoundError(f"there is no model {name!r}: choose from {choice}")

    def files(self, name: str) -> list[Path]:
        """Return the files that a model and its members need."""
        entry = self.entry(name)
        # Models that keep counting may have an order that no static model has; they count
        # everything themselves.
        members = () if entry.info.family == "ngram" else entry.info.members
        return sorted({*entry.files, *(file for member in members for file in self.files(member))})

    def entries(self) -> Iterator[Entry]:
        """Yield all models: those that training and counting made, those of the evaluation, and
        those that learn."""
        yield from self.trained()
        yield from self.mixtures()
        yield from self._learning()

    def trained(self) -> Iterator[Entry]:
        """Yield the networks, and the static n-gram models of each kind of token whose counts are
        there."""
        for run in run_names(self.layout.configs) if self.layout.configs.is_dir() else ():
            config = read_config(self.layout.config(run))
            own = (self.layout.run(run) / name for name in NETWORK_FILES)
            files = (self.layout.config(run), *own, *self._vocab_files(config.token))
            yield Entry(
                network_info(config, self._vocab(config.token)), files, partial(self._open_run, run)
            )
        for kind in (kind for kind in KINDS if self.layout.ngrams(kind).is_dir()):
            yield from self._of_counts(kind)
        if self.layout.ngrams("word").is_dir() and self.layout.vocab("char").is_file():
            words = self._vocab("word")
            order = load_counts(self.layout.ngrams("word"), words.key)[0].max_order
            info = char_from_words_info(order, self._vocab("char"))
            files = (*self._ngram_files("word"), *self._vocab_files("char"))
            yield Entry(info, files, partial(open_char_from_words, self.layout, words))

    def mixtures(self) -> Iterator[Entry]:
        """Yield the mixtures that the ``evaluate`` stage has stored."""
        for path in sorted(self.layout.mixtures.glob("*.json")):
            info, metadata = read_description(path)
            yield Entry(info, (path,), partial(self._open_mixture, info, metadata["weights"]))

    def _of_counts(self, kind: Kind) -> Iterator[Entry]:
        vocab, files = self._vocab(kind), self._ngram_files(kind)
        yield from (
            Entry(model.info, files, partial(_same, model))
            for model in static_models(self.layout, vocab)
        )
        train = split_file(self.layout.corpus(kind), "train")
        for order in small_sample_orders(vocab) if train.is_file() else ():
            info = ngram_info(KneserNey.smoothing, order, vocab, SMALL_SAMPLE_TOKENS)
            yield Entry(
                info, (*files, train), partial(small_sample_model, self.layout, vocab, order)
            )

    def _learning(self) -> Iterator[Entry]:
        """Yield the models that keep learning, which are described where their scores are
        stored."""
        for path in sorted(self.layout.scores.rglob("score.json")):
            info, metadata = read_description(path)
            if info.dynamic:
                counted = info.counted_token or info.token
                files = (
                    path,
                    split_file(self.layout.corpus(counted), "train"),
                    *self._vocab_files(info.token),
                )
                files = files if info.family == "network" else (*files, *self._ngram_files(counted))
                yield Entry(info, files, partial(self._open_learning, info, metadata))

    def _open_learning(self, info: ModelInfo, metadata: Mapping[str, Any]) -> LanguageModel:
        if info.family == "network":
            from seqlm.models.networks import (  # imports the compiled loops
                DynamicNetwork,
                train_gradient_rms,
            )

            chosen, train = (
                metadata["choices"],
                load_split(self.layout.corpus(info.token), "train", mmap=True),
            )
            static = self._open_run(info.members[0])
            rms = partial(train_gradient_rms, static.network, train)
            return DynamicNetwork(static, chosen["dynamic_lr"], chosen["dynamic_decay"], rms)
        vocab, order = self._vocab(info.counted_token or info.token), info.order or 0
        if not info.counts_own_tokens:
            return open_char_from_words(self.layout, vocab, order)
        return dynamic_ngram(self.layout, vocab, order)

    def _open_run(self, run: str) -> "StaticNetwork":
        from seqlm.models.networks import open_run  # imports the compiled loops

        return open_run(self.layout, run, self.device, self.num_threads)

    def _open_mixture(self, info: ModelInfo, weights: Mapping[str, float]) -> Mixture:
        return Mixture(
            info,
            [self[member] for member in info.members],
            [weights[name] for name in info.members],
        )

    def _ngram_files(self, kind: Kind) -> tuple[Path, ...]:
        return (self.layout.ngrams(kind), *self._vocab_files(kind))

    def _vocab_files(self, kind: Kind) -> tuple[Path, ...]:
        vocab = self.layout.vocab(kind)
        tokenizer = vocab.with_name(TOKENIZER_FILE)
        return (vocab, tokenizer) if tokenizer.is_file() else (vocab,)

    def _vocab(self, kind: Kind) -> Vocab:
        return Vocab.load(self.layout.vocab(kind), kind)


def _same(model: LanguageModel) -> LanguageModel:
    return model


def open_models(
    folder: Path, device: Device | None = "cpu", num_threads: int | None = None
) -> Models:
    """Return the models of a finished run, or of a folder of saved ones.

    Raises DataError if there is neither, or if a saved file was changed.
    """
    layout = Layout(folder)
    with reading(folder):
        if not check_sealed(folder) and not (layout.params.is_file() and layout.configs.is_dir()):
            raise DataError(
                f"{folder}: holds no finished run: run the pipeline there, or name another folder"
            )
    return Models(layout, device, num_threads)
