"""The names of models that people read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from seqlm.models.info import ModelInfo
from seqlm.vocab.kinds import Kind, token_kind

NETWORK_NAMES = {"scratch": "RNN from scratch", "rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}
"""The name that people read for a kind of network; other kinds have their own."""
_LEARNING = "still learning"
_MAX_NAMED = 2
"""Members that the name of a mixture names."""
_NGRAMS = {1: "unigrams", 2: "bigrams", 3: "trigrams"}


def display_names(models: Iterable[ModelInfo]) -> dict[str, str]:
    """Return the name that people read for each model, by its identifier: no two models have the same.

    It says what a model is, with details in brackets, in tables and in sentences. Models that this does not tell apart,
    such as two runs of one kind, have their identifiers in brackets.
    """
    infos = {info.name: info for info in models}
    single = {name: info for name, info in infos.items() if info.family != "mixture"}
    subjects = {name: _subject(info) for name, info in single.items()}
    said = _told_apart({info.name: _bracketed(*_parts(info)) for info in subjects.values()})
    names, brief = {}, {}
    for name, info in single.items():
        subject = subjects[name]
        names[name] = _bracketed(said[subject.name], *[_LEARNING] * info.dynamic)
        brief[name] = said[subject.name] if info.family == "network" else _parts(subject)[0]
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


def _parts(info: ModelInfo) -> list[str]:
    """Return what a static model is, from its properties, and details of it; a mixture has none of its own."""
    return _parts_of_network(info) if info.family == "network" else _parts_of_counts(info)


def _parts_of_network(info: ModelInfo) -> list[str]:
    if info.as_in_chapter:
        return ["the chapter's RNN", "from scratch" if info.network == "scratch" else "concise", str(info.sampling)]
    kind = NETWORK_NAMES.get(str(info.network), str(info.network))
    return [kind, *([] if token_kind(info.token).is_character else [_tokens(info.token)]), *_beginning(info)]


def _parts_of_counts(info: ModelInfo) -> list[str]:
    noun = token_kind(info.counted_token or info.token).noun
    if not info.order:
        return [f"equally likely {noun}s"]
    if not info.counts_predicted_token:
        return [f"{noun} {_NGRAMS.get(info.order, f'{info.order}-grams')}", *_beginning(info)]
    smoothing = "-".join(part[:1].upper() + part[1:] for part in str(info.smoothing).split("-"))
    return [f"{noun} {info.order}-grams", smoothing, *_beginning(info)]


def _tokens(kind: Kind) -> str:
    """Return what a model over a kind of token predicts."""
    return f"{token_kind(kind).noun}s"


def _beginning(info: ModelInfo) -> list[str]:
    """Return the part of train that the model was trained on, if that is not all of it."""
    if info.train_tokens is None:
        return []
    return [f"first {info.train_tokens:,} {token_kind(info.counted_token or info.token).noun}s"]
