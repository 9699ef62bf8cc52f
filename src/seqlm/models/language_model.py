"""The interface of a trained model: it scores text, returns surprisals, and generates text.

Every model offers two things, from which all others follow: the surprisals of a whole stream of tokens, and a reader
that gives the distribution of the next token after each token that it has read.
"""

import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seqlm.core.elementary import exp, log
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.metrics import Nll
from seqlm.core.progress import quantity
from seqlm.core.settings import Seed, check
from seqlm.heldout.scored_text import Ids, Stream
from seqlm.heldout.selection import encode_text
from seqlm.models.units import TokensInText, anchors, unit_bits, unit_texts
from seqlm.preprocess.cleaning import DecodingReport, clean_text
from seqlm.preprocess.preparing import decoding_warnings
from seqlm.score.metrics import summarise
from seqlm.score.model_info import ModelInfo
from seqlm.score.settings import SPACES, UNITS, By, Space
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:
    import pandas as pd


_COLDEST = float(np.finfo(np.float64).tiny)
_NOT_KEPT = re.compile(r"[^A-Za-z\s]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NumPreds = Annotated[int, Field(ge=1)]
_SAMPLING: dict[str, Any] = {
    "temperature": Annotated[float, Field(ge=0)],
    "top_k": Annotated[int, Field(ge=1)] | None,
    "top_p": Annotated[float, Field(gt=0, le=1)] | None,
}


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
        for name, kind in _SAMPLING.items():
            object.__setattr__(self, name, check(getattr(self, name), name, kind, source="generate"))

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
    nll: float
    """-log p of them all in nats, without the cost of spelling unknown tokens."""
    bits_per_character: float
    """With the cost of spelling unknown tokens."""
    perplexity: float
    """Per token of the model's own kind."""
    unknown_share: float
    remarks: tuple[str, ...] = ()
    """What cleaning changed in the text, in sentences; empty if that is not worth a word."""


@dataclass(frozen=True)
class ScoredTokens:
    """A text as tokens of a model, with their surprisals."""

    text: TokensInText
    stream: Stream
    nll: Nll
    """-log p of tokens 2 to N in nats, without the cost of spelling unknown ones."""
    remarks: tuple[str, ...] = ()
    """What cleaning changed in the text."""

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What :func:`~seqlm.score.store.summarise` returns."""
        return summarise(self.nll, self.stream)

    @cached_property
    def bits(self) -> NDArray[np.float64]:
        """The surprisal of each token with the cost of its spelling; nan for the first, which is not scored."""
        return np.concatenate([[math.nan], self.stream.with_unknown_cost(self.nll) / math.log(2)])

    def score(self) -> TextScore:
        """Return the figures that sum up the surprisals."""
        bits, perplexity = (
            math.inf if self.metrics[name] is None else float(self.metrics[name])
            for name in ("bits_per_character", "perplexity")
        )
        nll, unknown = float(self.nll.sum()), self.stream.unknown_share
        return TextScore(len(self.nll), nll, bits, perplexity, unknown, self.remarks)


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

        Raises DataError if it has fewer than two tokens, and as :func:`clean_with_remarks` does.
        """
        cleaned, remarks = clean_with_remarks(text, self.vocab.normalise)
        return replace(self.score_cleaned(cleaned), remarks=tuple(remarks))

    def score_cleaned(self, text: str) -> ScoredTokens:
        """Return what :meth:`score_tokens` does for a text that is clean already."""
        stream, tokens = self.encode(text)
        if len(tokens.tokens) < 2:
            number = quantity(len(tokens.tokens), self.vocab.token_kind.noun)
            raise DataError(f"{self.name}: the text has only {number}: use a longer text")
        return ScoredTokens(tokens, stream, stream.nll(self.token_nll))

    def score(self, text: str) -> TextScore:
        """Return how well the model predicts a text, which is cleaned like the corpus first.

        The ``remarks`` of the result say what cleaning changed. Raises as :meth:`score_tokens` does.
        """
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
        ``on_unknown`` is ``unk``. Raises DataError if it is ``error``, and if the prefix has no token, and ParamsError
        for a number of tokens below 1 or a seed outside 0 to 2**32 - 1.
        """
        return self.generate_batch([prefix], num_preds, SamplingConfig(temperature, top_k, top_p), seed, on_unknown)[0]

    def generate_batch(
        self, prefixes: Sequence[str], num_preds: int, sampling: SamplingConfig, seed: int, on_unknown: str = "error"
    ) -> list[str]:
        """Return the text that follows each prefix, including the space before a word.

        Raises DataError and ParamsError as :meth:`generate` does.
        """
        num_preds = check(num_preds, "num_preds", _NumPreds, source="generate")
        seed = check(seed, "seed", Seed, source="generate")
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
    ``<unk>``. Also raises as :func:`require_text` does.
    """
    tokens = vocab.tokenize(require_text(prefix, "the prefix"))
    if not tokens:
        raise DataError(f"the prefix {prefix!r} contains no {vocab.token_kind.noun}: give at least one")
    if on_unknown not in ("error", "unk"):
        raise ParamsError(f"on_unknown = {on_unknown!r}: must be error or unk")
    if on_unknown == "error" and (unknown := [token for token in tokens if token not in vocab]):
        raise DataError(
            f"the {vocab.token_kind.noun} {unknown[0]!r} of the prefix is not in the vocabulary: change the prefix, or "
            "set on_unknown to unk"
        )
    return [int(index) for index in vocab.encode(tokens)]


def require_text(value: object, what: str) -> str:
    """Return a text. Raises ParamsError if it is none, and DataError for half a character, which no file can hold."""
    if not isinstance(value, str):
        raise ParamsError(f"{what} must be a string, not {type(value).__name__}")
    if found := _SURROGATE.search(value):
        raise DataError(f"{what} has half a character, {found[0]!r}, at position {found.start()}: remove or replace it")
    return value


def clean_with_remarks(text: str, normalise: str, num_replaced: int = 0) -> tuple[str, list[str]]:
    """Return a text cleaned like the corpus, and what a user should know about that.

    ``num_replaced``: byte sequences that were replaced when the text was decoded. Raises as :func:`require_text` does.
    """
    cleaned, report, remarks = clean_text(require_text(text, "the text"), normalise), DecodingReport(num_replaced), []
    if normalise == "letters":
        replaced = _NOT_KEPT.findall(unicodedata.normalize("NFC", text))
        report.foreign_letters = sum(map(str.isalpha, replaced))
        report.letters = sum(map(str.isalpha, cleaned)) + report.foreign_letters
        if replaced:
            number = quantity(len(replaced), "character")
            remarks = [f"cleaned like the corpus, by preprocess.normalise: spaces replace {number} other than A-Z"]
    return cleaned, remarks + decoding_warnings(report, normalise)
