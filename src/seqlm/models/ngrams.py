"""N-gram models: static ones, and those that keep counting the text that they have predicted."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout, as_path
from seqlm.core.metrics import Nll
from seqlm.models.info import ModelInfo, describe_ngrams, ngram_info
from seqlm.models.language_model import LanguageModel
from seqlm.models.reader import Probs, Reader
from seqlm.models.scored_text import Ids
from seqlm.ngrams.arpa import write_arpa
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import NGramModel, token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import build_models, save_models
from seqlm.ngrams.settings import Unknown
from seqlm.vocab.vocabulary import Vocab

SMALL_SAMPLE_TOKENS = 10_000
"""Models of this many tokens of train are compared with the networks of sections 8.5 and 8.6, which
see as many."""
SMALL_SAMPLE_ORDERS = {"char": (1, 3, 5)}
"""The orders of these models, by kind of token."""
NUM_UPDATES = 40
"""How many times in a text everything is counted again: with more, scores hardly improve and take
longer."""
MAX_TOKENS = 200_000
"""A longer train is not counted again and again, and its model over words not read as one over
characters: both take long, and on long texts they add little."""


@dataclass(frozen=True)
class EvolvingCounts:
    """The n-gram model at each place of a text: always the same, or one that has counted the text
    before."""

    model_after: Callable[[Sequence[int] | Ids], NGramModel]
    """Returns the model after the tokens read so far."""
    num_updates: int = 1
    """In how many equal parts a text is counted that is scored as a whole."""
    update_every: int | None = None
    """After how many tokens everything is counted again in a text that is read token by token;
    None: never."""

    @classmethod
    def fixed(cls, model: NGramModel) -> Self:
        """Return that the model is always the same."""
        return cls(partial(_constant, model))

    @classmethod
    def updated(
        cls, model_after: Callable[[Sequence[int] | Ids], NGramModel], text_length: int
    ) -> Self:
        """Return models that count everything again; ``text_length``: tokens of a usual text, in
        which a reader does so as often as in a text that is scored as a whole."""
        return cls(model_after, NUM_UPDATES, max(text_length // NUM_UPDATES, 1))

    def is_due(self, num_read: int) -> bool:
        """Return whether everything is counted again: after the first token, and after each
        interval from there."""
        return self.update_every is not None and (num_read - 1) % self.update_every == 0

    def parts(self, length: int) -> list[range]:
        """Return the positions of a text in equal parts, of which the last may be shorter."""
        size = max(-(-length // self.num_updates), 1)
        return [range(start, min(start + size, length)) for start in range(0, length, size)]


def _constant(model: NGramModel, _: Sequence[int] | Ids) -> NGramModel:
    return model


class NGram(LanguageModel):
    """An n-gram model, which may keep counting the text that it reads."""

    def __init__(self, info: ModelInfo, vocab: Vocab, recounting: EvolvingCounts) -> None:
        """Make the model that ``info`` describes over the tokens of ``vocab``."""
        super().__init__(info, vocab)
        self._recounting = recounting

    @classmethod
    def of(cls, model: NGramModel, vocab: Vocab, num_tokens: int | None = None) -> Self:
        """Return a model that stays as it is; ``num_tokens``: the first tokens of train that it
        counts, if not all."""
        (info,) = describe_ngrams([model], vocab, num_tokens)
        return cls(info, vocab, EvolvingCounts.fixed(model))

    @property
    def model(self) -> NGramModel:
        """The model of the counts, before it has read anything."""
        return self._recounting.model_after(())

    def _token_nll(self, ids: Ids) -> Nll:
        if not self.info.dynamic:  # in one part, which needs no copies
            return token_nll(self.model, ids)
        segments = [np.empty(0)]
        for part in self._recounting.parts(max(len(ids) - 1, 0)):
            model = self._recounting.model_after(ids[: part.start + 1])
            begin = max(part.start - max(model.order - 1, 0), 0)
            segments.append(token_nll(model, ids[begin : part.stop + 1])[part.start - begin :])
        return np.concatenate(segments)

    def batch_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        if self.info.dynamic or not texts:
            return super().batch_nll(texts)
        # As one stream, of which the first token of each text is not asked for.
        lengths = [len(ids) for ids in texts]
        positions = np.concatenate([np.arange(length) for length in lengths])
        nll = np.append(0, token_nll(self.model, np.concatenate(texts), positions))
        return [text_nll[1:] for text_nll in np.split(nll, np.cumsum(lengths)[:-1])]

    def _reader(self) -> Reader:
        return _NGramReader(self._recounting)

    def to_arpa(self, path: str | Path) -> None:
        """Write the model to an ARPA file, packed if the path ends in ``.gz``.

        Raises ParamsError if it is not a static Kneser-Ney model.
        """
        if self.info.dynamic or not isinstance(self.model, KneserNey):
            raise ParamsError(
                f"{self.name}: only static Kneser-Ney models have the form of an ARPA file"
            )
        write_arpa(as_path(path, "path"), self.model, self.vocab.tokens)

    def write(self, layout: Layout) -> None:
        """Write the vocabulary and the counts as a run has them. Raises ParamsError if the model
        has no counts."""
        model, kind = self.model, self.vocab.kind
        if not model.order:  # the uniform model
            raise ParamsError(f"{self.name}: holds nothing to save")
        self.vocab.save(layout.vocab(kind))
        tables = [(table.keys, table.counts) for table in model.counts.tables[: model.order]]
        counts = NgramCounts(tables, model.counts.starts[: model.order])
        settings = {model.smoothing: model.settings}
        infos = describe_ngrams(build_models(counts, settings).values(), self.vocab)
        save_models(layout.ngrams(kind), counts, settings, self.vocab.key, map(asdict, infos))


class _NGramReader(Reader):
    def __init__(self, recounting: EvolvingCounts) -> None:
        self._recounting, self._model = recounting, recounting.model_after(())
        self._ids: list[int] = []

    def _read(self, token_id: int) -> None:
        self._ids.append(token_id)
        if self._recounting.is_due(len(self._ids)):
            self._model = self._recounting.model_after(self._ids)

    def next_probs(self) -> Probs:
        # A model of order n looks back at n - 1 tokens.
        context = self._ids[-max(self._model.order - 1, 1) :]
        return self._model.next_distribution(np.array(context, np.int64))


def small_sample_infos(vocab: Vocab) -> list[ModelInfo]:
    """Return what the small-sample models are; there are none if train has no more tokens."""
    is_small = vocab.splits["train"].num_tokens <= SMALL_SAMPLE_TOKENS
    return [
        ngram_info(KneserNey.smoothing, order, vocab, SMALL_SAMPLE_TOKENS)
        for order in (() if is_small else SMALL_SAMPLE_ORDERS.get(vocab.kind, ()))
    ]


def count_kneser_ney(
    train: Ids, vocab_size: int, order: int, unknown: Unknown, read: Sequence[int] | Ids
) -> KneserNey:
    """Return the Kneser-Ney model of a training text, and of what was read after it."""
    text = np.concatenate([train, np.asarray(read, np.int64)])
    return KneserNey(count_ngrams(text, vocab_size, order), order, unknown=unknown)
