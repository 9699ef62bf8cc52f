"""Samples of every model, and how much of each is copied or repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seqlm.core.layout import Layout
from seqlm.generate.writers import Writer
from seqlm.rnn.continuing import Choice
from seqlm.vocab.streams import load_split

_REPEATED_LENGTH = 8


@dataclass(frozen=True)
class Sample:
    """One continuation of one prefix by one model."""

    model: str
    prefix: str
    temperature: float
    text: str
    """What follows the prefix."""
    copied: int
    """Length of the longest run of characters that stands in train too."""
    repeated: float
    """Share of the runs of eight characters that occurred earlier in the continuation."""


def write_samples(
    layout: Layout,
    writers: Sequence[Writer],
    prefixes: Sequence[str],
    choices: Sequence[Choice],
    num_preds: int,
    seed: int,
    on_unknown: str,
) -> Iterator[list[Sample]]:
    """Yield what each writer makes of each prefix, for each way to choose tokens."""
    for writer in writers:
        samples = []
        source = writer.vocab.join(writer.vocab.decode(load_split(layout.corpus(writer.vocab.kind), "train")))
        for choice in choices:
            texts = writer.write(prefixes, num_preds, choice, seed, on_unknown)
            pairs = zip(prefixes, texts, strict=True)
            samples += [describe(writer.name, prefix, choice.temperature, text, source) for prefix, text in pairs]
        yield samples


def longest_copy(text: str, source: str) -> int:
    """Return the length of the longest run of characters of ``text`` that stands in ``source``."""
    best = 0
    for start in range(len(text)):
        # A longer run than the best so far must begin somewhere: grow only from there.
        while start + best < len(text) and text[start : start + best + 1] in source:
            best += 1
    return best


def repeated_share(text: str) -> float:
    """Return the share of the runs of eight characters that occurred earlier in ``text``."""
    runs = [text[start : start + _REPEATED_LENGTH] for start in range(len(text) - _REPEATED_LENGTH + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def describe(model: str, prefix: str, temperature: float, text: str, source: str) -> Sample:
    """Return a continuation with how much of it is copied from ``source`` and repeated."""
    return Sample(model, prefix, temperature, text, longest_copy(text, source), repeated_share(text))


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
