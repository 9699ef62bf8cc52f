"""What a model is: the properties that tables, figures and sentences about it depend on, and the name people read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from seqlm.vocab.kinds import Kind, token_kind
from seqlm.vocab.vocabulary import Vocab

DYNAMIC = "+dynamic"
"""Appended to the names of dynamic models."""

Family = Literal["ngram", "network", "mixture"]


@dataclass(frozen=True)
class ModelInfo:
    """The properties of a model that tables, figures and sentences about it depend on: its name is never parsed."""

    name: str
    """The identifier: what is typed, and what files and folders are called. People read :func:`display_names`."""
    family: Family
    token: Kind
    """Kind of token that the model predicts."""
    train_chars: int
    """Characters of train that the model was trained on; the largest number among the members of a mixture."""
    train_tokens: int | None = None
    """The number of first tokens of train that the model was trained on, if these are not all."""
    counted_token: Kind | None = None
    """N-gram models: kind of token whose n-grams are counted. It differs from ``token`` for a model over words that is
    read as a model over characters."""
    smoothing: str | None = None
    """N-gram models: smoothing method."""
    order: int | None = None
    """N-gram models: order, in tokens of kind ``counted_token``; 0 for the uniform distribution."""
    network: str | None = None
    """Networks: kind of network, such as lstm."""
    run: str | None = None
    """Networks: the run, which has two models if it keeps its best epoch beside the last one."""
    sampling: str | None = None
    """Networks: how minibatches were cut from the text."""
    as_in_chapter: bool = False
    """Networks: whether the settings are those of sections 8.5 and 8.6 of the book."""
    epoch: Literal["last", "best"] | None = None
    """Networks: whether the weights are those of the last epoch, or those that were best on val."""
    dynamic: bool = False
    """Whether the model, or a member of the mixture, keeps learning from the text that it predicts."""
    chosen_on_val: bool = False
    """Whether settings, weights or the epoch of the model were chosen on val, so that it looks better there."""
    members: tuple[str, ...] = ()
    """Mixtures: the names of the members. Dynamic models: the name of the static model."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the model whose fields a JSON file holds."""
        return cls(**{**value, "members": tuple(value["members"])})

    def as_dynamic(self) -> Self:
        """Return the description of the same model if it keeps learning from the text that it predicts."""
        return replace(self, name=f"{self.name}{DYNAMIC}", dynamic=True, chosen_on_val=True, members=(self.name,))

    @property
    def counts_predicted_token(self) -> bool:
        """Whether this is an n-gram model over the tokens that it predicts."""
        return self.family == "ngram" and self.counted_token == self.token


def describe_ngram(
    smoothing: str, order: int, vocab: Vocab, num_tokens: int | None = None, *, chosen_on_val: bool = False
) -> ModelInfo:
    """Return the description of an n-gram model over the tokens of a vocabulary.

    ``num_tokens``: the first tokens of train that it counts, if these are not all.
    """
    name = "-".join([vocab.kind, smoothing, *([str(order)] if order else [])])
    return ModelInfo(
        name if num_tokens is None else f"{name}@{num_tokens}",
        "ngram",
        vocab.kind,
        beginning_chars(vocab, num_tokens),
        train_tokens=num_tokens,
        counted_token=vocab.kind,
        smoothing=smoothing,
        order=order,
        chosen_on_val=chosen_on_val,
    )


def beginning_chars(vocab: Vocab, num_tokens: int | None) -> int:
    """Return about how many characters the first tokens of train have, or all of it if ``num_tokens`` is None."""
    num_chars, all_tokens = vocab.num_chars["train"], vocab.splits["train"].num_tokens
    return round(num_chars * min((num_tokens or all_tokens) / all_tokens, 1.0))


def display_names(models: Iterable[ModelInfo], *, in_sentences: bool = False) -> dict[str, str]:
    """Return the name that people read for each model, by its identifier: no two models have the same.

    It says what a model is. Models that this does not tell apart, such as two runs of one kind, have their identifiers
    in brackets. Details follow commas; in sentences they are in brackets, and a network has an article.
    """
    infos = {info.name: info for info in models}
    single = {name: info for name, info in infos.items() if info.family != "mixture"}
    subjects = {name: _subject(info) for name, info in single.items()}
    listed = _told_apart({info.name: ", ".join(_parts(info)) for info in subjects.values()})
    said = _told_apart({info.name: _bracketed(*_parts(info, in_sentences=True)) for info in subjects.values()})
    names, brief = {}, {}
    for name, info in single.items():
        subject, learning = subjects[name], [_LEARNING] if info.dynamic else []
        if in_sentences:
            article = "the " if info.family == "network" and not info.as_in_chapter else ""
            names[name] = article + _bracketed(said[subject.name], *learning)
        else:
            names[name] = ", ".join([listed[subject.name], *learning])
        brief[name] = said[subject.name] if info.family == "network" else _parts(subject, in_sentences=True)[0]
    for mixture in (info for info in infos.values() if info.family == "mixture"):
        learns = [name in single and single[name].dynamic for name in mixture.members]
        parts = [brief.get(name, name) for name in mixture.members]
        if len(parts) > _MAX_NAMED:  # with their names it would be longer than a line
            parts, learns = [f"mixture of {len(parts)} models"], []
        if any(learns) and not all(learns):
            parts = [_bracketed(part, *[_LEARNING] * one) for part, one in zip(parts, learns, strict=True)]
        learning = [_LEARNING] if mixture.dynamic and len({*learns}) < 2 else []
        names[mixture.name] = ", ".join([" + ".join(parts), *learning])
    return _told_apart({name: names[name] for name in infos})


_LEARNING = "still learning"
_MAX_NAMED = 2
"""Members that the name of a mixture names."""
NETWORK_NAMES = {"scratch": "RNN from scratch", "rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}
"""The name that people read for a kind of network; other kinds have their own."""
_NGRAMS = {1: "unigrams", 2: "bigrams", 3: "trigrams"}


def _told_apart(names: Mapping[str, str]) -> dict[str, str]:
    """Return names by identifier, with the identifier after those that several models have."""
    counts = Counter(names.values())
    return {model: name if counts[name] == 1 else f"{name} ({model})" for model, name in names.items()}


def _subject(info: ModelInfo) -> ModelInfo:
    """Return the model itself, or the static one whose weights or counts a dynamic model begins with."""
    return replace(info, name=info.members[0], dynamic=False) if info.dynamic else info


def _bracketed(name: str, *details: str) -> str:
    """Return a name with details in brackets, among those that it has."""
    for detail in details:
        name = f"{name[:-1]}, {detail})" if name.endswith(")") else f"{name} ({detail})"
    return name


def _parts(info: ModelInfo, *, in_sentences: bool = False) -> list[str]:
    """Return what a static model is, from its properties, and details of it; a mixture has none of its own."""
    return _parts_of_network(info) if info.family == "network" else _parts_of_counts(info, in_sentences)


def _parts_of_network(info: ModelInfo) -> list[str]:
    if info.as_in_chapter:
        parts = ["the chapter's RNN", "from scratch" if info.network == "scratch" else "concise", str(info.sampling)]
    else:
        kind = NETWORK_NAMES.get(str(info.network), str(info.network))
        parts = [kind, *([] if token_kind(info.token).is_character else [_tokens(info.token)]), *_beginning(info)]
    return [*parts, *(["best epoch"] if info.run not in (None, info.name) else [])]


def _parts_of_counts(info: ModelInfo, in_sentences: bool) -> list[str]:
    counted = info.counted_token or info.token
    noun, tokens = token_kind(counted).noun, _tokens(counted)
    smoothing = "-".join(part[:1].upper() + part[1:] for part in str(info.smoothing).split("-"))
    if info.order and not info.counts_predicted_token:
        parts = [f"{noun} {_NGRAMS.get(info.order, f'{info.order}-grams')}"]
    elif not in_sentences:
        parts = [tokens, f"{info.order}-grams ({smoothing})" if info.order else "all equally likely"]
    else:
        parts = [f"{noun} {info.order}-grams", smoothing] if info.order else [f"equally likely {noun}s"]
        parts += [] if token_kind(counted).is_lossless else [tokens]
    return [*parts, *_beginning(info)]


def _tokens(kind: Kind) -> str:
    """Return what a model over a kind of token predicts."""
    found = token_kind(kind)
    return f"{found.noun}s" if found.is_lossless else f"{found.noun}s only"


def _beginning(info: ModelInfo) -> list[str]:
    """Return the part of train that the model was trained on, if that is not all of it."""
    if info.train_tokens is None:
        return []
    return [f"first {info.train_tokens:,} {token_kind(info.counted_token or info.token).noun}s"]
