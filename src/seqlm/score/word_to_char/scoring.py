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
from seqlm.ngrams.models.storage import load_kneser_ney
from seqlm.score.heldout.splits import Ids, Streams, read_streams
from seqlm.score.ngrams.dynamic import recounted_on
from seqlm.score.settings import DynamicCountsParams, ScoreParams
from seqlm.score.store import BEST_OF_KIND, DYNAMIC, Score, save_all
from seqlm.score.word_to_char.reading import Lexicon, ModelAfter, nats_by_characters
from seqlm.score.word_to_char.separators import estimate_blanks
from seqlm.vocab.corpus_building import SPLITS, load_split
from seqlm.vocab.vocabulary import Vocab

_MOST_UNKNOWN = 0.5
"""Where more of val's words are unknown, as in scripts without spaces, their spelling alone would predict."""
BY_WORD = "char-by-word-kneser-ney-"
"""What the names of these models begin with; the order follows."""


def score_by_characters(layout: Layout, params: ScoreParams, log: Log) -> None:
    """Score the Kneser-Ney model over words, and one that goes on counting, on characters.

    There are none, as it says, where train is too long or most words of val are unknown.
    """
    words, folder = Vocab.load(layout.vocab("word"), "word"), layout.scores_by_characters
    if reason := _why_not(words, params.by_characters):
        log(f"words are not read as characters: {reason}")
        save_all([], folder, {}, log)
        return
    streams = read_streams(layout, "char", params.max_tokens)
    save_all(_scores_by_characters(layout, words, params.dynamic_counts, streams), folder, streams, log)


class WordsAsCharacters:
    """The words of a corpus, and all that reads a model over them as one over its characters."""

    def __init__(self, layout: Layout, words: Vocab) -> None:
        """Learn from train what words there are and what stands between them."""
        self._characters = Vocab.load(layout.vocab("char"), "char")
        self._lexicon = Lexicon(words.tokens, words.counts, self._characters.tokens)
        self._blanks = estimate_blanks(read_text(layout.split("train")), self._characters.line_separator)

    def nats(self, ids: NDArray[np.integer], model_after: ModelAfter, num_times: int = 1) -> Nats:
        """Return -log p of characters 2..N, given as ids; see :func:`nats_by_characters`."""
        characters = self._characters.decode(ids.tolist())
        return nats_by_characters(self._lexicon, self._blanks, model_after, characters, num_times)


def _scores_by_characters(
    layout: Layout, words: Vocab, dynamic: DynamicCountsParams | None, streams: Streams
) -> Iterator[Score]:
    reader, model = WordsAsCharacters(layout, words), load_kneser_ney(layout.ngrams("word"), len(words))
    static = partial(reader.nats, model_after=lambda _: model)
    yield Score(f"{BY_WORD}{model.order}", "char", _found(streams, SPLITS, static), {BEST_OF_KIND: False})
    train = load_split(layout.corpus("word"), "train", mmap=True, vocab=words)
    if dynamic is not None and len(train) <= dynamic.max_tokens:
        order = dynamic.order_for("word", len(train))
        count = partial(recounted_on, train, vocab_size=len(words), order=order)
        learning = partial(reader.nats, model_after=count, num_times=dynamic.num_times)
        yield Score(f"{BY_WORD}{order}{DYNAMIC}", "char", _found(streams, ("val", "test"), learning))


def _found(streams: Streams, splits: Sequence[str], score: Callable[[Ids], Nats]) -> dict[str, Nats]:
    """Return the surprisals of some splits. It goes character by character, in Python: processes share them out."""
    nats = map_in_processes(lambda split: streams[split].nats(score), splits, default_processes())
    return dict(zip(splits, nats, strict=True))


def _why_not(words: Vocab, most_words: int) -> str | None:
    num_words, unknown = words.splits["train"].num_tokens, words.splits["val"].unknown_share
    if num_words > most_words:
        return f"train has {num_words:,} of them, score.by_characters allows {most_words:,}"
    return f"{unknown:.0%} of val are unknown" if unknown > _MOST_UNKNOWN else None
