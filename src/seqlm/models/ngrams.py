"""N-gram models, static and dynamic ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from seqlm.core.elementary import log
from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout, as_path
from seqlm.core.metrics import Nll
from seqlm.models.info import ModelInfo, describe_ngram
from seqlm.models.language_model import LanguageModel, Reader
from seqlm.models.recounting import Recounting
from seqlm.models.sampling import Probs
from seqlm.models.scored_text import Ids
from seqlm.ngrams.arpa import write_arpa
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import InterpolatedModel, NGramModel, token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import load_counts, load_models, save_models
from seqlm.ngrams.settings import Unknown
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab

FEW_TOKENS = 10_000
"""Models of so few tokens of train are compared with the networks of sections 8.5 and 8.6, which see as many."""
ORDERS_OF_FEW = {"char": (1, 3, 5)}
"""The orders of these models, by kind of token."""


class NGram(LanguageModel):
    """An n-gram model, which may keep counting the text that it reads."""

    def __init__(self, info: ModelInfo, vocab: Vocab, recounting: Recounting) -> None:
        """Take what the model is, the vocabulary of its tokens, and how it counts."""
        super().__init__(info, vocab)
        self._recounting = recounting

    @classmethod
    def of(cls, model: NGramModel, vocab: Vocab, num_tokens: int | None = None) -> Self:
        """Return a model that stays as it is; ``num_tokens``: the first tokens of train that it counts, if not all."""
        info = describe_ngram(model.smoothing, model.order, vocab, num_tokens, chosen_on_val=model.chosen_on_val)
        return cls(info, vocab, Recounting.fixed(model))

    @property
    def model(self) -> NGramModel:
        """The model of the counts, before it has read anything."""
        return self._recounting.model_after(())

    def _token_nll(self, ids: Ids) -> Nll:
        found = [np.empty(0)]
        for part in self._recounting.parts(max(len(ids) - 1, 0)):
            model = self._recounting.model_after(ids[: part.start + 1])
            begin = max(part.start - max(model.order - 1, 0), 0)
            found.append(token_nll(model, ids[begin : part.stop + 1])[part.start - begin :])
        return np.concatenate(found)

    def texts_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return -log p of tokens 2 to N of each text; those of a model that does not count are found together."""
        if self.info.dynamic:
            return super().texts_nll(texts)
        probs = self.model.texts_probs(texts)
        ends = np.cumsum([len(each) for each in probs])
        return np.split(-log(np.concatenate(probs)), ends[:-1]) if probs else []

    def reader(self) -> Reader:
        """Return a reader of a new text."""
        return _NGramReader(self._recounting)

    def to_arpa(self, path: str | Path) -> None:
        """Write the model to an ARPA file, packed if the path ends in ``.gz``.

        Raises ParamsError if it is no static Kneser-Ney model.
        """
        if self.info.dynamic or not isinstance(self.model, KneserNey):
            raise ParamsError(f"{self.name}: only static Kneser-Ney models have the form of an ARPA file")
        write_arpa(as_path(path, "path"), self.model, self.vocab.tokens)

    def write(self, layout: Layout) -> None:
        """Write the vocabulary and the counts as a run has them. Raises ParamsError if the model has no counts."""
        model, kind = self.model, self.vocab.kind
        if not isinstance(model, InterpolatedModel):
            raise ParamsError(f"{self.name}: holds nothing to save")
        self.vocab.save(layout.vocab(kind))
        tables = [(table.keys, table.counts) for table in model.counts.tables[: model.order]]
        counts = NgramCounts(tables, model.counts.starts[: model.order])
        save_models(layout.ngrams(kind), counts, {model.smoothing: model.settings}, self.vocab.key)


class _NGramReader(Reader):
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


def static_models(layout: Layout, vocab: Vocab) -> list[NGram]:
    """Return the models of all smoothing methods and orders over the tokens of a vocabulary."""
    return [NGram.of(model, vocab) for model in load_models(layout.ngrams(vocab.kind), vocab.key).values()]


def orders_of_few(vocab: Vocab) -> tuple[int, ...]:
    """Return the orders of the models of few tokens; none if train has no more tokens."""
    return ORDERS_OF_FEW.get(vocab.kind, ()) if vocab.splits["train"].num_tokens > FEW_TOKENS else ()


def model_of_few(layout: Layout, vocab: Vocab, order: int) -> NGram:
    """Return a Kneser-Ney model of the first tokens of train only."""
    train = load_split(layout.corpus(vocab.kind), "train", mmap=True)[:FEW_TOKENS]
    counts = count_ngrams(train, len(vocab), max(orders_of_few(vocab)))
    return NGram.of(KneserNey(counts, order, unknown=unknown_of(layout, vocab)), vocab, FEW_TOKENS)


def unknown_of(layout: Layout, vocab: Vocab) -> Unknown:
    """Return how the Kneser-Ney models over a kind of token treat unknown ones."""
    unknown: Unknown = load_counts(layout.ngrams(vocab.kind), vocab.key)[1][KneserNey.smoothing]["unknown"]
    return unknown
