"""n-gram models, static and dynamic ones, including models over words that are read as models over characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from seqlm.core.elementary import log
from seqlm.core.metrics import Nll
from seqlm.heldout.scored_text import Ids
from seqlm.models.language_model import LanguageModel, Probs, Reader, RowReader, RowwiseReader
from seqlm.ngrams.models.base import NGramModel
from seqlm.score.model_info import ModelInfo
from seqlm.score.ngrams import ModelAfter, recounted_nll
from seqlm.score.word_to_char import WordToCharReader
from seqlm.vocab.vocabulary import Vocab


@dataclass(frozen=True)
class Recounting:
    """The n-gram model at each place of a text: always the same, or one that has counted the text before."""

    model_after: ModelAfter
    """Returns the model after the tokens read so far."""
    num_updates: int = 1
    """In how many equal parts a text is counted that is scored as a whole."""
    update_every: int | None = None
    """After how many tokens everything is counted again in a text that is read token by token; None: never."""

    @classmethod
    def fixed(cls, model: NGramModel) -> Self:
        """Return that the model is always the same."""
        return cls(lambda _: model)

    def is_due(self, num_read: int) -> bool:
        """Return whether everything is counted again: after the first token, and after each interval from there."""
        return self.update_every is not None and (num_read - 1) % self.update_every == 0


class NGram(LanguageModel):
    """An n-gram model, which may keep counting the text that it reads."""

    def __init__(self, info: ModelInfo, vocab: Vocab, recounting: Recounting) -> None:
        """Take what the model is, the vocabulary of its tokens, and how it counts."""
        super().__init__(info, vocab)
        self._recounting = recounting

    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of tokens 2 to N, each predicted before it is counted."""
        return recounted_nll(self._recounting.model_after, ids, num_updates=self._recounting.num_updates)

    def texts_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return -log p of tokens 2 to N of each text; those of a model that does not count are found together."""
        if self.info.dynamic:
            return super().texts_nll(texts)
        probs = self._recounting.model_after(()).texts_probs(texts)
        ends = np.cumsum([len(each) for each in probs])
        return np.split(-log(np.concatenate(probs)), ends[:-1]) if probs else []

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts."""
        return RowwiseReader([_NGramReader(self._recounting) for _ in range(num_rows)])


class _NGramReader(RowReader):
    def __init__(self, recounting: Recounting) -> None:
        self._recounting, self._model = recounting, recounting.model_after(())
        self._read: list[int] = []

    def read(self, token: int) -> None:
        self._read.append(token)
        if self._recounting.is_due(len(self._read)):
            self._model = self._recounting.model_after(self._read)

    def next_probs(self) -> Probs:
        # A model of order n looks back at n - 1 tokens.
        context = self._read[-max(self._model.order - 1, 1) :]
        return self._model.next_distribution(np.array(context, np.int64))


class WordToChar(LanguageModel):
    """A model over words that is read as a model over characters; it may keep counting the words that it reads."""

    def __init__(self, info: ModelInfo, reader: WordToCharReader, recounting: Recounting) -> None:
        """Take what the model is, the reader of characters, and how the model over words counts."""
        super().__init__(info, reader.characters)
        self._reader, self._recounting = reader, recounting

    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of characters 2 to N."""
        return self._reader.nll(ids, self._recounting.model_after, self._recounting.num_updates)

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of characters."""
        return RowwiseReader([_CharacterReader(self._reader, self._recounting) for _ in range(num_rows)])


class _CharacterReader(RowReader):
    def __init__(self, reader: WordToCharReader, recounting: Recounting) -> None:
        self._predictor = reader.predictor(recounting.model_after(()))
        self._characters = reader.characters.tokens
        self._recounting, self._num_read = recounting, 0

    def read(self, token: int) -> None:
        self._predictor.read(self._characters[token])
        self._num_read += 1
        if self._recounting.is_due(self._num_read):
            self._predictor.use(self._recounting.model_after(self._predictor.words_read))

    def next_probs(self) -> Probs:
        return np.array([self._predictor.prob(character) for character in self._characters])
