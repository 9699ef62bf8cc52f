"""Samples of text from every model: the prefixes they continue, and how much of each is copied or
repeated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from seqlm.core.layout import Layout
from seqlm.models.index import Models
from seqlm.models.language_model import LanguageModel
from seqlm.pipeline.train.configs import run_names
from seqlm.vocab.corpus import known_prefixes, load_split
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

NUM_AUTO_PREFIXES = 2
REPEATED_LENGTH = 8
SEARCHED_TOKENS = 5_000_000
"""Tokens of train, from its beginning, in which prefixes and copied substrings are looked for."""


def resolve_prefixes(setting: Sequence[str] | str, layout: Layout) -> list[str]:
    """Return the prefixes of the setting that train has; the first two pieces of val for ``auto``,
    or if it has none.

    Raises DataError if these are needed and val begins with nothing but spaces.
    """
    folder, vocab = layout.corpus("char"), Vocab.load(layout.vocab("char"), "char")
    train, val = (load_split(folder, split, vocab) for split in ("train", "val"))
    return known_prefixes(setting, vocab, train[:SEARCHED_TOKENS], val, NUM_AUTO_PREFIXES)


@dataclass(frozen=True)
class Sample:
    """The text that a model generates after a prefix, and how much of it is copied or repeated."""

    model: str
    prefix: str
    temperature: float
    text: str
    """The text after the prefix."""
    copied: int
    """Length of the longest substring that also occurs in train."""
    repeated: float
    """Share of the substrings of eight characters that occurred earlier in the text."""


def generating_models(models: Models) -> list[str]:
    """Return the names of all runs, of each n-gram smoothing's highest order, and of the static
    mixtures.

    Raises DataError if there is no run.
    """
    ngrams = [description.info for description in models.ngrams.values()]
    highest = {
        (info.token, info.smoothing): info.name
        for info in ngrams
        if info.counts_own_tokens and info.order and info.train_tokens is None
    }
    mixtures = [name for name, mixture in models.mixtures.items() if not mixture.info.dynamic]
    return [*run_names(models.layout.configs), *highest.values(), *mixtures]


def generate_samples(
    models: Iterable[LanguageModel],
    prefixes: Sequence[str],
    temperatures: Sequence[float],
    num_preds: int,
    seed: int,
    layout: Layout,
) -> Iterator[list[Sample]]:
    """Yield the samples of each model: every prefix at every temperature."""

    @cache
    def train_text(kind: Kind) -> str:
        vocab = Vocab.load(layout.vocab(kind), kind)
        train = load_split(layout.corpus(kind), "train", vocab)[:SEARCHED_TOKENS]
        return vocab.join(vocab.decode(train.tolist()))

    for model in models:
        train, samples = train_text(model.vocab.kind), []
        for temperature in temperatures:
            texts = model.generate(list(prefixes), num_preds, temperature=temperature, seed=seed)
            for prefix, text in zip(prefixes, texts, strict=True):
                overlap = copied_length(text, train), repeated_share(text)
                samples.append(Sample(model.name, prefix, temperature, text, *overlap))
        yield samples


def copied_length(text: str, source: str) -> int:
    """Return the length of the longest substring of a text that occurs in the source."""
    length = 0
    for start in range(len(text)):
        while start + length < len(text) and text[start : start + length + 1] in source:
            length += 1
    return length


def repeated_share(text: str) -> float:
    """Return the share of the substrings of eight characters that occurred earlier in ``text``."""
    substrings = [
        text[start : start + REPEATED_LENGTH] for start in range(len(text) - REPEATED_LENGTH + 1)
    ]
    return 1 - len(set(substrings)) / len(substrings) if substrings else 0.0
