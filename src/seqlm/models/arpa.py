"""n-gram models from ARPA files: those that other programs wrote over words, and those that this
project writes.

If a model predicts the end of a sentence, each line of a text is a sentence: like KenLM's
``query``, the model begins it after ``<s>`` and predicts ``</s>`` after its last word. Otherwise a
text is one stream of tokens. The marks are no text: what is spelt like them in a text is a word.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np

from seqlm.core.errors import DataError
from seqlm.models.encoding import EncodedText, nll_of_shapes, word_shape
from seqlm.models.info import ModelInfo
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import EvolvingCounts, NGram
from seqlm.models.reader import Probs, Reader
from seqlm.ngrams.arpa import MARKS, read_arpa
from seqlm.vocab.kinds import BYTE_TOKENS, token_kind
from seqlm.vocab.separators import BLANKS
from seqlm.vocab.vocabulary import Vocab

By = Literal["char", "word"]


class _ArpaVocab(Vocab):
    def join(self, tokens: Iterable[str]) -> str:
        text = super().join(tokens)  # a word that is a line end is the end of a sentence
        return text if self.kind == "char" else text.replace(" \n", "\n").replace("\n ", "\n")


class ArpaLanguageModel(NGram):
    """An n-gram model from an ARPA file. It does not clean texts."""

    write = LanguageModel.write  # its counts are not in the file

    def __init__(self, path: Path, by: By | None = None, *, eos: bool = True) -> None:
        """Read a file; the arguments are those of :func:`seqlm.open_arpa`.

        Raises DataError as :func:`read_arpa` does.
        """
        model = read_arpa(path)
        self.warnings, self._marks, self._eos = list(model.warnings), model.marks, eos
        if not set(BYTE_TOKENS).isdisjoint(model.tokens):
            raise DataError(
                f"{path}: over subwords, whose tokenizer an ARPA file lacks: "
                "use the model of its run"
            )
        words = [token for token in model.tokens[1:] if token not in ("", "\n")]
        if by is None:
            is_char = all(len(word) == 1 for word in words)
            by = "char" if is_char and not model.marks else "word"
            if is_char and set(BLANKS).isdisjoint(words):
                self.warnings.append(
                    f"{model.file}: all its tokens are single characters: it is read as a model "
                    f'over {token_kind(by).noun}s; by="word" or by="char" decides'
                )
        separator = "\n" if by == "word" or (not model.marks and "\n" in model.tokens) else ""
        info = ModelInfo(
            model.file,
            "ngram",
            by,
            0,
            counted_token=by,
            smoothing=model.smoothing,
            order=model.order,
        )
        vocab = _ArpaVocab(by, model.tokens, [0] * len(model.tokens), separator, {})
        super().__init__(info, vocab, EvolvingCounts.fixed(model))
        if model.marks:  # a reader has read <s>, and a prefix goes on without </s>
            self._unread = slice(1, -1)

    def _reader(self) -> Reader:
        reader = super()._reader()
        return _SentenceReader(reader, *self._marks) if self._marks else reader

    def encode(self, context: str, text: str) -> EncodedText:
        """Return a text as tokens, with sentence marks if the model predicts the end of a
        sentence."""
        if not self._marks:
            return super().encode(context, text)
        begin, end = self._marks
        ids, tokens, lengths, scored = list[int](), list[str](), list[int](), list[bool]()
        for line in f"{context}{text}".split("\n"):
            words = self.vocab.tokenize(line)
            ids += [begin, *self.vocab.encode(words).tolist(), end]
            tokens += [MARKS[0], *words, MARKS[1]]
            lengths += [0, *map(len, words), 0]
            scored += [False, *[True] * len(words), self._eos]
        is_scored = np.array(scored)
        if context:
            is_scored[: len(self.vocab.tokenize(context)) + 2 * context.count("\n") + 1] = False
        num_ends = text.count("\n") + 1 if self._eos else 0
        shape = word_shape(context, text) if self.vocab.kind == "word" else ""
        return EncodedText.from_tokens(
            self.vocab,
            text,
            tokens,
            np.array(ids),
            is_scored,
            lengths=np.array(lengths),
            # Each line ends with a character, the last one too.
            num_chars=len(text) - text.count("\n") + num_ends,
            separator_nll=nll_of_shapes(tuple(shape.split("\n")), ""),
        )


class _SentenceReader(Reader):
    """Reads the mark that begins a sentence at the beginning and after each end of one, and nowhere
    else."""

    def __init__(self, reader: Reader, begin: int, end: int) -> None:
        self._reader, self._begin, self._end = reader, begin, end
        reader._read(begin)

    def _read(self, token_id: int) -> None:
        if token_id != self._begin:
            self._reader._read(token_id)
            if token_id == self._end:
                self._reader._read(self._begin)

    def next_probs(self) -> Probs:
        return self._reader.next_probs()
