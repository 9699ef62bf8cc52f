"""From what a model is to the model: vocabularies and counts are loaded once for all models."""

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import NETWORK_FILES, Layout
from seqlm.core.settings import Device
from seqlm.models.char_from_words import CharFromWords
from seqlm.models.info import (
    Description,
    ModelInfo,
    NetworkDescription,
    StoredInfo,
    char_from_words_info,
    dynamic_ngram_info,
    read_description,
)
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import (
    SMALL_SAMPLE_ORDERS,
    EvolvingCounts,
    NGram,
    count_kneser_ney,
    small_sample_infos,
)
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import NGRAMS_FILE, NgramsFile, build_models, load_counts
from seqlm.vocab.corpus import load_split, split_file
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import TOKENIZER_FILE, Vocab

if TYPE_CHECKING:
    from seqlm.models.networks import DynamicNetwork, StaticNetwork


class NgramsDescription(NgramsFile):
    """The description of the n-gram models over a kind of token."""

    models: list[StoredInfo]


class ModelOpener:
    """Opens the models below ``layout``, networks on a device and with threads that override their
    own.

    ``vocab(kind)`` is the vocabulary of a kind of token.
    """

    def __init__(
        self, layout: Layout, device: Device | None = None, num_threads: int | None = None
    ) -> None:
        self.layout, self._device, self._num_threads = layout, device, num_threads
        self.vocab = cache(self._load_vocab)
        self._counts = cache(self._load_counts)
        self._ngram_models = cache(self._build_ngram_models)

    def _load_vocab(self, kind: Kind) -> Vocab:
        return Vocab.load(self.layout.vocab(kind), kind)

    def _load_counts(self, kind: Kind) -> Any:
        return load_counts(self.layout.ngrams(kind), self.vocab(kind).key)

    def _build_ngram_models(self, kind: Kind) -> Any:
        models = build_models(*self._counts(kind)).values()
        return {(model.smoothing, model.order): model for model in models}

    def ngram_infos(self, kind: Kind) -> list[ModelInfo]:
        """Return what the static n-gram models over a kind of token are: those of all of train, and
        small-sample ones if train is there."""
        infos = [*NgramsDescription.read(self.layout.ngrams(kind) / NGRAMS_FILE).models]
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
            trained = ", ".join(path.parent.name for path in layout.descriptions_of_runs())
            if not trained:
                raise DataError(f"{layout.runs}: holds no trained run: run the train stage")
            raise ParamsError(f"there is no trained run {run!r}, only {trained}")
        from seqlm.models.networks import StaticNetwork  # imports the compiled loops
        from seqlm.networks.building import open_network

        description = read_description(path, NetworkDescription)
        info, defaults = description.model, description.metadata.defaults
        vocab = self.vocab(info.token)
        device = self._device or defaults.device
        num_threads = self._num_threads or defaults.num_threads
        network = open_network(layout.run(run), run, vocab.key, device, num_threads)
        return StaticNetwork(info, vocab, network)

    def dynamic_network(self, static: "StaticNetwork", lr: float, decay: float) -> "DynamicNetwork":
        """Return a network that keeps learning from the text that it reads."""
        from seqlm.models.networks import DynamicNetwork, train_gradient_rms

        train = load_split(self.layout.corpus(static.info.token), "train", static.vocab)
        rms = partial(train_gradient_rms, static.network, train)
        return DynamicNetwork(static, lr, decay, rms)

    def files(self, description: Description) -> list[Path]:
        """Return the files and folders that a model needs, without those of its members."""
        info, layout, files = description.info, self.layout, [description.path]
        if info.family == "mixture":
            return files
        counted = info.counted_token or info.token
        for kind in {counted, info.token}:
            vocab = layout.vocab(kind)
            files += [vocab, vocab.with_name(TOKENIZER_FILE)]
        if info.family == "ngram":
            files.append(layout.ngrams(counted))
        elif not info.dynamic:
            files += [layout.run(info.name) / name for name in NETWORK_FILES]
        if info.dynamic or (info.family == "ngram" and info.train_tokens is not None):
            files.append(split_file(layout.corpus(counted), "train"))
        return [file for file in files if file.exists()]
