"""Dynamic counts: a Kneser-Ney model that goes on counting the text that it has predicted, beside what it counted."""

from collections.abc import Sequence

import numpy as np

from seqlm.core.metrics import Nats
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey, nats
from seqlm.score.heldout.splits import Ids


def recounted_on(train: Ids, read: Sequence[int] | Ids, vocab_size: int, order: int) -> KneserNey:
    """Return a model of ``train``, which is long enough for its order, and what was ``read`` behind it."""
    counted = np.concatenate([train, np.asarray(read, np.int64)])
    return KneserNey(count_ngrams(counted, vocab_size, order), order)


def recounted_nll(train: Ids, ids: Ids, *, vocab_size: int, order: int, num_times: int) -> Nats:
    """Return -log p of tokens 2..N of a stream, shape ``(N - 1,)``, under a model of ``train`` and what was predicted.

    After each of ``num_times`` equal pieces, the last of them shorter, all is counted anew with the text up to
    there; so every token is predicted before it is counted.
    """
    found = []
    for piece in pieces(max(len(ids) - 1, 0), num_times):
        model = recounted_on(train, ids[: piece.start + 1], vocab_size, order)
        begin = max(piece.start - order + 1, 0)
        found.append(nats(model, ids[begin : piece.stop + 1])[piece.start - begin :])
    return np.concatenate(found) if found else np.empty(0)


def pieces(length: int, number: int) -> list[range]:
    """Return the places of a text in so many equal pieces, the last of them shorter; none is empty."""
    size = max(-(-length // number), 1)
    return [range(start, min(start + size, length)) for start in range(0, length, size)]
