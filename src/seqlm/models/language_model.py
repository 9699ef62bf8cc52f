"""The interface of a trained model: it scores text, returns surprisals, and generates text.

Every model offers two things, from which all others follow: the surprisals of a whole stream of tokens, and a reader
that gives the distribution of the next token after each token that it has read.
"""

import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seqlm.core.elementary import exp, log
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.metrics import Nll, bits_per_character, perplexity
from seqlm.core.progress import quantity
from seqlm.core.settings import Seed, check
from seqlm.heldout.scored_text import Ids, Stream, stream_of
from seqlm.heldout.selection import encode_text
from seqlm.models.generating import GrowingText, check_stop
from seqlm.models.requests import Texts, are_several, read_request, require_text, strings
from seqlm.models.units import ReadText, ScoredUnits, Spans, TokensInText, Units, check_units
from seqlm.preprocess.cleaning import CleanedText, Letters, clean_text
from seqlm.preprocess.preparing import decoding_warnings
from seqlm.score.metrics import summarise
from seqlm.score.model_info import ModelInfo
from seqlm.score.settings import By, Space
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:
    import pandas as pd


_COLDEST = float(np.finfo(np.float64).tiny)
_NOT_KEPT = re.compile(r"[^A-Za-z\s]")
_BLANKS = (" ", "\n", "\r")
"""What separates words, in texts that are not cleaned too."""
_AtLeastOne = Annotated[int, Field(ge=1)]
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
    """A text as tokens of a model, with their surprisals.

    If something was read before the text, its last token is the first one here.
    """

    read: ReadText
    text: TokensInText
    stream: Stream
    nll: Nll
    """-log p of tokens 2 to N in nats, without the cost of spelling unknown ones."""
    num_context: int = 0
    """How many of the tokens belong to what was read before the text: 0 or 1."""

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What :func:`~seqlm.score.metrics.summarise` returns."""
        return summarise(self.nll, self.stream)

    def units(self, by: By, space: Space, words: Spans | None = None) -> Units:
        """Return the units of the text with their bits, which include the cost of spelling unknown tokens.

        ``words``: where the words are in the original, if white space does not separate them. Raises ParamsError if the
        model's tokens cannot be divided into such units.
        """
        bits = np.concatenate([[math.nan], self.stream.with_unknown_cost(self.nll) / math.log(2)])
        is_unknown = self.stream.ids == 0
        scored = ScoredUnits(self.read, self.text, bits[: len(is_unknown)], is_unknown, self.num_context)
        return scored.units(by, space, words)

    @property
    def num_own(self) -> int:
        """The number of tokens of the text itself."""
        return len(self.text.tokens) - self.num_context if self.read.has_text else 0

    def score(self, remarks: Sequence[str] = ()) -> TextScore:
        """Return the figures that sum up the surprisals, with remarks on the cleaning of the text."""
        number, nll = len(self.nll), float(self.nll.sum())
        with_spelling = float(self.stream.with_unknown_cost(self.nll).sum())
        bits = bits_per_character(with_spelling, max(self.stream.scored_chars, 1))
        each = perplexity(nll, max(number, 1))
        bits, each = (figure if math.isfinite(figure) else math.inf for figure in (bits, each))
        return TextScore(number, nll, bits, each, self.stream.unknown_share, tuple(remarks))


class GenerateOptions(TypedDict, total=False):
    """The types of the options that every form of :meth:`LanguageModel.generate` takes."""

    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int
    on_unknown: str
    stop: str | Texts | None


class LanguageModel(ABC):
    """A trained model."""

    def __init__(self, info: ModelInfo, vocab: Vocab) -> None:
        """Take what the model is, and the vocabulary of the tokens that it predicts."""
        self.info, self.vocab = info, vocab
        self.opened_by: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        """A function that opens the model again, and its arguments, for pickling."""

    def __repr__(self) -> str:
        learns = ", learns from what it reads" if self.info.dynamic else ""
        return f"<{self.info.name}: {self.info.family} over {self.info.token} tokens{learns}>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle where the model was opened. Raises ParamsError if it was not opened from a file."""
        if self.opened_by is None:
            raise ParamsError(f"{self.name} cannot be pickled, because it is in no file: save it and open that file")
        return self.opened_by

    @property
    def name(self) -> str:
        """The model's name in the main table."""
        return self.info.name

    @abstractmethod
    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of tokens 2 to N of a stream, each given all tokens before it, shape ``(N - 1,)``."""

    def texts_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return what :meth:`token_nll` does for each of some texts, together where that is faster."""
        return [self.token_nll(ids) for ids in texts]

    @abstractmethod
    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts. That of a dynamic model learns from what it reads, for each text anew."""

    def encode(self, text: str, *, with_separators: bool = True) -> tuple[Stream, TokensInText]:
        """Return a cleaned text as a stream, and where its tokens are.

        ``with_separators``: with what the separators between words would cost, which takes some time.
        """
        stream, tokens = encode_text(self.vocab, text, with_separators=with_separators)
        return stream, TokensInText(text, self.vocab, tokens)

    def score_tokens(self, text: str, context: str | None = None, *, score_first: bool = False) -> ScoredTokens:
        """Return the tokens of a text, cleaned like the corpus, with their surprisals.

        The arguments and the errors are those of :meth:`score`.
        """
        read = self._read_text(text, context, score_first=score_first)
        return self.score_read([read], score_first=score_first, with_separators=True)[0]

    def score_read(
        self,
        texts: Sequence[ReadText],
        *,
        score_first: bool = False,
        with_separators: bool = False,
        allow_short: bool = False,
    ) -> list[ScoredTokens]:
        """Return what :meth:`score_tokens` does for texts that are clean already.

        ``with_separators`` as in :meth:`encode`. Raises DataError for a text without a scored token, unless such texts
        are allowed.
        """
        encoded = [self.encode(read.text, with_separators=with_separators) for read in texts]
        inputs, scored = [stream.input_ids for stream, _ in encoded], list[ScoredTokens]()
        all_nll = self.texts_nll(inputs) if len(inputs) > 1 else [self.token_nll(ids) for ids in inputs]
        for number, (read, (stream, tokens), nll) in enumerate(zip(texts, encoded, all_nll, strict=True)):
            nll = nll[stream.is_scored[1:]]
            found = ScoredTokens(read, tokens, stream, nll)
            if read.begin:
                found = _without_context(found)
            if score_first and not found.num_context and len(tokens.tokens) and tokens.known_anchors is None:
                found = self._with_first(found)
            if not (len(found.nll) and found.num_own) and not allow_short:
                number_of_tokens = quantity(found.num_own, self.vocab.token_kind.noun)
                which = "the text" if len(texts) == 1 else f"text {number}"
                raise DataError(f"{self.name}: {which} has only {number_of_tokens}: use a longer text")
            scored.append(found)
        return scored

    def _read_text(
        self, text: object, context: object, space: Space = "before", *, score_first: bool = False
    ) -> ReadText:
        """Return a text, and what the model reads before it. Raises as :func:`require_text` does."""
        text, normalise = require_text(text, "the text"), self.vocab.normalise
        before = "" if context is None else require_text(context, "the context")
        if before and clean_text(before, normalise).strip():
            before += "" if before.endswith(_BLANKS) or text.startswith(_BLANKS) else " "
            return ReadText(CleanedText(before + text, normalise), len(before), scores_blank=space == "before")
        cleaned = CleanedText(text, normalise)
        if not (score_first and self.vocab.token_kind.is_lossless):
            return ReadText(cleaned)
        if self.vocab.token_kind.is_character and " " not in self.vocab:
            raise ParamsError(f"{self.name}: train has no space, after which a text could begin: give a context")
        # A subword includes the space before it.
        return ReadText(cleaned, num_blanks=1 if self.vocab.token_kind.is_character else 2)

    def _with_first(self, found: ScoredTokens) -> ScoredTokens:
        """Return a text whose first token is scored too, by the distribution of a token after nothing.

        Raises ParamsError if the model has no such distribution.
        """
        try:
            probs = self.reader().next_probs()[0]
        except ParamsError as error:
            raise ParamsError(f"{self.name}: has no probability of a first word: give a context") from error
        stream, tokens = found.stream, found.text
        nothing = np.zeros(1, np.int64)
        whole = stream_of(
            np.append(nothing, stream.ids),
            np.append(0.0, stream.unknown_costs),
            np.append(nothing, stream.ends),
            len(found.read.text.replace("\n", self.vocab.line_separator)),
        )
        text = TokensInText(tokens.text, tokens.vocab, ["", *tokens.tokens], np.append(nothing, tokens.anchors))
        nll = np.append(-log(probs[stream.ids[:1]]), found.nll)
        return replace(found, text=text, stream=whole, nll=nll, num_context=1)

    @overload
    def score(self, text: str, *, context: str | None = None, score_first: bool = False) -> TextScore: ...

    @overload
    def score(
        self, text: Texts, *, context: str | Texts | None = None, score_first: bool = False
    ) -> list[TextScore]: ...

    def score(
        self, text: str | Texts, *, context: str | Texts | None = None, score_first: bool = False
    ) -> TextScore | list[TextScore]:
        """Return how well the model predicts a text, which is cleaned like the corpus first.

        The ``remarks`` of the result say what cleaning changed. A list of texts gives a list of scores, each as if the
        text were alone, but computed together, which is much faster.

        ``context`` is text that the model reads first, without being scored on it: one for all texts, or a list with
        one for each. A space between context and text, if neither has one there, is added and scored.

        Without a context, the first token is not scored, unless ``score_first`` is set: a character or subword is then
        scored as if it followed a space, a word as one without a known context. A network over words predicts nothing
        before it has read a word. Models from ARPA files with sentence marks score the first word anyway.

        Raises DataError for a text without a scored token, and ParamsError for anything but strings and for
        ``score_first`` where a model has no such probability.
        """
        alone = not are_several(text)
        texts = [require_text(text, "the text")] if alone else strings(text, "the text")
        reads = [
            self._read_text(each, before, score_first=score_first)
            for each, before in zip(texts, _contexts(context, len(texts)), strict=True)
        ]
        scored = [
            found.score(cleaning_remarks(each, self.vocab.normalise))
            for each, found in zip(texts, self.score_read(reads, score_first=score_first), strict=True)
        ]
        return scored[0] if alone else scored

    def surprisals(
        self,
        text: str | Texts | None = None,
        by: By | None = None,
        space: Space = "before",
        *,
        words: Iterable[str] | Iterable[Iterable[str]] | None = None,
        groups: Iterable[object] | None = None,
        context: str | Texts | None = None,
        score_first: bool = False,
    ) -> "pd.DataFrame":
        """Return a table of the surprisals of a text in bits, with a row for each of its units.

        ``by`` is the unit: token (the default), char, word or line. ``space`` says where a blank belongs that is
        between two words or lines: ``before`` adds it to the one that it precedes, ``after`` to the one that it
        follows. Words are what white space separates in the text as it was given.

        The columns are ``position``; ``text``, the unit after cleaning; ``original``, the unit as it was given, and
        its ``start`` and ``end`` in the original text, in characters; ``bits``, which include the cost of spelling
        unknown tokens and add up to the total of :meth:`score`; ``unknown``; and ``reason``. It says why bits are
        missing, for example because cleaning removed the word, or that they lack those of the first token. All
        characters that no row has are white space.

        ``words`` gives the words themselves, in place of the text: the table has one row for each, in their order. They
        are joined by spaces, unless the text is given too. ``groups`` has a label for each word, such as the number of
        its sentence; words of one group are a text of their own. If the words are a column of a table of pandas, the
        result has the index of this table.

        A list of texts, a list of lists of words, and groups give one table with the column ``group`` first: the number
        of the text, or the label. Here a text may have no scored token. ``context`` and ``score_first`` are those of
        :meth:`score`; if there are groups, a list of contexts has one for each group, in the order in which they begin.

        Raises ParamsError if the model's tokens cannot be divided into such units, and if the text does not have the
        given words; and as :meth:`score` does.
        """
        request = read_request(text, words, groups)
        if by is None:
            by = "token" if words is None else "word"
        if words is not None and by != "word":
            raise ParamsError(f"by = {by!r}: with words it must be word")
        check_units(self.vocab, by, space)
        reads = [
            self._read_text(each, before, space, score_first=score_first)
            for each, before in zip(request.texts, _contexts(context, len(request.texts)), strict=True)
        ]
        spans: Sequence[Spans | None] = [None] * len(reads) if request.words is None else request.words
        scored = self.score_read(reads, score_first=score_first, allow_short=True)
        return request.table([found.units(by, space, places) for found, places in zip(scored, spans, strict=True)])

    @overload
    def generate(
        self, prefix: str, num_preds: int = 100, *, num_samples: None = None, **options: Unpack[GenerateOptions]
    ) -> str: ...

    @overload
    def generate(
        self, prefix: str, num_preds: int = 100, *, num_samples: int, **options: Unpack[GenerateOptions]
    ) -> list[str]: ...

    @overload
    def generate(
        self, prefix: Texts, num_preds: int = 100, *, num_samples: None = None, **options: Unpack[GenerateOptions]
    ) -> list[str]: ...

    def generate(
        self,
        prefix: str | Texts,
        num_preds: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        on_unknown: str = "error",
        stop: str | Texts | None = None,
        num_samples: int | None = None,
    ) -> str | list[str]:
        """Return the ``num_preds`` tokens that follow a prefix as text, without the prefix.

        The options are those of :class:`SamplingConfig`. A list of prefixes gives a list of texts, and ``num_samples``
        a list of that many texts after one prefix. The text ends before the first ``stop`` string, if one comes. A
        token that the vocabulary lacks is read as ``<unk>`` if ``on_unknown`` is ``unk``. Raises DataError if it is
        ``error``, and if a prefix has no token, and ParamsError for a number of tokens or samples below 1, a seed
        outside 0 to 2**32 - 1, and other values that make no sense.
        """
        sampling = SamplingConfig(temperature, top_k, top_p)
        alone = not are_several(prefix)
        prefixes = [require_text(prefix, "the prefix")] if alone else strings(prefix, "the prefix")
        if num_samples is not None:
            if not alone:
                raise ParamsError("generate: num_samples is for one prefix: repeat the prefixes of a list instead")
            prefixes *= check(num_samples, "num_samples", _AtLeastOne, source="generate")
        texts = self.generate_batch(prefixes, num_preds, sampling, seed, on_unknown, stop)
        return texts[0] if alone and num_samples is None else texts

    def generate_tokens(
        self,
        prefix: str,
        num_preds: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        on_unknown: str = "error",
        stop: str | Texts | None = None,
    ) -> Iterator[str]:
        """Yield the text that :meth:`generate` returns in parts, as tokens come.

        A part is the text of a token, or of several if a character has more than one or a stop string may have begun.
        Raises as :meth:`generate` does, at once.
        """
        sampling, text = SamplingConfig(temperature, top_k, top_p), GrowingText(self.vocab, check_stop(stop))
        ids = np.array([encode_prefix(self.vocab, prefix, on_unknown)])
        steps = self._continue(ids, *_checked(num_preds, seed), sampling)

        def parts() -> Iterator[str]:
            for (token,) in steps:
                if part := text.add(int(token)):
                    yield part
                if text.ended:
                    return
            if part := text.rest():
                yield part

        return parts()

    def generate_batch(
        self,
        prefixes: Sequence[str],
        num_preds: int,
        sampling: SamplingConfig,
        seed: int,
        on_unknown: str = "error",
        stop: str | Texts | None = None,
    ) -> list[str]:
        """Return the text that follows each prefix, including the space before a word.

        Prefixes with equally many tokens are continued together. Raises DataError and ParamsError as :meth:`generate`
        does.
        """
        stops, (num_preds, rng) = check_stop(stop), _checked(num_preds, seed)
        encoded = [encode_prefix(self.vocab, prefix, on_unknown) for prefix in prefixes]
        by_length, texts = dict[int, list[int]](), [""] * len(prefixes)
        for index, ids in enumerate(encoded):
            by_length.setdefault(len(ids), []).append(index)
        for indices in by_length.values():
            growing = [GrowingText(self.vocab, stops) for _ in indices]
            for chosen in self._continue(np.array([encoded[index] for index in indices]), num_preds, rng, sampling):
                for index, text, token in zip(indices, growing, chosen.tolist(), strict=True):
                    if not text.ended:
                        texts[index] += text.add(token)
                if all(text.ended for text in growing):
                    break
            for index, text in zip(indices, growing, strict=True):
                texts[index] += text.rest()
        return texts

    def _continue(
        self, prefixes: Ids, num_preds: int, rng: np.random.Generator, sampling: SamplingConfig
    ) -> Iterator[Ids]:
        """Yield the next tokens ``(B,)`` after prefixes of one length, ``(B, T)``, ``num_preds`` times."""
        reader = self.reader(len(prefixes))
        for tokens in prefixes.T:
            reader.read(tokens)
        for step in range(num_preds):
            chosen = sampling.pick(reader.next_probs(), rng)
            yield chosen
            if step < num_preds - 1:
                reader.read(chosen)


def _checked(num_preds: int, seed: int) -> tuple[int, np.random.Generator]:
    """Return a number of tokens, and a generator of random numbers. Raises ParamsError as ``generate`` does."""
    number = check(num_preds, "num_preds", _AtLeastOne, source="generate")
    return number, np.random.default_rng(check(seed, "seed", Seed, source="generate"))


def _without_context(found: ScoredTokens) -> ScoredTokens:
    """Return the scored tokens of a text without those of its context, except for the last one of these."""
    read, tokens = found.read, found.text
    begin = read.begin if tokens.vocab.token_kind.is_lossless else read.first
    if (first := int(np.count_nonzero(tokens.anchors < begin))) == 0:
        return found
    chars = len(read.text[read.begin :].replace("\n", tokens.vocab.line_separator))
    if tokens.known_anchors is not None:
        chars += 1  # the end of the last line
    stream = found.stream.since(first - 1, chars)
    return replace(
        found, text=replace(tokens, first=first - 1), stream=stream, nll=found.nll[first - 1 :], num_context=1
    )


def _contexts(context: object, number: int) -> Sequence[object]:
    """Return the context of each of some texts. Raises ParamsError if there are more or fewer."""
    if not are_several(context):
        return [context] * number
    found = strings(context, "the context")
    if len(found) != number:
        raise ParamsError(f"there are {quantity(number, 'text')}, but {len(found)} contexts: give one for each, or one")
    return found


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


def cleaning_remarks(text: str, normalise: str) -> list[str]:
    """Return what a user should know about the cleaning of a text."""
    if normalise == "letters" and (replaced := _NOT_KEPT.findall(unicodedata.normalize("NFC", text))):
        number = quantity(len(replaced), "character")
        remark = f"cleaned like the corpus, by preprocess.normalise: spaces replace {number} other than A-Z"
        return [remark, *decoding_warnings(Letters.of(text), normalise)]
    return []
