"""Training models without the pipeline: n-gram models and networks."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqlm.core.devices import resolve_device
from seqlm.core.errors import DataError, ParamsError, needs_extra
from seqlm.core.layout import as_path
from seqlm.core.settings import check, check_argument, plain_number
from seqlm.models.info import network_info
from seqlm.models.inputs import require_several, require_strings, require_text
from seqlm.models.networks import StaticNetwork
from seqlm.models.ngrams import NGram
from seqlm.models.scored_text import Ids
from seqlm.networks.settings import NetworkSettings
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey, describe_fallback
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
from seqlm.train.settings import PositiveInt, RunConfig
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import intern_texts
from seqlm.vocab.kinds import Kind, SubwordParams, token_kind
from seqlm.vocab.settings import Order
from seqlm.vocab.vocabulary import SplitInfo, Vocab, choose_tokens

if TYPE_CHECKING:
    import pandas as pd

Token = Literal["char", "word"]
Smoothing = Literal["kneser_ney", "laplace"]
Normalise = Literal["letters", "none"]
_checked = partial(check_argument, function="fit_ngram")
_LONGEST_PATH = 256
_SUBWORDS = SubwordParams(algorithm="bpe", vocab_size="auto")


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

    ``texts``: one text, or several. Each of several may be a list of its words too, as in nltk:
    ``[["the", "sea"]]`` is one text of two words, ``["the", "sea"]`` are two texts. ``by``: the
    kind of token, char or word. ``normalise``: ``letters`` cleans the texts as the book does, and
    later those that are scored; ``none`` leaves them as they are. ``min_freq``: rarer tokens are
    unknown. ``unknown``: how likely ``<unk>`` is in a Kneser-Ney model: as all words together that
    the texts have once (``good_turing``), or as any other word that they lack (``uniform``, KenLM's
    way). ``epsilon``: that of every order in a Laplace model: so many tokens are added to the
    counts of a context, spread over the vocabulary as the order below predicts (8.3.5). So 1 is not
    add-one smoothing; in a model of order 1, ``epsilon`` equal to the size of the vocabulary, with
    ``<unk>``, is.

    Warns if the texts are too short for some of the Kneser-Ney discounts. Raises ParamsError for a
    wrong argument, and DataError if the texts have fewer tokens than ``order``.
    """
    order = _checked(order, "order", Order)
    by = _checked(by, "by", Token)
    smoothing = _checked(smoothing, "smoothing", Smoothing)
    normalise = _checked(normalise, "normalise", Normalise)
    min_freq = _checked(min_freq, "min_freq", PositiveInt)
    settings: Mapping[str, Any] = {
        "unknown": _checked(unknown, "unknown", Unknown),
        "epsilons": [_checked(epsilon, "epsilon", Epsilon)] * order,
        "chosen_on_val": False,
    }
    method: type[NGramModel] = KneserNey if smoothing == "kneser_ney" else Laplace
    unused, default = ("unknown", "good_turing") if method is Laplace else ("epsilon", 1)
    if (value := {"unknown": unknown, "epsilon": epsilon}[unused]) != default:
        problem = f"has no effect with {smoothing}: leave it out"
        raise ParamsError(f"fit_ngram: {unused} = {value!r}: {problem}")
    text = _join_texts(texts, normalise, "fit_ngram")
    vocab, (train,) = _encode([text], by, normalise, min_freq, "fit_ngram", order)
    model = method.build(count_ngrams(train, len(vocab), order), settings)[-1]
    # Single characters are so few, and so frequent, that their discounts hardly matter.
    orders = [n for n in getattr(model, "fallback_orders", ()) if n > 1 or by == "word"]
    if orders:
        warnings.warn(f"fit_ngram: {describe_fallback(orders)}", stacklevel=2)
    return NGram.of(model, vocab)


def _encode(
    texts: Sequence[str], by: str, normalise: str, min_freq: int, function: str, min_tokens: int = 2
) -> tuple[Vocab, list[Ids]]:
    """Return the vocabulary of the first of some cleaned texts, and all of them as its tokens.

    Raises ParamsError if no token occurs ``min_freq`` times, and DataError if the first text has
    fewer than ``min_tokens``.
    """
    kind, separator = token_kind(by), "\n" if normalise == "none" else " "
    with needs_extra("subwords", "a network over subwords"):
        tokenizer = kind.train_tokenizer(texts[0], separator, _SUBWORDS)
    distinct, streams, lengths = intern_texts(texts, kind, separator, tokenizer)
    if sum(map(len, streams[0])) < min_tokens:
        raise DataError(f"{function}: fewer than {min_tokens} {kind.noun}s: pass more text")
    separators = kind.separators(texts[0], separator)
    try:
        tokens, counts, ids = choose_tokens(kind, distinct, streams[0], min_freq)
    except ParamsError as error:
        problem = f"no {kind.noun} of the texts occurs so often: lower it"
        raise ParamsError(f"{function}: min_freq = {min_freq}: {problem}") from error
    encoded = [np.concatenate([ids[:0], *(ids[part] for part in parts)]) for parts in streams]
    splits = _split_infos(encoded, lengths)
    vocab = Vocab(by, tokens, counts, separator, splits, tokenizer, normalise, separators)
    return vocab, encoded


def _split_infos(streams: Sequence[Ids], lengths: Sequence[int]) -> dict[str, SplitInfo]:
    """What the vocabulary stores of train and, if it is there, of val."""
    return {
        name: SplitInfo(
            len(ids), length, int(np.count_nonzero(ids == 0)), sha256(ids.data).hexdigest()
        )
        for name, ids, length in zip(("train", "val"), streams, lengths, strict=False)
    }


def _join_texts(texts: str | Iterable[str | Sequence[str]], normalise: str, function: str) -> str:
    """Return the cleaned texts as one. Raises ParamsError for anything else, and for the name of a
    file."""
    if isinstance(texts, str):
        texts = [texts]
    several = require_several(texts, f"{function}: texts must be a string or several")
    cleaned = []
    for number, text in enumerate(several):
        what = f"{function}: texts[{number}]"
        if isinstance(text, list | tuple):
            cleaned.append(clean_text(" ".join(require_strings(text, what)), normalise))
        else:
            cleaned.append(_clean_text(text, normalise, function, what))
    return "\n".join(cleaned)


def _clean_text(text: object, normalise: str, function: str, what: str) -> str:
    """Return a text, cleaned. Raises ParamsError for anything else, and for the name of a file."""
    text = require_text(text, what)
    is_short = len(text[:_LONGEST_PATH].encode()) < _LONGEST_PATH
    if is_short and text.isprintable() and Path(text).is_file():
        raise ParamsError(
            f"{function}: {text!r} is a file: pass its text, Path({text!r}).read_text()"
        )
    return clean_text(text, normalise)


_VAL_SHARE = 0.1
_checked_network = partial(check_argument, function="fit_network")
_CHANGEABLE = {"num_steps", "dropout", "engine"}
"""Settings of a trained network that may be others when its training goes on."""
_OWN_SETTINGS = {"run", "token", "sample_every", "sample_prefix"}
"""Settings of a run that are no arguments."""


class FittedNetwork(StaticNetwork):
    """A network that :func:`fit_network` trained."""

    history: "pd.DataFrame"
    """A row for each epoch: epoch, train_perplexity, val_perplexity, grad_norm, clipped_share,
    tokens."""


def fit_network(
    texts: str | Iterable[str],
    model: str | StaticNetwork = "lstm",
    *,
    by: Kind | None = None,
    normalise: Normalise | None = None,
    val: str | float = _VAL_SHARE,
    min_freq: int | None = None,
    progress: bool = True,
    checkpoint: str | Path | None = None,
    **settings: Any,
) -> FittedNetwork:
    """Train a network on some texts, which are read one after another.

    ``model`` is an architecture (lstm, gru, rnn, scratch or transformer), or a trained network:
    training then goes on from its weights, with its vocabulary. ``by``: the kind of token, char
    (the default), word or subword. ``normalise``: ``letters`` keeps only the letters a to z,
    ``none`` (the default) all of the text. ``val`` is a text, or the share at the end of the texts,
    that chooses the epoch: training stops if it no longer improves there. ``min_freq``: rarer
    tokens are unknown; by default 2 for words, so that the network learns what an unknown word is
    like, and 1 for characters. ``settings`` are those of a run of the pipeline by name, such as
    ``num_epochs``, ``token_budget``, ``num_hiddens``, ``lr``, ``seed`` and ``num_threads``.

    ``progress`` shows a progress bar. With the path of a ``checkpoint``, a call that was
    interrupted continues where it was, to the same weights; when it has finished, the file holds
    the result. A file that is no checkpoint is refused, not replaced. (The setting of a run that is
    called ``checkpoint`` is always ``best`` here.)

    Raises ParamsError for a wrong argument, DataError for a text that is too short, MachineError
    if a package or device is missing, and DivergenceError if the loss is not finite.
    """
    if checkpoint in ("best", "last"):
        problem = "should be the path of a file; the best weights on the validation set are kept"
        raise ParamsError(f"fit_network: checkpoint = {checkpoint!r}: {problem}")
    fixed = {}
    if isinstance(model, StaticNetwork):
        fixed = model.network.settings.model_dump(include=set(NetworkSettings.model_fields))
        arguments = {"by": by, "normalise": normalise, "min_freq": min_freq}
        given = {name: value for name, value in arguments.items() if value is not None} | settings
        _refuse_decided(model.vocab, fixed, given)
        by, cleaning, architecture = model.vocab.kind, model.vocab.normalise, fixed["model"]
    else:
        architectures: Any = Literal[tuple(DEFAULTS)]
        architecture = _checked_network(model, "model", architectures)
        by = _checked_network("char" if by is None else by, "by", Kind)
        cleaning = "none" if normalise is None else normalise
        cleaning = _checked_network(cleaning, "normalise", Normalise)
    val = plain_number(val)
    if not isinstance(val, str) and not (isinstance(val, float) and 0 < val < 1):
        problem = "should be a text, or a share between 0 and 1"
        raise ParamsError(f"fit_network: val = {val!r:.80}: {problem}")
    min_freq = _checked_network(min_freq, "min_freq", PositiveInt | None)
    if min_freq and by == "subword":
        problem = "has no effect with subwords: leave it out"
        raise ParamsError(f"fit_network: min_freq = {min_freq}: {problem}")
    parts = _split(_join_texts(texts, cleaning, "fit_network"), val, cleaning)
    if isinstance(model, StaticNetwork):
        vocab, (train_ids, val_ids) = _encode_with(model.vocab, parts)
    else:
        min_freq = min_freq or (2 if by == "word" else 1)
        vocab, (train_ids, val_ids) = _encode(parts, by, cleaning, min_freq, "fit_network")
    config = _network_config(architecture, by, len(train_ids), fixed, settings)
    if len(val_ids) < 2:
        raise DataError("fit_network: val has fewer than 2 tokens: pass a longer text or share")
    device = resolve_device(config.device)
    trainer = Trainer(config, len(vocab), train_ids, val_ids, device)
    if isinstance(model, StaticNetwork):
        trainer.network.load_weights(model.network.weight_copies())
    _train(trainer, vocab, checkpoint, progress=progress)
    _, weights = trainer.chosen_weights()
    trainer.network.load_weights(weights)
    fitted = FittedNetwork(network_info(config, vocab), vocab, trainer.network)
    history = history_table(config.run, trainer.progress.history).drop(columns="run")
    fitted.history = history.infer_objects()
    return fitted


def _refuse_decided(vocab: Vocab, fixed: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Raise ParamsError for an argument that differs from what a trained network, with its
    vocabulary and settings, has decided."""
    decided = {"by": vocab.kind, "normalise": vocab.normalise, "min_freq": None}
    for name, value in (fixed | decided).items():
        if name not in _CHANGEABLE and given.get(name, value) != value:
            problem = "the trained network decides this: leave it out"
            raise ParamsError(f"fit_network: {name} = {given[name]!r}: {problem}")


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
        if kept.path.is_dir():
            raise ParamsError(f"fit_network: checkpoint = {str(kept.path)!r}: is a folder")
        if not kept.restore(trainer) and kept.path.exists():
            if not kept.is_checkpoint():
                raise ParamsError(f"{kept.path}: is no checkpoint: name another file")
            reason = "it is of another text, other settings or another version"
            warnings.warn(f"{kept.path} is not used: {reason}", stacklevel=3)
        callbacks.append(periodic_saver(kept))
    with terminal(trainer, vocab, is_hidden=not progress) as show:
        trainer.train(show, *callbacks)
    if kept is not None:
        kept.save(trainer)


def _split(text: str, val: str | float, normalise: str) -> tuple[str, str]:
    """The cleaned texts of train and val."""
    if isinstance(val, str):
        return text, _clean_text(val, normalise, "fit_network", "val")
    cut = _nearest_cut(text, len(text) * (1 - val))
    return text[:cut], text[cut:]


def _encode_with(vocab: Vocab, texts: Sequence[str]) -> tuple[Vocab, list[Ids]]:
    """A vocabulary, with what it stores of these texts, and the texts as its tokens."""
    streams: list[Ids] = [vocab.encode(vocab.tokenize(text)) for text in texts]
    return replace(vocab, splits=_split_infos(streams, list(map(len, texts)))), streams


def _network_config(
    architecture: str, by: str, num_tokens: int, fixed: Any, settings: Mapping[str, Any]
) -> RunConfig:
    """The settings of the training: defaults, overlaid by ``fixed`` and by the caller's."""
    if wrong := sorted(settings.keys() & _OWN_SETTINGS):
        raise ParamsError(f"fit_network: {wrong[0]}: unknown setting")
    run = architecture if by == "char" else f"{architecture}-{by}"
    given = {key: plain_number(value) for key, value in settings.items()}
    values = default_settings(architecture, num_tokens) | fixed | given | {"run": run, "token": by}
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
