"""Samples of every model, and how much of each is copied or repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from seqlm.core.layout import Layout
from seqlm.generate.copying import decoded_blocks, longest_common_substrings
from seqlm.generate.writers import Writers
from seqlm.rnn.generation import SamplingConfig
from seqlm.vocab.corpus_building import load_split
from seqlm.vocab.kinds.registry import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab

_REPEATED_LENGTH = 8


@dataclass(frozen=True)
class Continuation:
    """One continuation of one prefix by one model."""

    model: str
    kind: Kind
    """The tokens that the model writes."""
    prefix: str
    temperature: float
    text: str
    """What follows the prefix."""


@dataclass(frozen=True)
class Sample:
    """A continuation, and how much of it is copied or repeated."""

    model: str
    prefix: str
    temperature: float
    text: str
    copied: int
    """Length of the longest run of characters that stands in train too."""
    repeated: float
    """Share of the runs of eight characters that occurred earlier in the continuation."""


def write_continuations(
    writers: Writers,
    prefixes: Sequence[str],
    choices: Sequence[SamplingConfig],
    num_preds: int,
    seed: int,
    on_unknown: str,
) -> Iterator[list[Continuation]]:
    """Yield what each writer makes of each prefix, for each way to choose tokens."""
    for name, load in writers.items():
        writer, written = load(), []
        for choice in choices:
            texts = writer.write(prefixes, num_preds, choice, seed, on_unknown)
            pairs = zip(prefixes, texts, strict=True)
            written += [
                Continuation(name, writer.vocab.kind, prefix, choice.temperature, text) for prefix, text in pairs
            ]
        yield written


def measure_continuations(layout: Layout, written: Sequence[Continuation]) -> list[Sample]:
    """Return continuations with how much of each is copied from train, which is read once for each kind of token."""
    copied: dict[tuple[Kind, str], int] = {}
    for kind in KINDS:
        if texts := [found.text for found in written if found.kind == kind]:
            vocab, train = Vocab.load(layout.vocab(kind), kind), load_split(layout.corpus(kind), "train", mmap=True)
            lengths = longest_common_substrings(texts, partial(decoded_blocks, vocab, train))
            copied |= {(kind, text): length for text, length in zip(texts, lengths, strict=True)}
    return [
        Sample(w.model, w.prefix, w.temperature, w.text, copied[w.kind, w.text], repeated_share(w.text))
        for w in written
    ]


def repeated_share(text: str) -> float:
    """Return the share of the runs of eight characters that occurred earlier in ``text``."""
    runs = [text[start : start + _REPEATED_LENGTH] for start in range(len(text) - _REPEATED_LENGTH + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def samples_markdown(samples: Sequence[Sample]) -> str:
    """Return the samples as Markdown, one section a model."""
    lines = ["# What each model writes", ""]
    lines += ["*Copied* is the longest run of characters that stands in the training text too; *repeated* is the"]
    lines += ["share of the runs of eight characters that occurred earlier in the same sample.", ""]
    for model in dict.fromkeys(sample.model for sample in samples):
        lines += [f"## {model}", "", "| temperature | copied | repeated | text |", "| --- | --- | --- | --- |"]
        for sample in samples:
            if sample.model == model:
                text = f"**{_in_cell(sample.prefix)}**{_in_cell(sample.text)}"
                lines.append(f"| {sample.temperature:g} | {sample.copied} | {sample.repeated:.0%} | {text} |")
        lines.append("")
    return "\n".join(lines)


def _in_cell(text: str) -> str:
    """Return text that neither ends a table's cell nor starts markup of its own."""
    for character, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_")):
        text = text.replace(character, shown)
    return text.replace("\n", " ⏎ ")
