"""Scores every model on every split, and sets them against each other.

A model's score on a split is the array of its surprisals in nats, one for each token but
the first. Everything else is computed from these arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.metrics import bits_per_character, perplexity
from seqlm.spelling import NATS_OF_ANY_CHARACTER, SpellingModel
from seqlm.vocab import SPLITS, UNKNOWN, Kind, Vocab

Nats = NDArray[np.float64]

_MIX_WEIGHTS = np.linspace(0.0, 1.0, 41)


@dataclass(frozen=True)
class Stream:
    """One split, encoded as one kind of token, and what its tokens stand for."""

    ids: NDArray[np.integer]
    num_chars: int
    """Characters of the split, lines joined: the same for both kinds."""
    unknown_costs: Nats
    """What each token costs beside the model's own surprisal: 0 where the vocabulary knows it."""
    ends: NDArray[np.int64]
    """How many characters of tokens have passed after each token: where a token lies in the text."""

    @property
    def unknown_share(self) -> float:
        """Share of the scored tokens that the vocabulary lacks."""
        return float(np.mean(self.ids[1:] == 0)) if len(self.ids) > 1 else 0.0


def read_stream(
    vocab: Vocab, ids: NDArray[np.integer], tokens: list[str], num_chars: int, spelling: SpellingModel
) -> Stream:
    """Return a split as a stream; ``tokens`` are its tokens as text, the unknown ones too."""
    costs = np.zeros(len(ids))
    unknown = np.flatnonzero(np.asarray(ids) == 0)
    if vocab.kind == "char":
        costs[unknown] = NATS_OF_ANY_CHARACTER
    elif len(unknown):
        costs[unknown] = spelling.nats([tokens[place] for place in unknown])
    ends = np.cumsum([len(token) for token in tokens])
    return Stream(ids, num_chars, costs, ends)


def spelling_model(vocab: Vocab) -> SpellingModel:
    """Return the model that spells words which a word vocabulary lacks."""
    return SpellingModel([token for token in vocab.tokens if token != UNKNOWN])


@dataclass(frozen=True)
class Scored:
    """A model's surprisals on each split."""

    name: str
    kind: Kind
    nats: Mapping[str, Nats]

    def measures(self, streams: Mapping[str, Stream], fitted: int | None) -> dict[str, dict[str, Any]]:
        """Return the measures of each split; ``fitted`` is how many tokens of train the model saw, if not all."""
        found = {split: measure(self.nats[split], streams[split]) for split in SPLITS if split in self.nats}
        if fitted is not None and fitted < len(streams["train"].ids):
            train = streams["train"]
            # Joined by nothing, one character is one token; otherwise the share of the characters is taken.
            chars = round(train.num_chars * fitted / len(train.ids))
            part = Stream(train.ids[:fitted], chars, train.unknown_costs[:fitted], train.ends[:fitted])
            found["fitted"] = measure(self.nats["train"][: fitted - 1], part)
        return found


def measure(nats: Nats, stream: Stream) -> dict[str, Any]:
    """Return nats per token, perplexity, bits per character, tokens and the share of unknown tokens.

    Perplexity is the model's own, over its own tokens; bits per character charge unknown
    tokens besides. Infinite values are None, with the reason.
    """
    total = float(nats.sum())
    sizes = {"tokens": len(nats), "unknown_share": stream.unknown_share}
    if not np.isfinite(total):
        missing = int(np.count_nonzero(~np.isfinite(nats)))
        reason = f"infinite: {missing} tokens have probability 0"
        return {"nats_per_token": None, "perplexity": None, "bits_per_character": None, "reason": reason} | sizes
    charged = total + float(stream.unknown_costs[1:].sum())
    return {
        "nats_per_token": total / max(len(nats), 1),
        "perplexity": perplexity(total, max(len(nats), 1)),
        "bits_per_character": bits_per_character(charged, stream.num_chars),
    } | sizes


def mix(first: Nats, second: Nats, weight: float) -> Nats:
    """Return the surprisals of ``weight * p_first + (1 - weight) * p_second``."""
    with np.errstate(divide="ignore"):
        return -np.log(weight * np.exp(-first) + (1 - weight) * np.exp(-second))


def best_mixture(first: Scored, second: Scored) -> tuple[Scored, float]:
    """Return the mixture of two models over one kind of token, its weight chosen on val."""
    losses = [float(mix(first.nats["val"], second.nats["val"], weight).sum()) for weight in _MIX_WEIGHTS]
    weight = float(_MIX_WEIGHTS[int(np.argmin(losses))])
    mixed = {split: mix(first.nats[split], second.nats[split], weight) for split in first.nats}
    return Scored(f"{first.name}+{second.name}", first.kind, mixed), weight
