"""The interface of a trained model: it scores text, returns surprisals, and generates text.

Every model offers two things, from which all others follow: the surprisals of a whole stream of
tokens, and a reader that gives the distribution of the next token after each token that it has
read.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict, Unpack, overload

import numpy as np

from seqlm.core.elementary import log
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.settings import check_argument
from seqlm.models.encoding import EncodedText, clean_after_context, clean_prefix, encode
from seqlm.models.info import ModelInfo
from seqlm.models.inputs import (
    By,
    Space,
    Texts,
    broadcast_contexts,
    parse_input,
    require_same_index,
    require_text,
    require_texts,
)
from seqlm.models.reader import Probs, Reader
from seqlm.models.sampling import AtLeastOne, SamplingSettings, generate_ids
from seqlm.models.saving import save
from seqlm.models.scored_text import Ids
from seqlm.models.surprisals import Score, TextSurprisals, align_words, split_words, surprisal_table
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:
    import pandas as pd


class GenerateOptions(TypedDict, total=False):
    """The types of the options that every form of :meth:`LanguageModel.generate` takes."""

    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int


class LanguageModel(ABC):
    """A trained model."""

    def __init__(self, info: ModelInfo, vocab: Vocab) -> None:
        """A model described by ``info`` over the tokens of ``vocab``."""
        self.info, self.vocab = info, vocab
        self.opener: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        """A function that opens the model again, and its arguments, for pickling."""

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
            array = np.asarray(ids)
        except ValueError:  # lists of different lengths
            array = np.empty((0, 0))
        if array.shape == (0,):
            return np.empty(0)
        if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() > last:
            raise ParamsError(f"{self.name}: tokens must be a list of integers from 0 to {last:,}")
        return self._token_nll(array)

    @abstractmethod
    def _token_nll(self, ids: Ids) -> Nll:
        """Return the surprisals of tokens 2 to N; ``ids`` were checked."""

    def batch_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return what :meth:`token_nll` does for each of some texts, together where that is
        faster."""
        return [self._token_nll(ids) for ids in texts]

    def reader(self) -> Reader:
        """Return a fresh reader; a dynamic model's also learns as it reads."""
        reader = self._reader()
        reader.vocab_size = len(self.vocab)
        return reader

    @abstractmethod
    def _reader(self) -> Reader:
        """Return a fresh reader."""

    def write(self, layout: Layout) -> None:  # noqa: ARG002 (for other models)
        """Write the files that the model needs to the folder of a run. Raises ParamsError if it has
        none to write."""
        raise ParamsError(f"{self.name}: holds nothing to save")

    def save(self, folder: str | Path) -> None:
        """Write the model to a new folder, from which ``seqlm.open(folder)[name]`` reads it.

        Raises ParamsError if the folder exists and is not empty, or if the model holds nothing to
        save.
        """
        save(folder, {self.name: self.write})

    _unread = slice(None)
    """The tokens of an encoded prefix that a fresh reader has not read."""

    @cached_property
    def _nll_without_context(self) -> Nll:
        """-log p of each token after nothing; nan if the model has no such distribution."""
        return -log(self._next_probs(self.reader()))

    def _next_probs(self, reader: Reader) -> Probs:
        """Return p of each token after what was read; nan if the model has no such distribution."""
        try:
            return reader.next_probs()
        except ParamsError:
            return np.full(len(self.vocab), math.nan)

    def encode(self, context: str, text: str) -> EncodedText:
        """Tokenize ``text``, preceded by an unscored ``context``; both are clean."""
        return encode(self.vocab, context, text)

    def encode_texts(
        self, texts: Sequence[str], context: object, space: Space = "before"
    ) -> list[EncodedText]:
        """Return texts, cleaned like the corpus, as tokens: each after its context, or all after
        the same one."""
        pairs = zip(texts, broadcast_contexts(context, texts), strict=True)
        return [self.encode(*clean_after_context(self.vocab, *pair, space)) for pair in pairs]

    def score_text(self, text: str, context: str | None = None) -> TextSurprisals:
        """Return a text, cleaned like the corpus, with the surprisals of its tokens."""
        return self.score_batch(self.encode_texts([text], context))[0]

    def score_batch(self, texts: Sequence[EncodedText]) -> list[TextSurprisals]:
        """Return the surprisals of texts, each as if it were alone."""
        ids = [text.input_ids for text in texts]
        after_first = self.batch_nll(ids) if len(ids) > 1 else [*map(self._token_nll, ids)]
        scored = []
        for text, nll in zip(texts, after_first, strict=True):
            scored_nll = nll[text.is_scored[1:]]
            if any(text.is_scored[:1]):
                scored_nll = np.append(self._nll_without_context[text.input_ids[0]], scored_nll)
            scored.append(TextSurprisals(text, scored_nll))
        return scored

    @overload  # a string is an iterable of strings too
    def score(  # type: ignore[overload-overlap]
        self, text: str, *, context: str | None = None
    ) -> Score: ...

    @overload
    def score(self, text: Texts, *, context: str | Texts | None = None) -> list[Score]: ...

    def score(
        self, text: str | Texts, *, context: str | Texts | None = None
    ) -> Score | list[Score]:
        """Return how well the model predicts a text, which is cleaned like the corpus first.

        The ``remarks`` of the result say what cleaning changed, and what makes the figures
        misleading. Compare models by ``bits_per_character``: it includes what unknown tokens cost,
        while ``perplexity`` rewards a model that knows few. ``perplexity_known`` is for comparisons
        with other programs that leave out unknown words. A list of texts gives a list of scores,
        each as if the text were alone, but computed together, which is much faster.

        A text begins as if it followed a separator: a character or subword as after a space, a word
        as one without a known context. A network over words has no distribution of a first word,
        which it does not score. ``context`` is text that the model reads first instead, without
        being scored on it: one for all texts, or a list with one for each. Spaces and line ends at
        its end are part of it. If it has none there, and the text begins with none, a space is
        added and scored. Models from ARPA files with sentence marks score the first word after
        ``<s>``.

        A list is several texts, not the words of one: for words, there is :meth:`surprisals`. For
        models that know no line ends, a line end is a space.

        Raises DataError for a text without a scored token, and ParamsError for anything but
        strings, a set, which has no order, and columns of different tables.
        """
        texts, is_single = require_texts(text, "the text")
        require_same_index(text=text, context=context)
        scored = zip(texts, self.score_batch(self.encode_texts(texts, context)), strict=True)
        scores = [
            surprisals.score(
                f"{self.name}: {'the text' if is_single else f'text {number}'}", original
            )
            for number, (original, surprisals) in enumerate(scored)
        ]
        return scores[0] if is_single else scores

    def surprisals(
        self,
        text: str | Texts | None = None,
        by: By | None = None,
        space: Space = "before",
        *,
        words: Iterable[str] | Iterable[Iterable[str]] | None = None,
        groups: Iterable[object] | None = None,
        context: str | Texts | None = None,
        entropy: bool = False,
    ) -> "pd.DataFrame":
        """Return a table of the surprisals of a text in bits, with a row for each of its tokens or
        words.

        ``by`` is the unit: token (the default) or word. Words are what white space separates in the
        text as it was given. ``space`` says which neighbour a blank between two words belongs to:
        ``before`` adds it to the word that it precedes, ``after`` to the one that it follows.

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

        ``entropy`` adds the column ``entropy`` to a table of tokens: the entropy, in bits, of the
        model's distribution of the token before it is known. It takes longer, because each token is
        read by itself.

        Raises ParamsError if the text does not have the given words, and as :meth:`score` does.
        """
        inputs = parse_input(text, words, groups)
        require_same_index(text=text, context=context)
        by = by or ("token" if words is None else "word")
        by = check_argument(by, "by", By, function="surprisals")
        space = check_argument(space, "space", Space, function="surprisals")
        if words is not None and by != "word":
            raise ParamsError(f"by = {by!r}: with words it must be word")
        if entropy and by != "token":
            raise ParamsError(f"entropy is that of tokens, not by = {by!r}: leave one out")
        encoded = self.encode_texts(inputs.texts, context, space)
        if by == "token":
            rows = [surprisals.token_rows() for surprisals in self.score_batch(encoded)]
            table = surprisal_table(inputs, rows)
            if entropy:
                table["entropy"] = np.array(
                    [bits for text in encoded for bits in self._entropies(text)]
                )
            return table
        words_of_texts = inputs.words or [
            split_words(text, self.vocab.normalise) for text in inputs.texts
        ]
        # Before anything is scored, which takes longer, so that wrong words are refused at once.
        alignments = [
            align_words(text, words, space)
            for text, words in zip(encoded, words_of_texts, strict=True)
        ]
        scored = zip(self.score_batch(encoded), alignments, strict=True)
        rows = [surprisals.word_rows(alignment) for surprisals, alignment in scored]
        return surprisal_table(inputs, rows)

    def _entropies(self, text: EncodedText) -> Iterator[float]:
        """Yield the entropy in bits of the distribution of each scored token."""
        reader, unread = self.reader(), slice(self._unread.start, None)
        tokens = zip(text.input_ids[unread].tolist(), text.is_scored[unread], strict=True)
        for token_id, is_scored in tokens:
            if is_scored:
                probs = self._next_probs(reader)
                probs = probs[probs != 0]
                yield float(-(probs * log(probs)).sum()) / math.log(2)
            reader.read(token_id)

    def next_tokens(self, prefix: str = "", top: int = 10) -> "pd.DataFrame":
        """Return a table of the ``top`` most likely tokens after a prefix, which is read as
        :meth:`generate` does.

        The columns are ``token``, ``probability`` and ``bits``, the surprisal. ``<unk>`` stands for
        all tokens that the vocabulary lacks. Raises DataError for an empty prefix if the model has
        no distribution of a first token, and ParamsError if ``top`` is not a number from 1 on.
        """
        import pandas as pd

        top = check_argument(top, "top", AtLeastOne, function="next_tokens")
        _, probs = self._read_prefix(require_text(prefix, "the prefix"))
        if np.isnan(probs[0]):
            noun = self.vocab.token_kind.noun
            raise DataError(f"{self.name}: has no distribution of a first {noun}: pass a prefix")
        ids = np.argsort(-probs, kind="stable")[:top]
        probability, bits = probs[ids], -log(probs[ids]) / math.log(2)
        tokens = self.vocab.decode(ids.tolist())
        return pd.DataFrame({"token": tokens, "probability": probability, "bits": bits})

    @overload
    def generate(  # type: ignore[overload-overlap]
        self, prefix: str = "", num_preds: int = 100, **options: Unpack[GenerateOptions]
    ) -> str: ...

    @overload
    def generate(
        self, prefix: Texts, num_preds: int = 100, **options: Unpack[GenerateOptions]
    ) -> list[str]: ...

    def generate(
        self,
        prefix: str | Texts = "",
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
        temperature). ``top_k`` keeps the k most likely tokens, and any that are as likely as the
        last of them; ``top_p`` keeps the smallest set of most likely tokens that has this much
        probability (nucleus).

        A list of prefixes gives a list of texts. A prefix is cleaned like the corpus, and tokens
        that the vocabulary lacks are read as ``<unk>``. An empty prefix is what :meth:`score` reads
        before a text; if the model has no distribution of a first word, this is drawn by its
        frequency in train. Raises DataError if cleaning leaves nothing of a prefix, and ParamsError
        for a number of tokens below 1, a seed outside 0 to 2**32 - 1, and other values that make no
        sense.
        """
        settings = SamplingSettings.checked(
            num_preds=num_preds, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
        )
        prefixes, is_single = require_texts(prefix, "the prefix")
        read = [self._read_prefix(text) for text in prefixes]
        rng = np.random.default_rng(settings.seed)
        texts = []
        for text, (reader, probs) in zip(prefixes, read, strict=True):
            first_probs = np.array(self.vocab.counts) if np.isnan(probs[0]) else probs
            tokens = self.vocab.decode(generate_ids(reader, first_probs, settings, rng))
            # Including the space before a word.
            separator = "" if text[-1:].isspace() or not text else self.vocab.token_kind.separator
            texts.append(separator + self.vocab.join(tokens))
        return texts[0] if is_single else texts

    def _read_prefix(self, prefix: str) -> tuple[Reader, Probs]:
        """Return a reader that has read a prefix, and p of each token after it; nan if the model
        has no such distribution."""
        reader, encoded = self.reader(), self.encode(clean_prefix(self.vocab, prefix), "")
        for token_id in encoded.input_ids[self._unread].tolist():
            reader.read(token_id)
        return reader, self._next_probs(reader)
