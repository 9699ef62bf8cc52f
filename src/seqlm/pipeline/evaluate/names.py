"""The names that people read for models, from their properties."""

from collections import Counter
from collections.abc import Iterable, Mapping

from seqlm.models.info import ModelInfo
from seqlm.vocab.kinds import token_kind

NETWORK_NAMES = {"scratch": "RNN from scratch", "rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}
"""The name that people read for a kind of network; other kinds have their own."""
_LEARNING = "still learning"
_MAX_NAMED = 2
"""A mixture of more members is called by their number."""
_NGRAM_NAMES = {1: "unigrams", 2: "bigrams", 3: "trigrams"}


def display_names(models: Iterable[ModelInfo]) -> dict[str, str]:
    """Return the name that people read for each model, by its identifier: no two models have the
    same.

    It says what a model is, with details in brackets, in tables and in sentences. Models that this
    does not tell apart, such as two runs of one kind, have their identifiers in brackets.
    """
    infos = {info.name: info for info in models}
    single = {name: info for name, info in infos.items() if info.family != "mixture"}
    # A dynamic model is called like the static one whose weights or counts it begins with.
    static = {name: info.members[0] if info.dynamic else name for name, info in single.items()}
    labels = _disambiguate(
        {static[name]: _with_details(*_label_parts(info)) for name, info in single.items()}
    )
    names, brief = {}, {}
    for name, info in single.items():
        label = labels[static[name]]
        names[name] = _with_details(label, _LEARNING) if info.dynamic else label
        brief[name] = label if info.family == "network" else _label_parts(info)[0]
    for name in infos.keys() - single.keys():
        names[name] = _mixture_name(infos[name], brief)
    return _disambiguate({name: names[name] for name in infos})


def ngram_name(order: int) -> str:
    """Return the name that people read for n-grams of an order."""
    return _NGRAM_NAMES.get(order, f"{order}-grams")


def _mixture_name(mixture: ModelInfo, brief: Mapping[str, str]) -> str:
    if len(mixture.members) > _MAX_NAMED:  # with their names it would be longer than a line
        name = f"mixture of {len(mixture.members)} models"
    else:
        name = " + ".join(brief.get(member, member) for member in mixture.members)
    return f"{name}, {_LEARNING}" if mixture.dynamic else name


def _disambiguate(names: Mapping[str, str]) -> dict[str, str]:
    """Return names by identifier, with the identifier after those that several models have."""
    counts = Counter(names.values())
    return {
        model: name if counts[name] == 1 else f"{name} ({model})" for model, name in names.items()
    }


def _with_details(name: str, *details: str) -> str:
    """Return a name with details in brackets, among those that it has."""
    for detail in details:
        name = f"{name[:-1]}, {detail})" if name.endswith(")") else f"{name} ({detail})"
    return name


def _label_parts(info: ModelInfo) -> list[str]:
    """Return the name of a model that is no mixture, and the details that follow it in brackets."""
    kind, network = token_kind(info.counted_token or info.token), str(info.network)
    first = [] if info.train_tokens is None else [f"first {info.train_tokens:,} {kind.noun}s"]
    if info.as_in_chapter:
        origin = "from scratch" if network == "scratch" else "concise"
        return ["the chapter's RNN", origin, str(info.sampling)]
    if info.family == "network":
        tokens = [] if kind.is_character else [f"{kind.noun}s"]
        return [NETWORK_NAMES.get(network, network), *tokens, *first]
    if not info.order:
        return [f"equally likely {kind.noun}s"]
    if not info.counts_own_tokens:
        return [f"{kind.noun} {ngram_name(info.order)}", "by character", *first]
    return [f"{kind.noun} {info.order}-grams", str(info.smoothing).title(), *first]
