"""Samples of every model, and how much of each is copied or repeated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqlm.errors import DataError
from seqlm.ngrams.models import NGramModel
from seqlm.vocab import Vocab

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


def encode_prefix(vocab: Vocab, prefix: str, on_unknown: str) -> list[int]:
    """Return the tokens of a prefix.

    ``on_unknown``: "error" raises DataError that names the first token which the
    vocabulary lacks; "unk" lets it stand as ``<unk>``.
    """
    tokens = vocab.tokenize(prefix)
    if not tokens:
        raise DataError(f"the prefix {prefix!r} holds no {vocab.kind}: give at least one")
    if on_unknown == "error" and (missing := [token for token in tokens if token not in vocab]):
        what = "character" if vocab.kind == "char" else "word"
        raise DataError(f"the {what} {missing[0]!r} of the prefix is not in the vocabulary: use --on-unknown unk")
    return [int(index) for index in vocab.encode(tokens)]


def continue_by_counting(
    model: NGramModel, prefix: Sequence[int], num_preds: int, temperature: float, rng: np.random.Generator
) -> list[int]:
    """Return ``num_preds`` tokens that an n-gram model writes after a prefix; never ``<unk>``.

    ``temperature`` 0 is greedy; above, tokens are drawn from q proportional to p to the
    power 1 / temperature.
    """
    tokens = list(prefix)
    for _ in range(num_preds):
        probs = model.next_distribution(np.array(tokens[-max(model.order - 1, 1) :], np.int64)).copy()
        probs[0] = 0
        if temperature == 0:
            tokens.append(int(np.argmax(probs)))
            continue
        with np.errstate(divide="ignore"):
            logs = np.log(probs) / temperature
        weights = np.exp(logs - logs.max())
        tokens.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return tokens[len(prefix) :]


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
