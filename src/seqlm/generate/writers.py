"""Models that write: one way to ask a recurrent network and an n-gram model for text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.generate.ngram_sampling import sample_ngrams
from seqlm.ngrams.models.smoothing import NGramModel
from seqlm.ngrams.models.storage import load_models
from seqlm.rnn.building import load_network
from seqlm.rnn.generation import SamplingConfig, continue_prefixes
from seqlm.score.model_info import describe_ngram
from seqlm.train.runs import run_names
from seqlm.train.settings import read_config
from seqlm.vocab.kinds.registry import KINDS
from seqlm.vocab.vocabulary import Vocab

Continue = Callable[[list[list[int]], int, SamplingConfig, int], list[list[int]]]
"""From encoded prefixes, a number of tokens, a choice and a seed to the tokens that follow."""


@dataclass(frozen=True)
class Writer:
    """A model that continues prefixes."""

    name: str
    vocab: Vocab
    go_on: Continue

    def write(
        self, prefixes: Sequence[str], num_preds: int, choice: SamplingConfig, seed: int, on_unknown: str
    ) -> list[str]:
        """Return the text that follows each prefix, a word's leading space included.

        Raises DataError where a prefix has a token that the vocabulary lacks, unless
        ``on_unknown`` is "unk".
        """
        encoded = [encode_prefix(self.vocab, prefix, on_unknown) for prefix in prefixes]
        lead = self.vocab.of_kind.joiner
        return [
            lead + self.vocab.join(self.vocab.decode(tokens)) for tokens in self.go_on(encoded, num_preds, choice, seed)
        ]


Writers = dict[str, Callable[[], Writer]]
"""How to get each writer, by its name: a network is loaded when its turn comes."""


def all_writers(layout: Layout, device: torch.device) -> Writers:
    """Return every trained run, and of the models that count those which show what counting can write."""
    vocabs = {kind: Vocab.load(layout.vocab(kind), kind) for kind in KINDS}
    writers: Writers = {}
    for run in run_names(layout.configs):
        vocab = vocabs[read_config(layout.config(run)).token]
        writers[run] = partial(network_writer, layout, run, vocab, device)
    for vocab in vocabs.values():
        writers |= ngram_writers(layout, vocab)
    return writers


def choose_writers(writers: Writers, names: Sequence[str]) -> Writers:
    """Return the writers of these names, all where there are none. Raises ParamsError for a name that none has."""
    if missing := set(names) - set(writers):
        raise ParamsError(f"--model {min(missing)}: no such model: choose from {', '.join(writers)}")
    return {name: writer for name, writer in writers.items() if not names or name in names}


def network_writer(layout: Layout, run: str, vocab: Vocab, device: torch.device) -> Writer:
    """Return a trained run as a writer."""
    network = load_network(layout.run(run), run, device)

    def go_on(prefixes: list[list[int]], num_preds: int, choice: SamplingConfig, seed: int) -> list[list[int]]:
        return continue_prefixes(network, prefixes, num_preds, choice, seed)

    return Writer(run, vocab, go_on)


def ngram_writers(layout: Layout, vocab: Vocab) -> Writers:
    """Return the n-gram models of the highest order of each smoothing."""
    highest: dict[str, NGramModel] = {}
    for model in load_models(layout.ngrams(vocab.kind), len(vocab)).values():
        if model.order > 0 and model.order >= getattr(highest.get(model.smoothing), "order", 0):
            highest[model.smoothing] = model
    return {
        describe_ngram(m.smoothing, m.order, vocab).name: partial(_ngram_writer, m, vocab) for m in highest.values()
    }


def _ngram_writer(model: NGramModel, vocab: Vocab) -> Writer:
    """Return an n-gram model as a writer; it uses only the temperature of a sampling config."""

    def go_on(prefixes: list[list[int]], num_preds: int, choice: SamplingConfig, seed: int) -> list[list[int]]:
        rng = np.random.default_rng(seed)
        return [sample_ngrams(model, prefix, num_preds, choice.temperature, rng) for prefix in prefixes]

    return Writer(describe_ngram(model.smoothing, model.order, vocab).name, vocab, go_on)


def encode_prefix(vocab: Vocab, prefix: str, on_unknown: str) -> list[int]:
    """Return the tokens of a prefix.

    ``on_unknown``: "error" raises DataError that names the first token which the
    vocabulary lacks; "unk" lets it stand as ``<unk>``.
    """
    tokens = vocab.tokenize(prefix)
    if not tokens:
        raise DataError(f"the prefix {prefix!r} holds no {vocab.kind}: give at least one")
    if on_unknown == "error" and (missing := [token for token in tokens if token not in vocab]):
        raise DataError(
            f"the {vocab.of_kind.noun} {missing[0]!r} of the prefix is not in the vocabulary: use --on-unknown unk"
        )
    return [int(index) for index in vocab.encode(tokens)]
