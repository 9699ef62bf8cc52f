"""Dynamic counts: a Kneser-Ney model that keeps counting the text that it has predicted."""

from collections.abc import Sequence

import numpy as np

from seqlm.core.metrics import Nats
from seqlm.heldout.scored_text import Ids
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey


def recounted_on(train: Ids, predicted: Sequence[int] | Ids, vocab_size: int, order: int) -> KneserNey:
    """Return a model of ``train``, which has at least ``order`` tokens, followed by the text predicted so far."""
    text = np.concatenate([train, np.asarray(predicted, np.int64)])
    return KneserNey(count_ngrams(text, vocab_size, order), order)


def recounted_nll(train: Ids, ids: Ids, *, vocab_size: int, order: int, num_updates: int) -> Nats:
    """Return -log p of tokens 2 to N of a stream, shape ``(N - 1,)``, each predicted before it is counted.

    After each of ``num_updates`` equal parts everything is counted again with the text so far.
    """
    found = []
    for part in equal_parts(max(len(ids) - 1, 0), num_updates):
        model = recounted_on(train, ids[: part.start + 1], vocab_size, order)
        begin = max(part.start - order + 1, 0)
        found.append(token_nll(model, ids[begin : part.stop + 1])[part.start - begin :])
    return np.concatenate(found) if found else np.empty(0)


def equal_parts(length: int, number: int) -> list[range]:
    """Return the positions of a text in ``number`` equal parts, of which the last is shorter; none is empty."""
    size = max(-(-length // number), 1)
    return [range(start, min(start + size, length)) for start in range(0, length, size)]
