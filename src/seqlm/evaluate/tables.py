"""The tables beside the main one, and the passages that the page shows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.evaluate.columns import Result
from seqlm.evaluate.diagnostics import calibration_error, calibration_table, class_table, position_table
from seqlm.heldout.store import Heldout
from seqlm.score.store import Score
from seqlm.score.surprisal_view import passage
from seqlm.vocab.kinds import KINDS, token_kind

_MAX_PASSAGES = 8


def history_table(layout: Layout, runs: Sequence[str]) -> pd.DataFrame:
    """Return the runs' histories as one table."""
    return pd.concat([read_csv(layout.reports("train", run, "history.csv")) for run in runs], ignore_index=True)


def order_table(results: Sequence[Result]) -> pd.DataFrame:
    """Return bits per character on test of the static n-gram models: token, smoothing, order, bits_per_character."""
    infos = [(result.score.info, result.bits("test")) for result in results]
    rows = [
        (info.token, info.smoothing, info.order, bits)
        for info, bits in infos
        if info.counts_predicted_token and info.order and not info.dynamic
    ]
    table = pd.DataFrame(rows, columns=["token", "smoothing", "order", "bits_per_character"])
    return table.sort_values(["token", "smoothing", "order"], ignore_index=True)


def diagnostic_tables(scores: Sequence[Score], heldout: Heldout) -> Iterator[tuple[str, pd.DataFrame | dict[str, Any]]]:
    """Yield how surprisal depends on context and on the class of character, and how well models are calibrated.

    ``scores`` are models over characters; ``heldout`` is the text that they were scored on.
    """
    test, characters = heldout.text("test"), "".join(heldout.test_tokens())
    yield "positions", position_table(scores)
    yield "classes", class_table({s.name: test.with_unknown_cost(s.nats["test"]) for s in scores}, characters)
    calibration = calibration_table(scores)
    yield "calibration", calibration
    yield "calibration", calibration_error(calibration)


def passages(results: Sequence[Result], heldouts: Mapping[str, Heldout], num_chars: int) -> dict[str, dict[str, Any]]:
    """Return the beginning of test with the surprisal of each token, under networks, mixtures and n-gram models.

    Only the best static n-gram model over each kind of token is shown. ``results`` have the best model first.
    """
    scores = [result.score for result in results]
    shown = [score for score in scores if score.info.family != "ngram"]
    for kind in KINDS:
        static = [s for s in scores if s.info.counts_predicted_token and s.info.token == kind and not s.info.dynamic]
        shown += static[:1]
    tokens = {kind: heldout.test_tokens() for kind, heldout in heldouts.items()}
    found = {}
    for score in shown[:_MAX_PASSAGES]:
        token = score.info.token
        nats = heldouts[token].text("test").with_unknown_cost(score.nats["test"])
        found[score.name] = passage(token_kind(token), tokens[token], nats, num_chars)
    return found
