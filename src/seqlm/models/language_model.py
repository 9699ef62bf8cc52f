"""The interface of a trained model: it scores text, returns surprisals, and generates text.

Every model offers two things, from which all others follow: the surprisals of a whole stream of
tokens, and a reader that gives the distribution of the next token after each token that it has
read.
"""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seqlm.core.elementary import exp, log
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.progress import count_noun
from seqlm.core.settings import Seed, check_argument
from seqlm.models.info import ModelInfo
from seqlm.models.saving import save
from seqlm.models.scored_text import Ids
from seqlm.models.surprisals import (
    By,
    EncodedText,
    Score,
    Space,
    Texts,
    TextSurprisals,
    contexts,
    is_collection,
    read_request,
    require_text,
    split_words,
    strings,
)
from seqlm.preprocess.cleaning import Letters, clean_text, decoding_warnings
from seqlm.vocab.separators import BLANKS, Separators, count_separators
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:
    import pandas as pd

_NOT_KEPT = re.compile(r"[^A-Za-z\s]")
_WORD = re.compile("[^ \n]+")
_AtLeastOne = Annotated[int, Field(ge=1)]
_OPTIONS: dict[str, Any] = {
    "num_preds": _AtLeastOne,
    "temperature": Annotated[float, Field(ge=0)],
    "top_k": _AtLeastOne | None,
    "top_p": Annotated[float, Field(gt=0, le=1)] | None,
    "seed": Seed,
}
"""What :meth:`LanguageModel.generate` accepts."""
_COLDEST = float(np.finfo(np.float64).tiny)
Probs = NDArray[np.float64]


class Reader(ABC):
    """Reads a text, token by token."""

    @abstractmethod
    def read(self, token: int) -> None:
        """Read the next token, an id of the vocabulary, which is not checked."""

    @abstractmethod
    def next_probs(self) -> Probs:
        """Return p of every token after what was read, shape ``(V,)``.

        Raises ParamsError before the first token if the model has no such distribution.
        """


class GenerateOptions(TypedDict, total=False):
    """The types of the options that every form of :meth:`LanguageModel.generate` takes."""

    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int


class LanguageModel(ABC):
    """A trained model."""

    def __init__(self, info: ModelInfo, vocab: Vocab) -> None:
        """Take what the model is, and the vocabulary of the tokens that it predicts."""
        self.info, self.vocab = info, vocab
        self.opener: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        """A function that opens the model again, and its arguments, for pickling."""
        self.source_files: tuple[Path, Sequence[Path]] | None = None
        """The folder that the model was opened from, and the files in it that it needs."""

    def __repr__(self) -> str:
        learns = ", learns from what it reads" if self.info.dynamic else ""
        return f"<{self.info.name}: {self.info.family} over {self.info.token} tokens{learns}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Pickle where the model was opened; a model that was opened nowhere is pickled itself."""
        return self.opener or super().__reduce_ex__(protocol)

    @property
    def name(self) -> str:
        """The model's name in the main table."""
        return self.info.name

    def token_nll(self, ids: Ids | Sequence[int]) -> Nll:
        """Return -log p of tokens 2 to N of a stream, each given all tokens before it, shape ``(N -
        1,)``.

        A dynamic model predicts each token before it learns from it. Raises ParamsError for
        anything but indices of tokens.
        """
        last = len(self.vocab) - 1
        try:
            found = np.asarray(ids)
        except ValueError:  # lists of different lengths
            found = np.empty((0, 0))
        if found.shape == (0,):
            return np.empty(0)
        if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() > last:
            raise ParamsError(f"{self.name}: tokens must be a list of integers from 0 to {last:,}")
        return self._token_nll(found)

    @abstractmethod
    def _token_nll(self, ids: Ids) -> Nll:
        """Return what :meth:`token_nll` does; ``ids`` were checked, and are not empty."""

    def batch_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return what :meth:`token_nll` does for each of some texts, together where that is
        faster."""
        return [self._token_nll(ids) for ids in texts]

    @abstractmethod
    def reader(self) -> Reader:
        """Return a reader of a new text. That of a dynamic model learns from what it reads."""

    def write(self, layout: Layout) -> None:  # noqa: ARG002 (for other models)
        """Write the files that the model needs to the folder of a run. Raises ParamsError if it has
        none to write."""
        raise ParamsError(f"{self.name}: holds nothing to save")

    def save(self, folder: str | Path) -> None:
        """Write the model to a new folder, from which ``seqlm.open(folder)[name]`` reads it.

        Raises ParamsError if the folder exists and is not empty, or if the model holds nothing to
        save.
        """
        save(folder, [self])

    # A text is read after a context or, without one, as if it followed a separator.

    @cached_property
    def _beginning(self) -> str:
        """What is read before a text without a context. A subword includes the space before it, so
        it is read twice."""
        if not self.vocab.token_kind.is_character:
            return "  " if self.vocab.token_kind.is_lossless else ""
        return self.vocab.blank

    @cached_property
    def _first_nll(self) -> Nll:
        """-log p of each token after nothing; nan if the model has no such distribution."""
        try:
            return -log(self.reader().next_probs())
        except ParamsError:
            return np.full(len(self.vocab), np.nan)

    def encode(self, read: str, text: str) -> EncodedText:
        """Return a cleaned text as tokens, after one that is only read."""
        vocab, separator, separator_nll = self.vocab, self.vocab.line_separator, 0.0
        tokens, is_character = vocab.tokenize(read + text), vocab.token_kind.is_character
        lengths = np.ones(len(tokens), np.int64) if is_character else vocab.lengths(tokens)
        if vocab.token_kind.is_lossless:
            is_scored = np.cumsum(lengths) > len(read.replace("\n", separator))
        else:
            is_scored = np.arange(len(tokens)) >= len(vocab.tokenize(read))
            # The separator after a context belongs to the text.
            separator_nll = _count_separators(_WORD.sub("x", read[-1:] + text), separator).nll(
                vocab.separators
            )
        num_chars = len(text.replace("\n", separator))
        return EncodedText.of(vocab, text, tokens, is_scored, lengths, num_chars, separator_nll)

    def _read_text(self, text: object, context: object, space: Space = "before") -> EncodedText:
        """Return a text, cleaned like the corpus, as tokens. Raises as :func:`require_text`
        does."""
        text, normalise = require_text(text, "the text"), self.vocab.normalise
        before = "" if context is None else require_text(context, "the context")
        read = clean_text(before, normalise).rstrip(BLANKS)
        if not read:
            whole = self._beginning + clean_text(text, normalise)
            begin = min(len(self._beginning), 1) if whole != self._beginning else len(whole)
            return self.encode(whole[:begin], whole[begin:])
        is_apart = before[-1] in (*BLANKS, "\r") or text.startswith((*BLANKS, "\r"))
        whole = self._beginning + clean_text(before + ("" if is_apart else " ") + text, normalise)
        begin = len(self._beginning + read)
        if space == "after" or not whole[begin:].strip(BLANKS):
            begin = len(whole) - len(whole[begin:].lstrip(BLANKS))
        return self.encode(whole[:begin], whole[begin:])

    def score_text(self, text: str, context: str | None = None) -> TextSurprisals:
        """Return a text, cleaned like the corpus, with the surprisals of its tokens."""
        return self.score_batch([self._read_text(text, context)])[0]

    def score_batch(self, texts: Sequence[EncodedText]) -> list[TextSurprisals]:
        """Return the surprisals of texts, each as if it were alone."""
        inputs = [each.input_ids for each in texts]
        found = (
            self.batch_nll(inputs) if len(inputs) > 1 else [self._token_nll(ids) for ids in inputs]
        )
        return [
            TextSurprisals(each, self._of_scored(each, nll))
            for each, nll in zip(texts, found, strict=True)
        ]

    def _of_scored(self, text: EncodedText, nll: Nll) -> Nll:
        """Return the surprisals of the scored tokens, given those of tokens 2 to N."""
        if not any(text.is_scored[:1]):
            return nll[text.is_scored[1:]]
        return np.concatenate([self._first_nll[text.input_ids[:1]], nll])[text.is_scored]

    @overload
    def score(self, text: str, *, context: str | None = None) -> Score: ...

    @overload
    def score(self, text: Texts, *, context: str | Texts | None = None) -> list[Score]: ...

    def score(
        self, text: str | Texts, *, context: str | Texts | None = None
    ) -> Score | list[Score]:
        """Return how well the model predicts a text, which is cleaned like the corpus first.

        The ``remarks`` of the result say what cleaning changed. A list of texts gives a list of
        scores, each as if the text were alone, but computed together, which is much faster.

        A text begins as if it followed a separator: a character or subword as after a space, a word
        as one without a known context. A network over words has no distribution of a first word,
        which it does not score. ``context`` is text that the model reads first instead, without
        being scored on it: one for all texts, or a list with one for each. A space between context
        and text, if neither has one there, is added and scored. Models from ARPA files with
        sentence marks score the first word after ``<s>``.

        Raises DataError for a text without a scored token, and ParamsError for anything but
        strings.
        """
        alone = not is_collection(text)
        texts = [require_text(text, "the text")] if alone else strings(text, "the text")
        pairs = zip(texts, contexts(context, texts), strict=True)
        scores = []
        for number, found in enumerate(
            self.score_batch([self._read_text(*pair) for pair in pairs])
        ):
            which = f"{self.name}: {'the text' if alone else f'text {number}'}"
            scores.append(found.score(which, cleaning_remarks(texts[number], self.vocab.normalise)))
        return scores[0] if alone else scores

    def surprisals(
        self,
        text: str | Texts | None = None,
        by: By | None = None,
        space: Space = "before",
        *,
        words: Iterable[str] | Iterable[Iterable[str]] | None = None,
        groups: Iterable[object] | None = None,
        context: str | Texts | None = None,
    ) -> "pd.DataFrame":
        """Return a table of the surprisals of a text in bits, with a row for each of its tokens or
        words.

        ``by`` is the unit: token (the default) or word. Words are what white space separates in the
        text as it was given. ``space`` says where a blank belongs that is between two words:
        ``before`` adds it to the one that it precedes, ``after`` to the one that it follows.

        The columns are ``position``; ``text``, the token or the word after cleaning; ``bits``,
        which include the cost of spelling unknown tokens, but not of separators that a model over
        words does not predict; ``unknown``; and ``reason``, which says why bits are missing, for
        example because cleaning removed the word.

        ``words`` gives the words themselves, in place of the text: the table has one row for each,
        in their order. They are joined by spaces, unless the text is given too. ``groups`` has a
        label for each word, such as the number of its sentence; words of one group are a text of
        their own. If the words are a column of a table of pandas, the result has the index of this
        table.

        A list of texts, a list of lists of words, and groups give one table with the column
        ``group`` first: the number of the text, or the label. ``context`` is that of :meth:`score`;
        if there are groups, a list of contexts has one for each group, in the order in which they
        begin.

        Raises ParamsError if the text does not have the given words, and as :meth:`score` does.
        """
        request = read_request(text, words, groups)
        if by is None:
            by = "token" if words is None else "word"
        by = check_argument(by, "by", By, function="surprisals")
        space = check_argument(space, "space", Space, function="surprisals")
        if words is not None and by != "word":
            raise ParamsError(f"by = {by!r}: with words it must be word")
        pairs = zip(request.texts, contexts(context, request.texts), strict=True)
        scored = self.score_batch([self._read_text(*pair, space) for pair in pairs])
        if by == "token":
            return request.table([found.token_rows() for found in scored])
        lists = request.words or [split_words(each, self.vocab.normalise) for each in request.texts]
        return request.table(
            [found.word_rows(each, space) for found, each in zip(scored, lists, strict=True)]
        )

    @overload
    def generate(
        self, prefix: str, num_preds: int = 100, **options: Unpack[GenerateOptions]
    ) -> str: ...

    @overload
    def generate(
        self, prefix: Texts, num_preds: int = 100, **options: Unpack[GenerateOptions]
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
    ) -> str | list[str]:
        """Return the ``num_preds`` tokens that follow a prefix as text, without the prefix.

        With ``temperature`` 0 each token is the most likely one; otherwise it is drawn from q
        proportional to p to the power 1 / temperature (exercise 8.5-3 with alpha = 1 /
        temperature). ``top_k`` keeps the k most likely tokens; ``top_p`` keeps the smallest set of
        most likely tokens that has this much probability (nucleus).

        A list of prefixes gives a list of texts. A prefix is cleaned like the corpus, and tokens
        that the vocabulary lacks are read as ``<unk>``. Raises DataError if a prefix has no token,
        and ParamsError for a number of tokens below 1, a seed outside 0 to 2**32 - 1, and other
        values that make no sense.
        """
        options = {
            "num_preds": num_preds,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seed,
        }
        num_preds, *how, seed = (
            check_argument(value, name, _OPTIONS[name], function="generate")
            for name, value in options.items()
        )
        rng = np.random.default_rng(seed)
        alone = not is_collection(prefix)
        prefixes = [require_text(prefix, "the prefix")] if alone else strings(prefix, "the prefix")
        encoded = [self._encode_prefix(each) for each in prefixes]
        texts = [
            self._continue(ids, num_preds, lambda probs: sample_token(probs, rng, *how))
            for ids in encoded
        ]
        return texts[0] if alone else texts

    def _encode_prefix(self, prefix: str) -> list[int]:
        """Return the tokens of a prefix. Raises DataError if it has none."""
        text = clean_text(require_text(prefix, "the prefix"), self.vocab.normalise)
        # A space at its end is read too.
        ids = self.vocab.encode(
            self.vocab.tokenize(text + " " * (prefix[-1:].isspace() and bool(text)))
        )
        if not len(ids):
            raise DataError(
                f"the prefix {prefix!r} contains no {self.vocab.token_kind.noun}: give at least one"
            )
        return [int(index) for index in ids]

    def _continue(self, prefix: Sequence[int], num_preds: int, pick: Callable[[Probs], int]) -> str:
        """Return the text of the ``num_preds`` tokens after a prefix, including the space before a
        word."""
        reader, tokens = self.reader(), list[str]()
        for token in prefix:
            reader.read(token)
        for step in range(num_preds):
            token = pick(reader.next_probs())
            tokens.append(self.vocab.tokens[token])
            if step < num_preds - 1:
                reader.read(token)
        return self.vocab.token_kind.separator + self.vocab.join(tokens)


@lru_cache(1000)  # sentences share a few shapes
def _count_separators(shape: str, line_separator: str) -> Separators:
    """Return the separators of a text whose words are replaced by one letter each."""
    return count_separators([shape], line_separator)


def cleaning_remarks(text: str, normalise: str) -> list[str]:
    """Return what a user should know about the cleaning of a text."""
    if normalise == "letters" and (
        replaced := _NOT_KEPT.findall(unicodedata.normalize("NFC", text))
    ):
        number = count_noun(len(replaced), "character")
        remark = (
            f"cleaned like the corpus, by preprocess.normalise: spaces replace {number} other "
            "than A to Z"
        )
        return [remark, *decoding_warnings(Letters.of(text.encode()), normalise)]
    return []


def sample_token(
    probs: Probs,
    rng: np.random.Generator,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> int:
    """Return one token, given the probability of each, shape ``(V,)``; the options are those of
    ``generate``.

    ``<unk>``, token 0, is never chosen, because it is not text. Raises DataError if only it can
    follow.
    """
    allowed = probs[1:]
    if not allowed.any():
        raise DataError("no token of the vocabulary can follow: give another prefix")
    if temperature == 0:
        return int(allowed.argmax()) + 1
    logs = log(allowed)
    # Relative to the largest, so that no temperature, however low, makes a number too large.
    with np.errstate(over="ignore"):
        weights = exp((logs - logs.max()) / max(temperature, _COLDEST))
    if top_k is not None and top_k < len(weights):
        weights[weights < np.partition(weights, -top_k)[-top_k]] = 0
    if top_p is not None:
        order = np.argsort(-weights, kind="stable")
        ordered = weights[order]
        # A token stays while those before it have less than top_p: the first one always does.
        ordered[np.cumsum(ordered) - ordered >= top_p * ordered.sum()] = 0
        weights[order] = ordered
    cumulative = np.cumsum(weights)
    drawn = min(rng.random() * cumulative[-1], np.nextafter(cumulative[-1], 0))
    return int((cumulative > drawn).argmax()) + 1
