"""n-gram models, static ones and ones that keep counting, also those over words that are read as over characters."""

from collections.abc import Callable
from functools import partial

import numpy as np

from seqlm.core.metrics import Nats
from seqlm.heldout.scored_text import Ids
from seqlm.models.language_model import Cleaner, LanguageModel, Probs, Reader, RowReader, Rows
from seqlm.ngrams.models.base import NGramModel, token_nll
from seqlm.ngrams.settings import Unknown
from seqlm.score.model_info import ModelInfo
from seqlm.score.ngrams import recounted_nll, recounted_on
from seqlm.score.word_to_char import ModelAfter, WordToCharReader
from seqlm.vocab.vocabulary import Vocab


class StaticNGram(LanguageModel):
    """An n-gram model."""

    def __init__(self, info: ModelInfo, model: NGramModel, vocab: Vocab, clean: Cleaner) -> None:
        """Take what the model is, and the model over the tokens of a vocabulary."""
        super().__init__(info, vocab, clean)
        self.model = model

    def token_nll(self, ids: Ids) -> Nats:
        """Return -log p of tokens 2 to N."""
        return token_nll(self.model, ids)

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts."""
        return Rows([_NGramReader(self.model) for _ in range(num_rows)])


class _NGramReader(RowReader):
    def __init__(self, model: NGramModel) -> None:
        self._model = model
        self._context: list[int] = []

    def read(self, token: int) -> None:
        # A model of order n looks back at n - 1 tokens.
        self._context = [*self._context, token][-max(self._model.order - 1, 1) :]

    def next_probs(self) -> Probs:
        return self._model.next_distribution(np.array(self._context, np.int64))


class Recounting:
    """How a model with dynamic counts counts again with the text that it has read."""

    def __init__(self, train: Ids, vocab: Vocab, order: int, unknown: Unknown, num_updates: int) -> None:
        """Take the tokens of train; see :func:`seqlm.score.ngrams.score_recounted`.

        A text that is scored as a whole is counted in ``num_updates`` equal parts. A text that is read token by token
        is counted as often as test is: see :meth:`update_interval`.
        """
        self.num_updates = num_updates
        self.model_after: ModelAfter = partial(recounted_on, train, vocab_size=len(vocab), order=order, unknown=unknown)
        self.nll: Callable[[Ids], Nats] = partial(recounted_nll, self.model_after, num_updates=num_updates)

    def update_interval(self, vocab: Vocab) -> int:
        """Return after how many tokens of a vocabulary everything is counted again."""
        return max(vocab.splits["test"].num_tokens // self.num_updates, 1)


class DynamicNGram(LanguageModel):
    """A Kneser-Ney model that keeps counting the text that it reads."""

    def __init__(self, info: ModelInfo, vocab: Vocab, clean: Cleaner, recounting: Recounting) -> None:
        """Take what the model is and how it counts."""
        super().__init__(info, vocab, clean)
        self._recounting = recounting

    def token_nll(self, ids: Ids) -> Nats:
        """Return -log p of tokens 2 to N, each predicted before it is counted."""
        return self._recounting.nll(ids)

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader that counts what it reads."""
        update_every = self._recounting.update_interval(self.vocab)
        return Rows([_RecountingReader(self._recounting.model_after, update_every) for _ in range(num_rows)])


class _RecountingReader(_NGramReader):
    def __init__(self, model_after: ModelAfter, update_every: int) -> None:
        super().__init__(model_after(()))
        self._model_after, self._update_every = model_after, update_every
        self._read: list[int] = []

    def read(self, token: int) -> None:
        super().read(token)
        self._read.append(token)
        if _is_due(len(self._read), self._update_every):
            self._model = self._model_after(self._read)


def _is_due(num_read: int, update_every: int) -> bool:
    """Return whether everything is counted again, after a multiple of the interval without the first token."""
    return num_read > 1 and (num_read - 1) % update_every == 0


class WordToChar(LanguageModel):
    """A model over words that is read as a model over characters; it may keep counting the words that it reads."""

    def __init__(
        self,
        info: ModelInfo,
        reader: WordToCharReader,
        clean: Cleaner,
        model_after: ModelAfter,
        num_updates: int = 1,
        update_every: int | None = None,
    ) -> None:
        """Take what the model is, the reader of characters, and the model over words after the words read so far.

        See :class:`Recounting` for when it is asked for again.
        """
        super().__init__(info, reader.characters, clean)
        self._reader, self._model_after = reader, model_after
        self._num_updates, self._update_every = num_updates, update_every

    def token_nll(self, ids: Ids) -> Nats:
        """Return -log p of characters 2 to N."""
        return self._reader.nll(ids, self._model_after, self._num_updates)

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of characters."""
        rows = range(num_rows)
        return Rows([_CharacterReader(self._reader, self._model_after, self._update_every) for _ in rows])


class _CharacterReader(RowReader):
    def __init__(self, reader: WordToCharReader, model_after: ModelAfter, update_every: int | None) -> None:
        self._predictor = reader.predictor(model_after(()))
        self._letters = [reader.letter(character) for character in reader.characters.tokens]
        self._model_after, self._update_every = model_after, update_every
        self._num_read = 0

    def read(self, token: int) -> None:
        self._predictor.read(self._letters[token])
        self._num_read += 1
        if self._update_every is not None and _is_due(self._num_read, self._update_every):
            self._predictor.use(self._model_after(self._predictor.words_read))

    def next_probs(self) -> Probs:
        return np.array([self._predictor.prob(letter) for letter in self._letters])
