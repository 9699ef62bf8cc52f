"""Models that generate text: one interface to recurrent networks and n-gram models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from seqlm.core.elementary import exp, log
from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.registry import highest_orders
from seqlm.ngrams.models.storage import load_models
from seqlm.rnn.building import load_network
from seqlm.rnn.generation import SamplingConfig, continue_prefixes
from seqlm.score.model_info import describe_ngram
from seqlm.score.model_lookup import find_models
from seqlm.train.runs import read_config, run_names
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab

Continue = Callable[[list[list[int]], int, SamplingConfig, int], list[list[int]]]
"""From encoded prefixes, a number of tokens, how to choose them, and a seed to the tokens that follow each prefix."""


@dataclass(frozen=True)
class TextGenerator:
    """A trained model that continues prefixes."""

    name: str
    vocab: Vocab
    continue_ids: Continue

    def generate(
        self, prefixes: Sequence[str], num_preds: int, sampling: SamplingConfig, seed: int, on_unknown: str
    ) -> list[str]:
        """Return the text that follows each prefix, including the space before a word.

        Raises DataError if a prefix has a token that the vocabulary lacks, unless ``on_unknown`` is "unk".
        """
        encoded = [encode_prefix(self.vocab, prefix, on_unknown) for prefix in prefixes]
        separator = self.vocab.token_kind.separator
        continuations = self.continue_ids(encoded, num_preds, sampling, seed)
        return [separator + self.vocab.join(self.vocab.decode(ids)) for ids in continuations]


LazyGenerators = dict[str, Callable[[], TextGenerator]]
"""Name of a model -> a function that loads it."""


def find_generators(layout: Layout, device: torch.device, names: Sequence[str]) -> LazyGenerators:
    """Return the models with these names; by default all runs, and of each n-gram smoothing the highest order.

    Raises ParamsError if there is no such model.
    """
    return find_models(names, [lambda: _runs(layout, device), *(partial(_ngrams, layout, kind) for kind in KINDS)])


def _runs(layout: Layout, device: torch.device) -> LazyGenerators:
    return {run: partial(_network_generator, layout, run, device) for run in run_names(layout.configs)}


def _network_generator(layout: Layout, run: str, device: torch.device) -> TextGenerator:
    token = read_config(layout.config(run)).token
    network = load_network(layout.run(run), run, device)
    return TextGenerator(run, Vocab.load(layout.vocab(token), token), partial(continue_prefixes, network))


def _ngrams(layout: Layout, kind: Kind) -> LazyGenerators:
    vocab = Vocab.load(layout.vocab(kind), kind)
    models = highest_orders(load_models(layout.ngrams(kind), len(vocab)))
    return {describe_ngram(m.smoothing, m.order, vocab).name: partial(ngram_generator, m, vocab) for m in models}


def ngram_generator(model: NGramModel, vocab: Vocab) -> TextGenerator:
    """Return an n-gram model as a text generator; of a sampling config, it uses the temperature only."""

    def continue_ids(prefixes: list[list[int]], num_preds: int, sampling: SamplingConfig, seed: int) -> list[list[int]]:
        rng = np.random.default_rng(seed)
        return [sample_ngrams(model, prefix, num_preds, sampling.temperature, rng) for prefix in prefixes]

    return TextGenerator(describe_ngram(model.smoothing, model.order, vocab).name, vocab, continue_ids)


def encode_prefix(vocab: Vocab, prefix: str, on_unknown: str) -> list[int]:
    """Return the tokens of a prefix.

    ``on_unknown``: "error" raises DataError that names the first token which the vocabulary lacks; "unk" encodes it as
    ``<unk>``.
    """
    tokens = vocab.tokenize(prefix)
    if not tokens:
        raise DataError(f"the prefix {prefix!r} contains no {vocab.token_kind.noun}: give at least one")
    if on_unknown == "error" and (unknown := [token for token in tokens if token not in vocab]):
        raise DataError(
            f"the {vocab.token_kind.noun} {unknown[0]!r} of the prefix is not in the vocabulary: use --on-unknown unk"
        )
    return [int(index) for index in vocab.encode(tokens)]


def sample_ngrams(
    model: NGramModel, prefix: Sequence[int], num_preds: int, temperature: float, rng: np.random.Generator
) -> list[int]:
    """Return ``num_preds`` tokens that an n-gram model generates after a prefix; never ``<unk>``.

    With ``temperature`` 0 the most likely token is chosen; otherwise tokens are drawn from q proportional to p to the
    power 1 / temperature.
    """
    tokens = list(prefix)
    for _ in range(num_preds):
        probs = model.next_distribution(np.array(tokens[-max(model.order - 1, 1) :], np.int64)).copy()
        probs[0] = 0
        if temperature == 0:
            tokens.append(int(np.argmax(probs)))
            continue
        logs = log(probs)
        with np.errstate(over="ignore"):
            weights = exp((logs - logs.max()) / temperature)
        tokens.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return tokens[len(prefix) :]
