"""The tables that the evaluation leaves behind, and the passages that the page shows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.evaluate.diagnostics import calibration_error, calibration_table, class_table, position_table
from seqlm.score.heldout.splits import Stream, Streams
from seqlm.score.store import Score
from seqlm.score.surprisal_view import passage
from seqlm.vocab.kinds.registry import KINDS, Kind, kind_of, kind_of_model
from seqlm.vocab.vocabulary import Vocab

_MAX_PASSAGES = 8


def history_table(layout: Layout, runs: Sequence[str]) -> pd.DataFrame:
    """Return the runs' histories as one table."""
    return pd.concat([read_csv(layout.reports("train", run, "history.csv")) for run in runs], ignore_index=True)


def order_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return held-out bits per character of the n-gram models: smoothing, order, bits_per_character."""
    found = table["model"].str.extract(rf"^((?:{'|'.join(KINDS)})-(?:laplace|kneser-ney))-(\d+)$")
    rows = pd.DataFrame(
        {"smoothing": found[0], "order": pd.to_numeric(found[1]), "bits_per_character": table["test_bits"]}
    ).dropna(subset=["smoothing"])
    return rows.astype({"order": int}).sort_values(["smoothing", "order"], ignore_index=True)


def diagnostic_tables(
    layout: Layout, scores: Sequence[Score], test: Stream
) -> Iterator[tuple[str, pd.DataFrame | dict[str, Any]]]:
    """Yield how surprisal depends on context, on the class of character and on confidence.

    ``scores`` are the models of characters that are shown, in their order; ``test`` is the
    text that they were scored on, as characters.
    """
    vocab = Vocab.load(layout.vocab("char"), "char")
    characters = "".join(token for text in test.passages for token in vocab.tokenize(text.read()))
    yield "positions", position_table(scores)
    yield (
        "classes",
        class_table({score.name: test.with_unknown_cost(score.nats["test"]) for score in scores}, characters),
    )
    calibration = calibration_table(scores)
    yield "calibration", calibration
    yield "calibration", calibration_error(calibration)


def passages(
    layout: Layout,
    scores: Sequence[Score],
    streams: Mapping[Kind, Streams],
    ranked: Iterable[str],
    num_chars: int,
) -> dict[str, dict[str, Any]]:
    """Return the beginning of test with each token's surprisal, under all runs and the best model that counts.

    ``ranked`` names the models, the best on test first. Unknown tokens are charged as in the
    bits per character of the table.
    """
    by_name, ranked = {score.name: score for score in scores}, list(ranked)
    names = [name for name in ranked if kind_of_model(name) is None]
    for kind in KINDS:
        names += [name for name in ranked if name.startswith(f"{kind}-kneser-ney") and not by_name[name].adapts][:1]
    tokens: dict[Kind, list[str]] = {}
    found = {}
    for name in names[:_MAX_PASSAGES]:
        score = by_name[name]
        test = streams[score.kind]["test"]
        if score.kind not in tokens:
            vocab = Vocab.load(layout.vocab(score.kind), score.kind)
            tokens[score.kind] = vocab.tokenize(test.passages[0].read())
        nats = test.with_unknown_cost(score.nats["test"])
        found[name] = passage(kind_of(score.kind), tokens[score.kind], nats, num_chars)
    return found
