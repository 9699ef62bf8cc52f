"""Training models without the pipeline: n-gram models and networks."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from seqlm.core.devices import resolve_device
from seqlm.core.errors import DataError, ParamsError, needs_extra
from seqlm.core.layout import as_path
from seqlm.core.settings import check, check_argument, plain_number
from seqlm.models.info import ModelInfo, network_info
from seqlm.models.inputs import is_collection, require_text
from seqlm.models.networks import StaticNetwork
from seqlm.models.ngrams import NGram
from seqlm.models.scored_text import Ids
from seqlm.networks.network import Network
from seqlm.networks.settings import NetworkSettings
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace
from seqlm.ngrams.settings import Epsilon, Unknown
from seqlm.preprocess.cleaning import clean_text
from seqlm.train.callbacks import (
    Checkpoint,
    arrays_digest,
    checkpoint_key,
    periodic_saver,
    terminal,
)
from seqlm.train.defaults import DEFAULTS, default_settings
from seqlm.train.history import history_table
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import intern_texts
from seqlm.vocab.kinds import Kind, SubwordParams, SubwordTokenizer, sample, token_kind
from seqlm.vocab.separators import estimate_separators
from seqlm.vocab.settings import Order
from seqlm.vocab.vocabulary import SplitInfo, Vocab, choose_tokens

if TYPE_CHECKING:
    import pandas as pd

Token = Literal["char", "word"]
Smoothing = Literal["kneser_ney", "laplace"]
Normalise = Literal["letters", "none"]
_checked = partial(check_argument, function="fit_ngram")
_MinFreq = Annotated[int, Field(ge=1, le=10**9)]
_LONGEST_PATH = 256


def fit_ngram(
    texts: str | Iterable[str | Sequence[str]],
    order: int = 3,
    by: Token = "word",
    smoothing: Smoothing = "kneser_ney",
    *,
    normalise: Normalise = "none",
    min_freq: int = 1,
    unknown: Unknown = "good_turing",
    epsilon: float = 1.0,
) -> NGram:
    """Return an n-gram model of some texts, which are read one after another, without sentence
    marks.

    ``texts``: one text, or several; a text may be a list of its words too, as in nltk. ``by``: the
    kind of token, char or word. ``normalise``: ``letters`` cleans the texts as the book does, and
    later those that are scored; ``none`` leaves them as they are. ``min_freq``: rarer tokens are
    unknown. ``unknown``: how likely ``<unk>`` is in a Kneser-Ney model: as all words together that
    the texts have once (``good_turing``), or as any other word that they lack (``uniform``, KenLM's
    way). ``epsilon``: that of every order in a Laplace model. Raises ParamsError for a wrong
    argument, and DataError if the texts have fewer tokens than ``order``.
    """
    order = _checked(order, "order", Order)
    by = _checked(by, "by", Token)
    smoothing = _checked(smoothing, "smoothing", Smoothing)
    normalise = _checked(normalise, "normalise", Normalise)
    min_freq = _checked(min_freq, "min_freq", _MinFreq)
    settings: Mapping[str, Any] = {
        "unknown": _checked(unknown, "unknown", Unknown),
        "epsilons": [_checked(epsilon, "epsilon", Epsilon)] * order,
        "chosen_on_val": False,
    }
    method: type[NGramModel] = KneserNey if smoothing == "kneser_ney" else Laplace
    text = "\n".join(clean_text(text, normalise) for text in _all_texts(texts, "fit_ngram"))
    vocab, (train,) = _encode([text], by, normalise, min_freq, "fit_ngram", min_tokens=order)
    return NGram.of(method.build(count_ngrams(train, len(vocab), order), settings)[-1], vocab)


def _encode(
    texts: Sequence[str],
    by: str,
    normalise: str,
    min_freq: int,
    function: str,
    tokenizer: SubwordTokenizer | None = None,
    *,
    min_tokens: int = 2,
) -> tuple[Vocab, list[Ids]]:
    """Return the vocabulary of the first of some cleaned texts, and all of them as its tokens.

    Raises ParamsError if no token occurs ``min_freq`` times, and DataError if the first text has
    fewer than ``min_tokens``.
    """
    kind, separator = token_kind(by), _line_separator(normalise)
    distinct, streams, lengths = intern_texts(texts, kind, separator, tokenizer)
    if sum(map(len, streams[0])) < min_tokens:
        raise DataError(f"{function}: fewer than {min_tokens} {kind.noun}s: give more text")
    separators = None
    if not kind.is_lossless:
        separators = estimate_separators("".join(sample(texts[0])), separator)
    try:
        tokens, counts, ids = choose_tokens(kind, distinct, streams[0], min_freq)
    except ParamsError as error:
        problem = f"no {kind.noun} of the texts occurs so often: lower it"
        raise ParamsError(f"{function}: min_freq = {min_freq}: {problem}") from error
    encoded = [np.concatenate([ids[:0], *(ids[part] for part in parts)]) for parts in streams]
    splits = _split_infos(encoded, lengths)
    vocab = Vocab(by, tokens, counts, separator, splits, tokenizer, normalise, separators)
    return vocab, encoded


def _line_separator(normalise: str) -> str:
    """What joins the lines of a text."""
    return "\n" if normalise == "none" else " "


def _split_infos(streams: Sequence[Ids], lengths: Sequence[int]) -> dict[str, SplitInfo]:
    """What the vocabulary stores of train and, if it is there, of val."""
    return {
        name: SplitInfo(
            len(ids), length, int(np.count_nonzero(ids == 0)), sha256(ids.data).hexdigest()
        )
        for name, ids, length in zip(("train", "val"), streams, lengths, strict=False)
    }


def _all_texts(texts: str | Iterable[str | Sequence[str]], function: str) -> Iterable[str]:
    """Yield the texts. Raises ParamsError for anything else, and for the name of a file."""
    if not isinstance(texts, str) and not is_collection(texts):
        advice = ": give its text, with read_text()" if isinstance(texts, Path) else ""
        raise ParamsError(
            f"{function}: texts must be a string or several, not {type(texts).__name__}{advice}"
        )
    for text in [texts] if isinstance(texts, str) else texts:
        if isinstance(text, list | tuple):
            yield " ".join(require_text(word, "a word") for word in text)
            continue
        text = require_text(text, "a text")
        if (
            len(text[:_LONGEST_PATH].encode()) < _LONGEST_PATH
            and text.isprintable()
            and Path(text).is_file()
        ):
            raise ParamsError(
                f"{function}: {text!r} is a file: give its text, Path({text!r}).read_text()"
            )
        yield text


_Share = Annotated[float, Field(gt=0, lt=1)]
_VAL_SHARE = 0.1
_checked_network = partial(check_argument, function="fit_network")
_OWN_SETTINGS = {"run", "token"}
"""Settings of a run that are no arguments."""


class FittedNetwork(StaticNetwork):
    """A network that :func:`fit_network` trained."""

    def __init__(
        self, info: ModelInfo, vocab: Vocab, network: Network, history: "pd.DataFrame"
    ) -> None:
        super().__init__(info, vocab, network)
        self.history = history
        """A row for each epoch: epoch, train_perplexity, val_perplexity, grad_norm, clipped_share,
        tokens."""


def fit_network(
    texts: str | Iterable[str],
    model: str | StaticNetwork = "lstm",
    *,
    by: Kind = "char",
    normalise: Normalise = "none",
    val: str | float = _VAL_SHARE,
    min_freq: int | None = None,
    progress: bool = True,
    checkpoint: str | Path | None = None,
    **settings: Any,
) -> FittedNetwork:
    """Train a network on some texts, which are read one after another.

    ``model`` is an architecture (lstm, gru, rnn, scratch or transformer), or a trained network:
    training then goes on from its weights, with its vocabulary. ``by``: the kind of token, char,
    word or subword. ``normalise``: ``letters`` keeps only the letters a to z, ``none`` all of the
    text. ``val`` is a text, or the share at the end of the texts, that chooses the epoch: training
    stops if it no longer improves there. ``min_freq``: rarer tokens are unknown; by default 2 for
    words, so that the network learns what an unknown word is like, and 1 for characters.
    ``settings`` are those of a run of the pipeline by name, such as ``num_epochs``,
    ``token_budget``, ``num_hiddens``, ``lr``, ``seed`` and ``num_threads``.

    ``progress`` shows a progress bar. With the path of a ``checkpoint``, a call that was
    interrupted continues where it was, to the same weights; when it has finished, the file holds
    the result.

    Raises ParamsError for a wrong argument, DataError for a text that is too short, MachineError
    if a package or device is missing, and DivergenceError if the loss is not finite.
    """
    arguments = _NetworkArguments(model, by, normalise, val, min_freq)
    train_text, val_text = arguments.split(texts)
    vocab, (train_ids, val_ids) = arguments.encode(train_text, val_text)
    config = arguments.config(len(train_ids), settings)
    if len(val_ids) < 2:
        raise DataError("fit_network: val has fewer than 2 tokens: give a longer text or share")
    device = resolve_device(config.device)
    trainer = Trainer(config, len(vocab), train_ids, val_ids, device)
    if isinstance(model, StaticNetwork):
        trainer.network.load_weights(model.network.weight_copies())
    _train(trainer, vocab, checkpoint, progress=progress)
    _, weights = trainer.chosen_weights()
    trainer.network.load_weights(weights)
    history = history_table(config.run, trainer.progress.history).drop(columns="run")
    info = network_info(config, vocab)
    return FittedNetwork(info, vocab, trainer.network, history.infer_objects())


def _train(
    trainer: Trainer, vocab: Vocab, checkpoint: str | Path | None, *, progress: bool
) -> None:
    callbacks = []
    kept = None
    if checkpoint is not None:
        # Training begins with weights drawn by the seed, or with those of another network.
        begins_with = arrays_digest(trainer.network.weight_copies())
        key = checkpoint_key(trainer.config, vocab, trainer.ranks.size) + begins_with
        kept = Checkpoint(as_path(checkpoint, "checkpoint"), key)
        if state := kept.load():
            trainer.restore(state)
        elif kept.path.exists():
            reason = "it is of another text, other settings or another version"
            warnings.warn(f"{kept.path} is not used: {reason}", stacklevel=3)
        callbacks.append(periodic_saver(kept))
    with terminal(trainer, vocab, is_hidden=not progress) as show:
        trainer.train(show, *callbacks)
    if kept is not None:
        kept.save(trainer.state())


class _NetworkArguments:
    """The checked arguments of :func:`fit_network`."""

    def __init__(
        self,
        model: str | StaticNetwork,
        by: str,
        normalise: str,
        val: str | float,
        min_freq: int | None,
    ) -> None:
        self._trained = model if isinstance(model, StaticNetwork) else None
        if self._trained is None:
            architectures: Any = Literal[tuple(DEFAULTS)]
            self._architecture = _checked_network(model, "model", architectures)
            self._by = _checked_network(by, "by", Kind)
            self._normalise = _checked_network(normalise, "normalise", Normalise)
        else:
            vocab = self._trained.vocab
            self._architecture = self._trained.network.settings.model
            self._by, self._normalise = vocab.kind, vocab.normalise
        self._val = _checked_network(val, "val", str | _Share)
        self._min_freq = _checked_network(min_freq, "min_freq", _MinFreq | None)

    def split(self, texts: str | Iterable[str]) -> tuple[str, str]:
        """The cleaned texts of train and val."""
        cleaned = (clean_text(text, self._normalise) for text in _all_texts(texts, "fit_network"))
        text = "\n".join(cleaned)
        if isinstance(self._val, str):
            return text, clean_text(require_text(self._val, "val"), self._normalise)
        cut = _nearest_cut(text, len(text) * (1 - self._val))
        return text[:cut], text[cut:]

    def encode(self, train: str, val: str) -> tuple[Vocab, list[Ids]]:
        """The vocabulary, and both texts as its tokens."""
        if self._trained is not None:
            vocab = self._trained.vocab
            streams: list[Ids] = [vocab.encode(vocab.tokenize(text)) for text in (train, val)]
            infos = _split_infos(streams, [len(train), len(val)])
            return replace(vocab, splits=infos), streams
        kind, tokenizer = token_kind(self._by), None
        if not kind.has_unknown:
            separator = _line_separator(self._normalise)
            params = SubwordParams(algorithm="bpe", vocab_size="auto")
            with needs_extra("subwords", "a network over subwords"):
                tokenizer = kind.train_tokenizer(train, separator, params)
        min_freq = self._min_freq or (2 if self._by == "word" else 1)
        return _encode([train, val], self._by, self._normalise, min_freq, "fit_network", tokenizer)

    def config(self, num_tokens: int, settings: Mapping[str, Any]) -> RunConfig:
        """The settings of the training: defaults, overlaid by the caller's."""
        if wrong := sorted(settings.keys() & _OWN_SETTINGS):
            raise ParamsError(f"fit_network: {wrong[0]}: unknown setting")
        values = default_settings(self._architecture, num_tokens)
        if self._trained is not None:
            values |= self._trained.network.settings.model_dump(
                include=set(NetworkSettings.model_fields)
            )
        name = self._architecture if self._by == "char" else f"{self._architecture}-{self._by}"
        given = {key: plain_number(value) for key, value in settings.items()}
        values |= given | {"run": name, "token": self._by}
        config: RunConfig = check(values, "", RunConfig, source="fit_network")
        return config


def _nearest_cut(text: str, goal: float) -> int:
    """The position after the last line end before ``goal``, or after the last space, if one of
    them is near."""
    end = int(goal)
    reach = max(len(text) - end, 1) // 2
    for blank in ("\n", " "):
        place = text.rfind(blank, max(end - reach, 0), end)
        if place >= 0:
            return place + 1
    return end
