"""Scores models over words as models over characters."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_text
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.core.progress import Say
from seqlm.ngrams.model_files import load_kneser_ney
from seqlm.score.blanks import estimate_blanks
from seqlm.score.by_characters import Lexicon, ModelAfter, nats_by_characters
from seqlm.score.dynamic_counts import count_on
from seqlm.score.measures import DYNAMIC, STRONGEST, Score, save_all
from seqlm.score.settings import DynamicCountsParams, ScoreParams
from seqlm.score.splits import Streams, read_streams
from seqlm.vocab.streams import SPLITS, load_split
from seqlm.vocab.vocabulary import Vocab

_MOST_UNKNOWN = 0.5
"""Where more of val's words are unknown, as in scripts without spaces, their spelling alone would predict."""
_NAME = "char-by-word-kneser-ney-"


def score_by_characters(layout: Layout, params: ScoreParams, say: Say) -> None:
    """Score the Kneser-Ney model over words, and one that goes on counting, on characters.

    There are none, as it says, where train is too long or most words of val are unknown.
    """
    words, folder = Vocab.load(layout.vocab("word"), "word"), layout.scores_by_characters
    if reason := _why_not(words, params.by_characters):
        say(f"words are not read as characters: {reason}")
        save_all([], folder, {}, say)
        return
    streams = read_streams(layout, "char", params.max_tokens)
    save_all(_scores_by_characters(layout, words, params.dynamic_counts, streams), folder, streams, say)


def _scores_by_characters(
    layout: Layout, words: Vocab, dynamic: DynamicCountsParams | None, streams: Streams
) -> Iterator[Score]:
    characters = Vocab.load(layout.vocab("char"), "char")
    lexicon = Lexicon(words.tokens, words.counts, characters.tokens)
    blanks = estimate_blanks(read_text(layout.split("train")), characters.line_separator)

    def score(splits: Iterable[str], model_after: ModelAfter, num_times: int) -> dict[str, Nats]:
        def nats(ids: NDArray[np.integer]) -> Nats:
            return nats_by_characters(lexicon, blanks, model_after, characters.decode(ids.tolist()), num_times)

        return {split: streams[split].nats(nats) for split in splits}

    model = load_kneser_ney(layout.ngrams("word"), len(words))
    yield Score(f"{_NAME}{model.order}", "char", score(SPLITS, lambda _: model, 1), {STRONGEST: False})
    train = load_split(layout.corpus("word"), "train", mmap=True, vocab=words)
    if dynamic is not None and len(train) <= dynamic.max_tokens:
        order = min(dynamic.order["word"], len(train))
        found = score(("val", "test"), partial(count_on, train, vocab_size=len(words), order=order), dynamic.num_times)
        yield Score(f"{_NAME}{order}{DYNAMIC}", "char", found)


def _why_not(words: Vocab, most_words: int) -> str | None:
    num_words, unknown = words.splits["train"].num_tokens, words.splits["val"].unknown_share
    if num_words > most_words:
        return f"train has {num_words:,} of them, score.by_characters allows {most_words:,}"
    return f"{unknown:.0%} of val are unknown" if unknown > _MOST_UNKNOWN else None
