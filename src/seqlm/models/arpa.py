"""n-gram models from ARPA files: those that other programs wrote over words, and those that this
project writes.

If a model predicts the end of a sentence, each line of a text is a sentence: like KenLM's
``query``, the model begins it after ``<s>`` and predicts ``</s>`` after its last word. Otherwise a
text is one stream of tokens.
"""

from pathlib import Path

import numpy as np

from seqlm.core.errors import DataError
from seqlm.models.encoding import EncodedText
from seqlm.models.info import ModelInfo
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import EvolvingCounts, NGram
from seqlm.models.reader import Reader
from seqlm.ngrams.arpa import MARKS, read_arpa
from seqlm.ngrams.counts.kernels import NEVER
from seqlm.vocab.kinds import BYTE_TOKENS, Kind
from seqlm.vocab.separators import BLANKS, count_separators
from seqlm.vocab.vocabulary import UNKNOWN, Vocab

_BEGIN, _END = MARKS


class ArpaLanguageModel(NGram):
    """An n-gram model from an ARPA file. It does not clean texts."""

    write = LanguageModel.write  # its counts are not in the file

    def __init__(self, path: Path) -> None:
        """Read a file. The model is one over characters if all its tokens are, without sentence
        marks.

        Raises DataError as :func:`read_arpa` does.
        """
        model = read_arpa(path)
        tokens, self.warnings = model.tokens, model.warnings
        if not set(BYTE_TOKENS).isdisjoint(tokens):
            raise DataError(
                f"{path}: over subwords, whose tokenizer an ARPA file lacks: "
                "use the model of its run"
            )
        self._lacks_unknown = model.unigram[0] == 0
        has_both = set(MARKS) <= set(tokens)
        self.has_marks = has_both and bool(model.listed[0][tokens.index(_END)] > 10**NEVER)
        words = [token for token in tokens if token not in (UNKNOWN, *MARKS)]
        kind: Kind = (
            "char" if not self.has_marks and all(len(word) == 1 for word in words) else "word"
        )
        if kind == "char" and set(BLANKS).isdisjoint(words):
            message = (
                "all its tokens are single characters, so it is read as a model over characters"
            )
            self.warnings = [*self.warnings, f"{model.file}: {message}"]
        separator = "\n" if kind == "word" or "\n" in words else ""
        info = ModelInfo(
            model.file,
            "ngram",
            kind,
            0,
            counted_token=kind,
            smoothing=model.smoothing,
            order=model.order,
        )
        super().__init__(
            info, Vocab(kind, tokens, [0] * len(tokens), separator, {}), EvolvingCounts.fixed(model)
        )
        if self.has_marks:  # a reader has read <s>, and a prefix goes on without </s>
            self._unread = slice(1, -1)

    def reader(self) -> Reader:
        reader = super().reader()
        for token in self.vocab.encode([_BEGIN] if self.has_marks else []).tolist():
            reader.read(token)
        return reader

    def encode(self, context: str, text: str) -> EncodedText:
        """Return a text as tokens, with sentence marks if the model predicts the end of a sentence.

        Raises DataError for an unknown token if the file has no ``<unk>``.
        """
        encode = self._encode_lines if self.has_marks else super().encode
        encoded = encode(context, text)
        if self._lacks_unknown and not encoded.input_ids.all():
            raise DataError(
                f"{self.name}: lists no {UNKNOWN}, and the text has words that it lacks"
            )
        return encoded

    def _encode_lines(self, context: str, text: str) -> EncodedText:
        words = [self.vocab.tokenize(line) for line in f"{context}{text}".split("\n")]
        tokens = [token for line in words for token in (_BEGIN, *line, _END)]
        ends = np.cumsum([len(line) + 2 for line in words]) - 1
        begins = np.append(0, ends[:-1] + 1)
        lengths = self.vocab.lengths(tokens)
        lengths[begins] = lengths[ends] = 0
        is_scored = np.arange(len(tokens)) > len(self.vocab.tokenize(context)) + 2 * context.count(
            "\n"
        )
        is_scored[begins] = False
        separator_nll = count_separators((context[-1:] + text).split("\n"), "").nll(None)
        return EncodedText.from_tokens(
            self.vocab,
            text,
            tokens,
            is_scored,
            lengths=lengths,
            num_chars=len(text) + 1,  # each line ends with a character, the last one too
            separator_nll=separator_nll,
        )
