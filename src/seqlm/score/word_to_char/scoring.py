"""Scores models over words as models over characters."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_text
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.core.processes import default_processes, map_in_processes
from seqlm.core.progress import Log
from seqlm.heldout.scored_text import Ids, Streams
from seqlm.heldout.store import read_streams
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import load_kneser_ney
from seqlm.score.model_info import ModelInfo
from seqlm.score.ngrams.dynamic import recounted_on
from seqlm.score.settings import DynamicCountsParams, ScoreParams
from seqlm.score.store import Score, if_better, save_scores, score_of
from seqlm.score.word_to_char.reading import (
    CharacterPredictor,
    Lexicon,
    ModelAfter,
    estimate_separators,
    word_to_char_nll,
)
from seqlm.vocab.corpus import SPLITS, load_split
from seqlm.vocab.vocabulary import Vocab

_MAX_UNKNOWN_SHARE = 0.5
"""If more of the words of val are unknown, as in scripts without spaces, only their spelling would predict."""


def score_word_to_char(layout: Layout, params: ScoreParams, log: Log) -> None:
    """Score the Kneser-Ney model over words on characters, with static and with dynamic counts.

    Nothing is scored, and the reason is logged, if train is too long or most words of val are unknown.
    """
    words, folder = Vocab.load(layout.vocab("word"), "word"), layout.scores_word_to_char
    if reason := _why_not(words, params.word_to_char.max_words):
        log(f"the model over words is not read as one over characters: {reason}")
        save_scores(folder, [], log)
        return
    streams = read_streams(layout, "char")
    save_scores(folder, _scores(layout, words, params.dynamic_counts, streams, log), log)


def _why_not(words: Vocab, max_words: int) -> str | None:
    num_words, unknown = words.splits["train"].num_tokens, words.splits["val"].unknown_share
    if num_words > max_words:
        return f"train has {num_words:,} words, score.word_to_char.max_words allows {max_words:,}"
    return f"{unknown:.0%} of the words of val are unknown" if unknown > _MAX_UNKNOWN_SHARE else None


class WordToCharReader:
    """Reads models over the words of a corpus as models over its characters."""

    def __init__(self, layout: Layout, words: Vocab) -> None:
        """Collect the words of train and estimate how they are separated."""
        self.characters = Vocab.load(layout.vocab("char"), "char")
        self._lexicon = Lexicon(words.tokens, words.counts, self.characters.tokens)
        self._separators = estimate_separators(read_text(layout.split("train")), self.characters.line_separator)

    def nll(self, ids: NDArray[np.integer], model_after: ModelAfter, num_updates: int = 1) -> Nats:
        """Return -log p of characters 2 to N, given as ids; see :func:`word_to_char_nll`."""
        characters = self.characters.decode(ids.tolist())
        return word_to_char_nll(self._lexicon, self._separators, model_after, characters, num_updates)

    def predictor(self, model: NGramModel) -> CharacterPredictor:
        """Return a reader of a new text, character by character."""
        return CharacterPredictor(self._lexicon, self._separators, model)

    def letter(self, character: str) -> str:
        """Return a token of the characters' vocabulary as the predictor expects it."""
        return self._lexicon.letter(character)

    def describe(self, order: int) -> ModelInfo:
        """Return the description of the Kneser-Ney model of this order over words, read as a model over characters."""
        return ModelInfo(
            f"char-by-word-{KneserNey.smoothing}-{order}",
            "ngram",
            "char",
            self.characters.num_chars["train"],
            counted_token="word",
            smoothing=KneserNey.smoothing,
            order=order,
        )


def _scores(
    layout: Layout, words: Vocab, dynamic: DynamicCountsParams | None, streams: Streams, log: Log
) -> Iterator[Score]:
    reader, model = WordToCharReader(layout, words), load_kneser_ney(layout.ngrams("word"), len(words))
    nats = _nats(streams, SPLITS, partial(reader.nll, model_after=lambda _: model))
    static = score_of(reader.describe(model.order), nats, streams)
    yield static
    train = load_split(layout.corpus("word"), "train", mmap=True, vocab=words)
    if dynamic is not None and len(train) <= dynamic.max_tokens:
        order = dynamic.order_for("word", len(train))
        recount = partial(recounted_on, train, vocab_size=len(words), order=order)
        score = partial(reader.nll, model_after=recount, num_updates=dynamic.num_updates)
        info = reader.describe(order).as_dynamic()
        yield from if_better(score_of(info, _nats(streams, ("val", "test"), score), streams), static, log)


def _nats(streams: Streams, splits: Sequence[str], score: Callable[[Ids], Nats]) -> dict[str, Nats]:
    """Return the surprisals of some splits. Reading is slow in Python, so processes share the splits."""
    nats = map_in_processes(lambda split: streams[split].nats(score), splits, default_processes())
    return dict(zip(splits, nats, strict=True))
