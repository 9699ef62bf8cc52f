"""n-gram models from ARPA files: those that other programs wrote over words, and those that this project writes.

If a model predicts the end of a sentence, each line of a text is a sentence: like KenLM's ``query``, the model begins
it after ``<s>`` and predicts ``</s>`` after its last word. Otherwise a text is one stream of tokens.
"""

from pathlib import Path

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.progress import Log
from seqlm.models.info import ModelInfo
from seqlm.models.language_model import LanguageModel, Reader
from seqlm.models.ngrams import NGram, Recounting
from seqlm.models.spelling import unknown_costs
from seqlm.models.surprisals import EncodedText, anchors
from seqlm.ngrams.arpa import MARKS, ArpaModel, read_arpa
from seqlm.ngrams.counts.kernels import NEVER
from seqlm.vocab.kinds import BYTE_TOKENS, Kind
from seqlm.vocab.separators import count_separators
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


class ArpaLanguageModel(NGram):
    """An n-gram model from an ARPA file. It does not clean texts."""

    write = LanguageModel.write  # its counts are not in the file

    def __init__(self, model: ArpaModel) -> None:
        """Take a model that was read. It is one over characters if all its tokens are, without sentence marks."""
        tokens = model.tokens
        self._lacks_unknown = model.unigram[0] == 0
        has_both = set(MARKS) <= set(tokens)
        self.has_marks = has_both and bool(model.listed[0][tokens.index(_END)] > 10**NEVER)
        words = [token for token in tokens if token not in (UNKNOWN, *MARKS)]
        kind: Kind = "char" if not self.has_marks and all(len(word) == 1 for word in words) else "word"
        separator = "\n" if kind == "word" or "\n" in words else ""
        info = ModelInfo(model.file, "ngram", kind, 0, counted_token=kind, smoothing=model.smoothing, order=model.order)
        super().__init__(info, Vocab(kind, tokens, [0] * len(tokens), separator, {}), Recounting.fixed(model))

    def reader(self) -> Reader:
        """Return a reader of a new text, the beginning of a sentence."""
        reader = super().reader()
        for token in self.vocab.encode([_BEGIN] if self.has_marks else []).tolist():
            reader.read(token)
        return reader

    def encode(self, text: str, begin: int = 0) -> EncodedText:
        """Return a text as tokens, with sentence marks if the model predicts the end of a sentence.

        Raises DataError for an unknown token if the file has no ``<unk>``.
        """
        found = self._encode_lines(text, begin) if self.has_marks else super().encode(text, begin)
        if self._lacks_unknown and not found.ids.all():
            raise DataError(f"{self.name}: lists no {UNKNOWN}, and the text has words that it lacks")
        return found

    def _encode_lines(self, text: str, begin: int) -> EncodedText:
        lines = text.split("\n")
        words = [self.vocab.tokenize(line) for line in lines]
        read = [token for line in words for token in (_BEGIN, *line, _END)]
        ends = np.cumsum([len(line) + 2 for line in words]) - 1
        begins = np.append(0, ends[:-1] + 1)
        is_word = np.ones(len(read), bool)
        is_word[[*begins, *ends]] = False
        places = np.zeros(len(read), np.int64)
        places[is_word] = anchors(text, self.vocab, [])
        # The end of a sentence is where its line ends.
        places[ends] = np.clip(np.cumsum([len(line) + 1 for line in lines]) - 1, 0, max(len(text) - 1, 0))
        is_scored = places >= begin
        is_scored[begins] = False
        ids, own = self.vocab.encode(read), [read[place] for place in np.flatnonzero(is_scored)]
        # The last line ends too.
        return EncodedText(
            vocab=self.vocab, text=text, begin=begin, tokens=read, ids=ids, is_scored=is_scored, scored_tokens=own,
            spelling=unknown_costs(self.vocab, own, ids[is_scored]), num_chars=len(text) - begin + 1,
            separator_nll=count_separators(text[begin:].split("\n"), "").nll(None), known_anchors=places[is_scored],
        )  # fmt: skip
