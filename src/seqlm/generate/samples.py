"""Samples of text from every model: the prefixes they continue, and how much of each is copied or repeated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from seqlm.core.layout import Layout
from seqlm.models.language_model import LanguageModel, SamplingConfig
from seqlm.models.opening import Models
from seqlm.vocab.corpus import AUTO, load_split, prompts
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab

_NUM_AUTO_PREFIXES = 2


def chosen_prefixes(setting: Sequence[str] | str, layout: Layout) -> list[str]:
    """Return the prefixes of the setting; ``auto`` gives the first two pieces of val.

    Raises DataError if val begins with nothing but spaces.
    """
    if setting != AUTO:
        return list(setting)
    vocab, val = Vocab.load(layout.vocab("char"), "char"), load_split(layout.corpus("char"), "val", mmap=True)
    return prompts(vocab, val, _NUM_AUTO_PREFIXES)


_REPEATED_LENGTH = 8
SEARCHED_TOKENS = 5_000_000
"""Tokens of train, from its beginning, in which copied substrings are looked for."""


@dataclass(frozen=True)
class Continuation:
    """The text that a model generates after a prefix."""

    model: str
    kind: Kind
    """Kind of token that the model predicts."""
    prefix: str
    temperature: float
    text: str
    """The text after the prefix."""


@dataclass(frozen=True)
class Sample:
    """A continuation, and how much of it is copied or repeated."""

    model: str
    prefix: str
    temperature: float
    text: str
    copied: int
    """Length of the longest substring that also occurs in train."""
    repeated: float
    """Share of the substrings of eight characters that occurred earlier in the continuation."""


def models_that_generate(models: Models) -> list[str]:
    """Return the names of all runs, of each n-gram smoothing's highest order, and of the static mixtures."""
    ngrams = [name for kind in KINDS for name in models.ngrams(kind, only_highest=True)]
    return [*models.runs(), *ngrams, *models.mixtures(only_static=True)]


def generate_continuations(
    models: Iterable[LanguageModel],
    prefixes: Sequence[str],
    sampling_configs: Sequence[SamplingConfig],
    num_preds: int,
    seed: int,
    on_unknown: str,
) -> Iterator[list[Continuation]]:
    """Yield the continuations of each model: every prefix with every sampling config."""
    for model in models:
        continuations = []
        for sampling in sampling_configs:
            texts = model.generate_batch(prefixes, num_preds, sampling, seed, on_unknown)
            continuations += [
                Continuation(model.name, model.vocab.kind, prefix, sampling.temperature, text)
                for prefix, text in zip(prefixes, texts, strict=True)
            ]
        yield continuations


def measure_continuations(layout: Layout, continuations: Sequence[Continuation]) -> list[Sample]:
    """Return continuations with how much of each is copied from train."""
    copied: dict[tuple[Kind, str], int] = {}
    for kind in KINDS:
        if texts := [found.text for found in continuations if found.kind == kind]:
            vocab, train = Vocab.load(layout.vocab(kind), kind), load_split(layout.corpus(kind), "train", mmap=True)
            source = vocab.join(vocab.decode(train[:SEARCHED_TOKENS].tolist()))
            copied |= {(kind, text): longest_common_substring(text, source) for text in texts}
    return [
        Sample(c.model, c.prefix, c.temperature, c.text, copied[c.kind, c.text], repeated_share(c.text))
        for c in continuations
    ]


def longest_common_substring(text: str, source: str) -> int:
    """Return the length of the longest substring of a text that occurs in the source."""
    length = 0
    for start in range(len(text)):
        while start + length < len(text) and text[start : start + length + 1] in source:
            length += 1
    return length


def repeated_share(text: str) -> float:
    """Return the share of the substrings of eight characters that occurred earlier in ``text``."""
    substrings = [text[start : start + _REPEATED_LENGTH] for start in range(len(text) - _REPEATED_LENGTH + 1)]
    return 1 - len(set(substrings)) / len(substrings) if substrings else 0.0


def samples_markdown(samples: Sequence[Sample]) -> str:
    """Return the samples as Markdown, one section for each model."""
    lines = ["# What each model writes", ""]
    lines += [
        "*Copied* is the length of the longest substring that also occurs in the training text; *repeated* is the"
    ]
    lines += ["share of the substrings of eight characters that occurred earlier in the same sample.", ""]
    for model in dict.fromkeys(sample.model for sample in samples):
        lines += [f"## {model}", "", "| temperature | copied | repeated | text |", "| --- | --- | --- | --- |"]
        for sample in samples:
            if sample.model == model:
                text = f"**{_in_cell(sample.prefix)}**{_in_cell(sample.text)}"
                lines.append(f"| {sample.temperature:g} | {sample.copied} | {sample.repeated:.0%} | {text} |")
        lines.append("")
    return "\n".join(lines)


def _in_cell(text: str) -> str:
    """Return text that neither ends a table's cell nor starts markup."""
    for character, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_")):
        text = text.replace(character, shown)
    return text.replace("\n", " ⏎ ")
