"""n-gram models from ARPA files: those that other programs wrote over words, and those that this project writes.

If a model predicts the end of a sentence, each line of a text is a sentence: like KenLM's ``query``, the model begins
it after ``<s>`` and predicts ``</s>`` after its last word. Otherwise a text is one stream of tokens.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqlm.core.elementary import log
from seqlm.core.errors import DataError
from seqlm.core.metrics import Nll
from seqlm.core.progress import Log
from seqlm.heldout.scored_text import Ids, Stream, unknown_share
from seqlm.heldout.spelling import unknown_costs
from seqlm.models.language_model import LanguageModel, Probs, Reader, RowReader, RowwiseReader
from seqlm.models.units import TokensInText, anchors
from seqlm.ngrams.arpa import MARKS, ArpaModel, read_arpa
from seqlm.ngrams.counts.kernels import NEVER
from seqlm.ngrams.models.base import split_texts
from seqlm.score.model_info import ModelInfo
from seqlm.vocab.kinds import Kind
from seqlm.vocab.separators import separator_nll
from seqlm.vocab.subwords import BYTE_TOKENS
from seqlm.vocab.vocabulary import UNKNOWN, Vocab

_BEGIN, _END = MARKS


def open_arpa(path: Path, log: Log) -> "ArpaLanguageModel":
    """Return the model in an ARPA file, plain or packed with gzip; warnings are logged.

    Raises DataError as :func:`read_arpa` does.
    """
    model = read_arpa(path)
    if not set(BYTE_TOKENS).isdisjoint(model.tokens):
        raise DataError(f"{path}: over subwords, whose tokenizer an ARPA file lacks: use the model of its run")
    for warning in model.warnings:
        log(warning)
    return ArpaLanguageModel(model)


class ArpaLanguageModel(LanguageModel):
    """An n-gram model from an ARPA file. It does not clean texts."""

    def __init__(self, model: ArpaModel) -> None:
        """Take a model that was read. It is one over characters if all its tokens are, without sentence marks."""
        places = {token: index for index, token in enumerate(model.tokens)}
        marks = [mark for mark in MARKS if mark in places]
        self.has_marks = len(marks) == len(MARKS) and bool(model.listed[0][model.tokens.index(_END)] > 10**NEVER)
        words = [token for token in model.tokens if token not in (UNKNOWN, *MARKS)]
        kind: Kind = "char" if not self.has_marks and all(len(word) == 1 for word in words) else "word"
        tokens = [UNKNOWN, *marks, *words]
        separator = "\n" if kind == "word" or "\n" in places else ""
        info = ModelInfo(
            model.name, "ngram", kind, 0, counted_token=kind, smoothing="ARPA", order=model.counts.max_order
        )
        super().__init__(info, Vocab(kind, tokens, [0] * len(tokens), separator, {}))
        self.model = model
        self._places = np.array([places.get(token, -1) for token in tokens], np.int64)
        """For each token its index in the file; -1 for ``<unk>`` if the file has none."""

    def to_file_ids(self, ids: Ids) -> Ids:
        """Return the indices of tokens in the file. Raises DataError for an unknown token if it has no ``<unk>``."""
        found = self._places[ids]
        if (found < 0).any():
            raise DataError(f"{self.name}: lists no {UNKNOWN}, and the text has words that it lacks")
        return found

    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of tokens 2 to N."""
        return -log(self.model.probs(self.to_file_ids(ids)))

    def texts_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return -log p of tokens 2 to N of each text."""
        return [-log(probs) for probs in split_texts(self.model.probs, [self.to_file_ids(ids) for ids in texts])]

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts, each the beginning of a sentence."""
        return RowwiseReader([_ArpaReader(self) for _ in range(num_rows)])

    def next_probs(self, context: Ids) -> Probs:
        """Return p of every token; ``<s>`` never follows."""
        probs = np.append(self.model.next_distribution(self.to_file_ids(context)), 0.0)[self._places]
        if self.has_marks:
            probs[self.vocab.encode([_BEGIN])] = 0
        return np.asarray(probs)

    def encode(self, text: str, *, with_separators: bool = True) -> tuple[Stream, TokensInText]:
        """Return a text as a stream, with sentence marks if the model predicts the end of a sentence."""
        if not self.has_marks:
            return super().encode(text, with_separators=with_separators)
        lines = [self.vocab.tokenize(line) for line in text.split("\n")]
        tokens = [_BEGIN, *(token for line in lines for token in [*line, _END])]
        ids, begin = self.vocab.encode(tokens), self.vocab.encode([_BEGIN])
        ends = np.cumsum([len(line) + 1 for line in lines])
        read = np.insert(ids, ends[:-1] + 1, begin)
        is_scored = np.insert(np.ones(len(ids), bool), ends[:-1] + 1, False)
        is_word = np.ones(len(ids), bool)
        is_word[[0, *ends]] = False
        places = np.zeros(len(ids), np.int64)
        places[is_word] = anchors(text, self.vocab, [])
        # The end of a sentence is where its line ends.
        places[ends] = np.minimum(np.cumsum([len(line) + 1 for line in text.split("\n")]) - 1, len(text) - 1)
        # The last line ends too.
        stream = Stream(
            input_ids=read, is_scored=is_scored, scored_chars=len(text) + 1, ends=np.maximum.accumulate(places) + 1,
            unknown_costs=unknown_costs(self.vocab, tokens, ids), unknown_share=unknown_share(ids),
            separator_nll=separator_nll(text.split("\n"), "", None),
        )  # fmt: skip
        return stream, TokensInText(text, self.vocab, tokens, places, ~is_word)


class _ArpaReader(RowReader):
    def __init__(self, model: ArpaLanguageModel) -> None:
        self._model = model
        self._context: Ids = model.vocab.encode([_BEGIN] if model.has_marks else [])

    def read(self, token: int) -> None:
        self._context = np.append(self._context, token)[-max(self._model.model.counts.max_order - 1, 1) :]

    def next_probs(self) -> Probs:
        return self._model.next_probs(self._context)
