"""Models that write: one way to ask a recurrent network and an n-gram model for text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from seqlm.generation import Choice, continue_prefixes
from seqlm.ngrams.storage import load_models
from seqlm.params.train import RunConfig
from seqlm.rnn.building import load_model
from seqlm.samples import continue_by_counting, encode_prefix
from seqlm.vocab import Kind, Vocab

Continue = Callable[[list[list[int]], int, Choice, int], list[list[int]]]
"""From encoded prefixes, a number of tokens, a choice and a seed to the tokens that follow."""


@dataclass(frozen=True)
class Writer:
    """A model that continues prefixes."""

    name: str
    vocab: Vocab
    go_on: Continue

    def write(self, prefixes: Sequence[str], num_preds: int, choice: Choice, seed: int, on_unknown: str) -> list[str]:
        """Return the text that follows each prefix, a word's leading space included.

        Raises DataError where a prefix has a token that the vocabulary lacks, unless
        ``on_unknown`` is "unk".
        """
        encoded = [encode_prefix(self.vocab, prefix, on_unknown) for prefix in prefixes]
        lead = " " if self.vocab.kind == "word" else ""
        return [
            lead + self.vocab.join(self.vocab.decode(tokens)) for tokens in self.go_on(encoded, num_preds, choice, seed)
        ]


def network_writer(config: RunConfig, folder: Path, vocab: Vocab, device: torch.device) -> Writer:
    """Return a trained run as a writer."""
    model = load_model(folder, device, run=config.run)

    def go_on(prefixes: list[list[int]], num_preds: int, choice: Choice, seed: int) -> list[list[int]]:
        return continue_prefixes(model, prefixes, num_preds, choice, seed)

    return Writer(config.run, vocab, go_on)


def counting_writer(kind: Kind, name: str, folder: Path, vocab: Vocab) -> Writer:
    """Return an n-gram model as a writer; of a choice it obeys the temperature."""
    model = load_models(folder, len(vocab))[name]

    def go_on(prefixes: list[list[int]], num_preds: int, choice: Choice, seed: int) -> list[list[int]]:
        rng = np.random.default_rng(seed)
        return [continue_by_counting(model, prefix, num_preds, choice.temperature, rng) for prefix in prefixes]

    return Writer(f"{kind}-{name}", vocab, go_on)


def strongest_ngrams(folder: Path, vocab: Vocab) -> list[str]:
    """Return the n-gram models that show what counting can write: the highest order of each smoothing."""
    names = list(load_models(folder, len(vocab)))
    return [[name for name in names if name.startswith(smoothing)][-1] for smoothing in ("laplace", "kneser-ney")]
