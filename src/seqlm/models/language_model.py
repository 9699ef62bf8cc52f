"""The interface of a trained model: it scores text, returns surprisals, and generates text.

Every model offers two things, from which all others follow: the surprisals of a whole stream of tokens, and a reader
that gives the distribution of the next token after each token that it has read.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp, log
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.metrics import Nll
from seqlm.core.progress import quantity
from seqlm.heldout.scored_text import Ids, Stream
from seqlm.heldout.selection import encode_text
from seqlm.models.units import TokensInText, anchors, unit_bits, unit_texts
from seqlm.preprocess.cleaning import clean_text
from seqlm.score.metrics import summarise
from seqlm.score.model_info import ModelInfo
from seqlm.score.settings import SPACES, UNITS, By, Space
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:
    import pandas as pd


_COLDEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class SamplingConfig:
    """How a token is chosen.

    With ``temperature`` 0 it is the most likely one; otherwise it is drawn from q proportional to p to the power
    1 / temperature (exercise 8.5-3 with alpha = 1 / temperature). ``top_k`` keeps the k most likely tokens; ``top_p``
    keeps the smallest set of most likely tokens that has this much probability (nucleus).
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        """Raise ParamsError for settings that choose no token."""
        is_valid_k, is_valid_p = self.top_k is None or self.top_k >= 1, self.top_p is None or 0 < self.top_p <= 1
        if not (self.temperature >= 0 and is_valid_k and is_valid_p):
            raise ParamsError(f"{self}: temperature must be at least 0, top_k at least 1, and top_p in (0, 1]")

    def pick(self, probs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return one token for each row of ``probs`` (B, V), shape ``(B,)``.

        ``<unk>``, token 0, is never chosen, because it is no text.
        """
        allowed = probs[:, 1:]
        if self.temperature == 0:
            return np.asarray(allowed.argmax(1) + 1)
        logs = log(allowed)
        # Relative to the largest, so that no temperature, however low, makes a number too large.
        with np.errstate(over="ignore"):
            weights = exp((logs - logs.max(1, keepdims=True)) / max(self.temperature, _COLDEST))
        if self.top_k is not None and self.top_k < weights.shape[1]:
            weights[weights < np.partition(weights, -self.top_k, axis=1)[:, -self.top_k, None]] = 0
        if self.top_p is not None:
            order = np.argsort(-weights, axis=1, kind="stable")
            ordered = np.take_along_axis(weights, order, 1)
            # A token stays while those before it have less than top_p: the first one always does.
            before = np.cumsum(ordered, 1) - ordered
            ordered[before >= self.top_p * ordered.sum(1, keepdims=True)] = 0
            np.put_along_axis(weights, order, ordered, 1)
        cumulative = np.cumsum(weights, 1)
        total = cumulative[:, -1:]
        drawn = np.minimum(rng.random((len(weights), 1)) * total, np.nextafter(total, 0))
        return np.asarray((cumulative > drawn).argmax(1) + 1)


Probs = NDArray[np.float64]


class Reader(ABC):
    """Reads B texts at the same time, token by token."""

    @abstractmethod
    def read(self, tokens: Ids) -> None:
        """Read the next token of each text, shape ``(B,)``."""

    @abstractmethod
    def next_probs(self) -> Probs:
        """Return p of every token after what was read, at least one token, shape ``(B, V)``."""


class RowReader(ABC):
    """Reads one text, token by token."""

    @abstractmethod
    def read(self, token: int) -> None:
        """Read the next token."""

    @abstractmethod
    def next_probs(self) -> Probs:
        """Return p of every token after what was read, at least one token, shape ``(V,)``."""


class RowwiseReader(Reader):
    """Texts that are read by a reader each."""

    def __init__(self, readers: Sequence[RowReader]) -> None:
        """Take a reader for each text."""
        self._readers = readers

    def read(self, tokens: Ids) -> None:
        """Read the next token of each text."""
        for reader, token in zip(self._readers, tokens.tolist(), strict=True):
            reader.read(token)

    def next_probs(self) -> Probs:
        """Return p of every token after what was read."""
        return np.stack([reader.next_probs() for reader in self._readers])


class TextScore(NamedTuple):
    """How well a model predicts a text: the figures of the main table."""

    tokens: int
    """Scored tokens. The first token of a text is not scored."""
    nats: float
    """Their total surprisal, without the cost of spelling unknown tokens."""
    bits_per_character: float
    """With the cost of spelling unknown tokens."""
    perplexity: float
    """Per token of the model's own kind."""
    unknown_share: float


@dataclass(frozen=True)
class ScoredTokens:
    """A text as tokens of a model, with their surprisals."""

    text: TokensInText
    stream: Stream
    nats: Nll
    """Surprisals of tokens 2 to N, without the cost of spelling unknown ones."""

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What :func:`~seqlm.score.store.summarise` returns."""
        return summarise(self.nats, self.stream)

    @cached_property
    def bits(self) -> NDArray[np.float64]:
        """The surprisal of each token with the cost of its spelling; nan for the first, which is not scored."""
        return np.concatenate([[math.nan], self.stream.with_unknown_cost(self.nats) / math.log(2)])

    def score(self) -> TextScore:
        """Return the figures that sum up the surprisals."""
        bits, perplexity = (
            math.inf if self.metrics[name] is None else float(self.metrics[name])
            for name in ("bits_per_character", "perplexity")
        )
        return TextScore(len(self.nats), float(self.nats.sum()), bits, perplexity, self.stream.unknown_share)


class LanguageModel(ABC):
    """A trained model."""

    def __init__(self, info: ModelInfo, vocab: Vocab) -> None:
        """Take what the model is, and the vocabulary of the tokens that it predicts."""
        self.info, self.vocab = info, vocab

    def __repr__(self) -> str:
        learns = ", learns from what it reads" if self.info.dynamic else ""
        return f"<{self.info.name}: {self.info.family} over {self.info.token} tokens{learns}>"

    @property
    def name(self) -> str:
        """The model's name in the main table."""
        return self.info.name

    @abstractmethod
    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of tokens 2 to N of a stream, each given all tokens before it, shape ``(N - 1,)``."""

    @abstractmethod
    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts. That of a dynamic model learns from what it reads, for each text anew."""

    def encode(self, text: str) -> tuple[Stream, TokensInText]:
        """Return a cleaned text as a stream, and where its tokens are."""
        stream, tokens = encode_text(self.vocab, text)
        return stream, TokensInText(text, self.vocab, tokens, anchors(text, self.vocab, tokens))

    def score_tokens(self, text: str) -> ScoredTokens:
        """Return the tokens of a text, cleaned like the corpus, with their surprisals.

        Raises DataError if it has fewer than two tokens.
        """
        return self.score_cleaned(clean_text(text, self.vocab.normalise))

    def score_cleaned(self, text: str) -> ScoredTokens:
        """Return what :meth:`score_tokens` does for a text that is clean already."""
        stream, tokens = self.encode(text)
        if len(tokens.tokens) < 2:
            number = quantity(len(tokens.tokens), self.vocab.token_kind.noun)
            raise DataError(f"{self.name}: the text has only {number}: use a longer text")
        return ScoredTokens(tokens, stream, stream.nll(self.token_nll))

    def score(self, text: str) -> TextScore:
        """Return how well the model predicts a text, which is cleaned like the corpus first."""
        return self.score_tokens(text).score()

    def surprisals(self, text: str, by: By = "token", space: Space = "before") -> "pd.DataFrame":
        """Return the surprisal of each unit of a text in bits, with columns position, text, bits and unknown.

        ``by`` is the unit: token, char, word or line. ``space`` says where a blank belongs that is between two words or
        lines: ``before`` adds it to the one that it precedes, ``after`` to the one that it follows. ``bits`` include
        the cost of spelling unknown tokens, and their sum is the total of :meth:`score`. They are missing for a unit
        without a scored token. Raises ParamsError if the model's tokens cannot be divided into such units.
        """
        import pandas as pd

        if by not in UNITS or space not in SPACES:
            choice = f"by must be {', '.join(UNITS)}, and space {' or '.join(SPACES)}"
            raise ParamsError(f"by = {by!r}, space = {space!r}: {choice}")
        found = self.score_tokens(text)
        is_unknown = unit_bits(found.text, (found.stream.ids == 0).astype(np.float64), by, space) > 0
        columns = {"text": unit_texts(found.text, by), "bits": unit_bits(found.text, found.bits, by, space)}
        return pd.DataFrame(columns | {"unknown": is_unknown}).rename_axis("position").reset_index()

    def generate(
        self,
        prefix: str,
        num_preds: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        on_unknown: str = "error",
    ) -> str:
        """Return the ``num_preds`` tokens that follow a prefix as text, without the prefix.

        The options are those of :class:`SamplingConfig`. A token that the vocabulary lacks is read as ``<unk>`` if
        ``on_unknown`` is ``unk``. Raises DataError if it is ``error``, and if the prefix has no token.
        """
        return self.generate_batch([prefix], num_preds, SamplingConfig(temperature, top_k, top_p), seed, on_unknown)[0]

    def generate_batch(
        self, prefixes: Sequence[str], num_preds: int, sampling: SamplingConfig, seed: int, on_unknown: str = "error"
    ) -> list[str]:
        """Return the text that follows each prefix, including the space before a word.

        Raises DataError as :func:`encode_prefix` does.
        """
        encoded = [encode_prefix(self.vocab, prefix, on_unknown) for prefix in prefixes]
        rng, by_length, texts = np.random.default_rng(seed), dict[int, list[int]](), [""] * len(prefixes)
        for index, ids in enumerate(encoded):
            by_length.setdefault(len(ids), []).append(index)
        for indices in by_length.values():
            rows = np.array([encoded[index] for index in indices])
            for index, ids in zip(indices, self._continue(rows, num_preds, sampling, rng).tolist(), strict=True):
                texts[index] = self.vocab.token_kind.separator + self.vocab.join(self.vocab.decode(ids))
        return texts

    def _continue(self, prefixes: Ids, num_preds: int, sampling: SamplingConfig, rng: np.random.Generator) -> Ids:
        """Return the tokens ``(B, num_preds)`` that follow prefixes of one length, ``(B, T)``."""
        reader, chosen = self.reader(len(prefixes)), np.empty((len(prefixes), num_preds), np.int64)
        for tokens in prefixes.T:
            reader.read(tokens)
        for step in range(num_preds):
            chosen[:, step] = sampling.pick(reader.next_probs(), rng)
            if step < num_preds - 1:
                reader.read(chosen[:, step])
        return chosen


def encode_prefix(vocab: Vocab, prefix: str, on_unknown: str) -> list[int]:
    """Return the tokens of a prefix.

    ``on_unknown``: "error" raises DataError that names the first token which the vocabulary lacks; "unk" encodes it as
    ``<unk>``.
    """
    tokens = vocab.tokenize(prefix)
    if not tokens:
        raise DataError(f"the prefix {prefix!r} contains no {vocab.token_kind.noun}: give at least one")
    if on_unknown not in ("error", "unk"):
        raise ParamsError(f"on_unknown = {on_unknown!r}: must be error or unk")
    if on_unknown == "error" and (unknown := [token for token in tokens if token not in vocab]):
        raise DataError(
            f"the {vocab.token_kind.noun} {unknown[0]!r} of the prefix is not in the vocabulary: use --on-unknown unk "
            "(in Python, on_unknown='unk')"
        )
    return [int(index) for index in vocab.encode(tokens)]
