"""Scores models over words as models over characters."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_text
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.ngrams.counting import count_ngrams
from seqlm.ngrams.model_files import load_kneser_ney
from seqlm.ngrams.models import KneserNey, NGramModel
from seqlm.score.blanks import estimate_blanks
from seqlm.score.by_characters import Lexicon, nats_by_characters
from seqlm.score.measures import DYNAMIC, STRONGEST, Score
from seqlm.score.settings import ScoreParams
from seqlm.score.splits import Streams, spelling_model
from seqlm.vocab.streams import SPLITS, load_split
from seqlm.vocab.vocabulary import Vocab

_MOST_UNKNOWN = 0.5
"""Where more of val's words are unknown, as in scripts without spaces, their spelling alone would predict."""
_NAME = "char-by-word-kneser-ney-"


def score_by_characters(layout: Layout, params: ScoreParams, streams: Streams) -> Iterator[Score]:
    """Yield the score of the Kneser-Ney model over words, and of one that goes on counting.

    There are none where train is too long, or most words of val are unknown. ``streams`` are those of
    characters; the model that goes on counting is scored on val and test.
    """
    train, words = load_split(layout.corpus("word"), "train", mmap=True), Vocab.load(layout.vocab("word"), "word")
    if len(train) > params.by_characters or words.splits["val"].unknown_share > _MOST_UNKNOWN:
        return
    characters = Vocab.load(layout.vocab("char"), "char")
    lexicon = Lexicon(words.tokens, spelling_model(words), characters.tokens)
    blanks = estimate_blanks(read_text(layout.split("train")), characters.line_separator)

    def score(
        splits: Iterable[str], model_after: Callable[[Sequence[int]], NGramModel], num_times: int
    ) -> dict[str, Nats]:
        def nats(ids: NDArray[np.integer]) -> Nats:
            return nats_by_characters(lexicon, blanks, model_after, characters.decode(ids.tolist()), num_times)

        return {split: streams[split].nats(nats) for split in splits}

    model = load_kneser_ney(layout.ngrams("word"), len(words))
    yield Score(f"{_NAME}{model.order}", "char", score(SPLITS, lambda _: model, 1), {STRONGEST: False})
    if params.dynamic_counts is None:
        return
    order = min(params.dynamic_counts.order["word"], len(train))

    def counting_on(read: Sequence[int]) -> NGramModel:
        return KneserNey(count_ngrams(np.concatenate([train, np.array(read, np.int64)]), len(words), order), order)

    found = score(("val", "test"), counting_on, params.dynamic_counts.num_times)
    yield Score(f"{_NAME}{order}{DYNAMIC}", "char", found)
