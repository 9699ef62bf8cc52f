"""The models of a run, or of a folder of exported models, by name.

Exported files have the paths that they have in a run, so both are opened in the same way.
Vocabularies and counts are loaded once for all models.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property, partial
from operator import getitem
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import find_files, read_csv, reading
from seqlm.core.layout import NETWORK_FILES, Layout
from seqlm.core.settings import Device
from seqlm.models.char_from_words import CharFromWords
from seqlm.models.info import (
    Choices,
    Description,
    ModelFile,
    ModelInfo,
    NetworkDescription,
    StoredInfo,
    char_from_words_info,
    dynamic_ngram_info,
    read_description,
)
from seqlm.models.language_model import LanguageModel
from seqlm.models.mixture import Mixture
from seqlm.models.ngrams import (
    SMALL_SAMPLE_ORDERS,
    EvolvingCounts,
    NGram,
    count_kneser_ney,
    small_sample_infos,
)
from seqlm.models.saving import copy_files, is_export, saved_names
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import NGRAMS_FILE, NgramsFile, build_models, load_counts
from seqlm.vocab.corpus import load_split, split_file
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import TOKENIZER_FILE, Vocab

if TYPE_CHECKING:
    import pandas as pd

    from seqlm.models.networks import StaticNetwork

Descriptions = dict[str, Description]


class ModelNotFoundError(ParamsError, KeyError):
    """No model has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class NgramsDescription(NgramsFile):
    """The description of the n-gram models over a kind of token."""

    models: list[StoredInfo]


class Models(Mapping[str, LanguageModel]):
    """The models of a finished run by name. A model is loaded when it is asked for, and then
    kept."""

    def __init__(
        self, layout: Layout, device: Device | None = "cpu", num_threads: int | None = None
    ) -> None:
        """Lazily open the models below ``layout``; ``device`` and ``num_threads`` override each
        network's own."""
        self.layout, self._device, self._num_threads = layout, device, num_threads
        self._models: dict[str, LanguageModel] = {}
        self._lock = RLock()  # to open a mixture opens its members
        self.vocab: Callable[[Kind], Vocab] = cache(
            lambda kind: Vocab.load(layout.vocab(kind), kind)
        )
        """Returns the vocabulary of a kind of token."""
        self._read_description = cache(read_description)
        self._counted = cache(
            lambda kind: NgramsDescription.read(layout.ngrams(kind) / NGRAMS_FILE)
        )
        self._counts = cache(lambda kind: load_counts(layout.ngrams(kind), self.vocab(kind).key))
        self._ngram_models = cache(self._build_ngram_models)

    def __getitem__(self, name: str) -> LanguageModel:
        """Return a model. Raises ModelNotFoundError, which is a KeyError too, if there is none of
        this name."""
        with self._lock:
            if name not in self._models:
                self._models[name] = self._open(self.description(name))
            return self._models[name]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle where the models are; they are opened there again."""
        return open_models, (self.layout.root.resolve(), self._device, self._num_threads)

    @property
    def saved(self) -> list[str]:
        """The models that were saved to this folder, without those that came along; of a run, all
        models."""
        return saved_names(self.layout.root) or list(self)

    def __iter__(self) -> Iterator[str]:
        for descriptions in self._groups():
            yield from descriptions

    def __len__(self) -> int:
        return sum(map(len, self._groups()))

    def __repr__(self) -> str:
        return f"Models({str(self.layout.root)!r}): {', '.join(self)}"

    @property
    def table(self) -> "pd.DataFrame":
        """The main table: name, family and metrics of every model, the best one first.

        Raises DataError if these are saved models, which have none."""
        if saved_names(self.layout.root):
            raise DataError(f"{self.layout.root}: saved models have no table: open their run")
        return read_csv(self.layout.reports("evaluate", "table.csv"))

    def description(self, name: str) -> Description:
        """Return what is stored of a model. Raises ModelNotFoundError."""
        for descriptions in self._groups():
            if name in descriptions:
                return descriptions[name]
        choice = ", ".join(self) or "none, because no run is finished here"
        raise ModelNotFoundError(f"there is no model {name!r}: choose from {choice}")

    def files(self, name: str) -> list[Path]:
        """Return the files and folders that a model and its members need."""
        description, layout = self.description(name), self.layout
        info, files = description.info, {description.path}
        if info.family != "mixture":
            counted = info.counted_token or info.token
            for kind in (counted, info.token):
                vocab = layout.vocab(kind)
                files |= {vocab, vocab.with_name(TOKENIZER_FILE)}
            if info.dynamic or (info.family == "ngram" and info.train_tokens is not None):
                files.add(split_file(layout.corpus(counted), "train"))
        if info.family == "ngram":
            # Models that keep counting may have an order that no static model has; they count
            # everything themselves.
            files.add(layout.ngrams(counted))
        else:
            if not info.members:
                files |= {layout.run(name) / file for file in NETWORK_FILES}
            for member in info.members:
                files.update(self.files(member))
        return sorted(file for file in files if file.exists())

    def _groups(self) -> Iterator[Descriptions]:
        """Yield all descriptions; those of a later group are read only if an earlier one lacks the
        model."""
        yield self.networks
        yield self.ngrams
        yield self.mixtures
        yield self._dynamic

    @cached_property
    def networks(self) -> Descriptions:
        """The networks, as they were trained."""
        return self._read(find_files(self.layout.runs, NETWORK_FILES[0]), NetworkDescription)

    @cached_property
    def ngrams(self) -> Descriptions:
        """The static n-gram models. Some are derived: small-sample models, and the best model over
        words as a model over characters."""
        counted = [kind for kind in KINDS if (self.layout.ngrams(kind) / NGRAMS_FILE).is_file()]
        infos = [info for kind in counted for info in self.ngram_infos(kind)]
        if "word" in counted and self.layout.vocab("char").is_file():
            infos += self.char_from_words_infos()
        return {
            info.name: Description(
                info, {}, self.layout.ngrams(info.counted_token or info.token) / NGRAMS_FILE
            )
            for info in infos
        }

    @cached_property
    def mixtures(self) -> Descriptions:
        """The mixtures that the ``evaluate`` stage has stored."""
        return self._read(find_files(self.layout.mixtures, "*.json"))

    @cached_property
    def _dynamic(self) -> Descriptions:
        """The models that keep learning, which are described where their scores are stored."""
        described = self._read(find_files(self.layout.scores, "score.json"))
        return {
            name: description for name, description in described.items() if description.info.dynamic
        }

    def _read(self, paths: list[Path], form: Any = ModelFile) -> Descriptions:
        read = [(self._read_description(path, form), path) for path in paths]
        return {one.model.name: Description(one.model, one.metadata, path) for one, path in read}

    def _open(self, description: Description) -> LanguageModel:
        info, metadata = description.info, description.metadata
        # The members of n-gram models that keep counting need not be there.
        members = () if info.family == "ngram" else info.members
        if any(self.description(name).info.family == "mixture" for name in members):
            raise DataError(f"{description.path}: a member is a mixture: {ModelFile.advice}")
        opened = [self[name] for name in members]
        model: LanguageModel
        if info.family == "ngram":
            model = self.ngram(info)
        elif info.family == "mixture":
            model = Mixture(opened, [metadata.weights[name] for name in members])
        elif info.dynamic:
            model = self._dynamic_network(cast("StaticNetwork", opened[0]), metadata.choices)
        else:
            model = self.network(info.name)
        if model.info != info:
            problem = f"describes {info.name!r} as it was made before: run the pipeline again"
            raise DataError(f"{description.path}: {problem}")
        model.opener = getitem, (self, info.name)
        copy = partial(copy_files, self.layout.root, self.files(info.name))
        model.write = copy  # type: ignore[method-assign]
        return model

    def _build_ngram_models(self, kind: Kind) -> Any:
        models = build_models(*self._counts(kind)).values()
        return {(model.smoothing, model.order): model for model in models}

    def ngram_infos(self, kind: Kind) -> list[ModelInfo]:
        """Return what the static n-gram models over a kind of token are: those of all of train, and
        small-sample ones if train is there."""
        infos: list[ModelInfo] = [*self._counted(kind).models]
        is_counted = kind in SMALL_SAMPLE_ORDERS  # most listings need no vocabulary
        if is_counted and split_file(self.layout.corpus(kind), "train").is_file():
            infos += small_sample_infos(self.vocab(kind))
        return infos

    def char_from_words_infos(self) -> list[ModelInfo]:
        """Return the Kneser-Ney model of the highest order over words, which is the last one, as a
        model over characters; nothing if there is none."""
        infos = [info for info in self.ngram_infos("word") if info.smoothing == KneserNey.smoothing]
        return [char_from_words_info(info) for info in infos[-1:]]

    def ngram(self, info: ModelInfo) -> LanguageModel:
        """Open an n-gram model. If it keeps counting, its info is that of the present train."""
        kind, order = info.counted_token or info.token, info.order or 0
        counted, predicted = self.vocab(kind), self.vocab(info.token)
        if info.dynamic or info.train_tokens is not None:
            train = load_split(self.layout.corpus(kind), "train", counted)[: info.train_tokens]
            unknown = self._counts(kind)[1][KneserNey.smoothing]["unknown"]
            model_after = partial(count_kneser_ney, train, len(counted), order, unknown)
        if info.dynamic:
            info = dynamic_ngram_info(order, counted, info.token)
            counts = EvolvingCounts.updated(model_after, predicted.split("test").num_tokens)
        elif info.train_tokens is not None:
            counts = EvolvingCounts.fixed(model_after(()))
        else:
            models = self._ngram_models(kind)
            if (info.smoothing, order) not in models:
                raise DataError(f"{info.name}: was not counted: {NgramsFile.advice}")
            counts = EvolvingCounts.fixed(models[info.smoothing, order])
        if info.counts_own_tokens:
            return NGram(info, counted, counts)
        return CharFromWords(info, predicted, counted, counts)

    def network(self, run: str) -> "StaticNetwork":
        """Open the network of a run. Raises ParamsError if there is no such run, and DataError if
        there is none at all."""
        layout, path = self.layout, self.layout.description_of_run(run)
        if not path.is_file():
            trained = ", ".join(self.networks)
            if not trained:
                raise DataError(f"{layout.runs}: holds no trained run: run the train stage")
            raise ParamsError(f"there is no trained run {run!r}, only {trained}")
        from seqlm.models.networks import StaticNetwork  # imports the compiled loops
        from seqlm.networks.building import open_network

        description = self._read_description(path, NetworkDescription)
        info, defaults = description.model, description.metadata.defaults
        vocab = self.vocab(info.token)
        device = self._device or defaults.device
        num_threads = self._num_threads or defaults.num_threads
        network = open_network(layout.run(run), run, vocab.key, device, num_threads)
        return StaticNetwork(info, vocab, network)

    def _dynamic_network(self, static: "StaticNetwork", choices: Choices) -> LanguageModel:
        from seqlm.models.networks import DynamicNetwork, train_gradient_rms

        train = load_split(self.layout.corpus(static.info.token), "train", static.vocab)
        rms = partial(train_gradient_rms, static.network, train)
        return DynamicNetwork(static, choices.dynamic_lr, choices.dynamic_decay, rms)


def open_models(
    folder: Path, device: Device | None = "cpu", num_threads: int | None = None
) -> Models:
    """Return the models of a finished run, or of a folder of exported ones.

    Raises DataError if there is neither, or if an exported file was changed.
    """
    layout = Layout(folder.resolve())  # the working folder may change before a model is read
    with reading(folder):
        if not is_export(folder) and not layout.models.is_dir():
            raise DataError(
                f"{folder}: holds no finished run: run the pipeline there, or name another folder"
            )
    return Models(layout, device, num_threads)
