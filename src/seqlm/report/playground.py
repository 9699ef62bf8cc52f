"""Writes the playground: one page with the models themselves, which compute in the reader's browser.

The page holds the weights of the networks and the counts of the n-gram models over characters. Its scripts, in
``templates/playground/``, evaluate the formulas of :mod:`seqlm.networks` and :mod:`seqlm.ngrams.models`.
"""

import base64
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout
from seqlm.generate.samples import longest_common_substring
from seqlm.networks.building import read_weights
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.models.registry import load_counts
from seqlm.report.rendering import render
from seqlm.train.settings import run_names
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab

MAX_PAGE = 8_000_000
"""Bytes of the largest page."""
_CODE = 120_000
"""Bytes of the page without its numbers and texts, at most."""
_ROUNDED = {"scratch": 3, "rnn": 3, "gru": 2, "lstm": 2, "transformer": 2}
"""Bytes per weight of networks that do not fit in single precision, for each kind that the page can compute.

A network without gates carries a rounding on from character to character, so its weights keep 16 binary digits; those
of the others keep 11.
"""
_SMOOTHINGS = {"uniform", "laplace", "kneser-ney"}
"""Smoothing methods that the page can compute."""
_PASSAGE = 20_000
"""Characters of val and of test in the page, from their beginnings."""
_SEARCHED = 1_000_000
"""Characters of train in which copied text is looked for."""
_STYLES = ("page.css", "playground/page.css")
_SCRIPTS = (
    "arrays", "ngrams", "networks", "transformer", "sampling", "shannon", "units", "reading", "dom", "typing", "inside",
    "history", "game", "main",
)  # fmt: skip


def build_playground(layout: Layout, title: str) -> str:
    """Return the page as HTML.

    Raises DataError if a model, a table or the corpus is missing or broken.
    """
    vocab = Vocab.load(layout.vocab("char"), "char")
    counts, settings = load_counts(layout.ngrams("char"), vocab.key)
    blocks: dict[str, str] = {}
    unsupported = "this page cannot compute this smoothing method"
    left_out = [{"name": f"n-grams, {name}", "why": unsupported} for name in settings if name not in _SMOOTHINGS]
    tables = _ngram_tables(counts, blocks, left_out)
    networks, runs = [], {run: read_json(layout.config(run)) for run in run_names(layout.configs)}
    passages = {split: load_split(layout.corpus("char"), split)[:_PASSAGE] for split in ("val", "test")}
    blocks |= {split: _base64([_smallest(ids)]) for split, ids in passages.items()}
    history = {run: _history(layout, run, config, vocab) for run, config in runs.items()}
    stored = _read_networks(layout, vocab, runs, left_out)
    sizes = {run: (sum(array.size for array in weights.values()), _ROUNDED[network["model"]])
             for run, (network, weights) in stored.items()}  # fmt: skip
    used = _CODE + len(json.dumps([history, vocab.tokens])) + sum(map(len, blocks.values()))
    precisions = _precisions(sizes, (MAX_PAGE - used) * 3 // 4)
    for run, (network, weights) in stored.items():
        if run not in precisions:
            left_out.append({"name": run, "why": f"too large ({math.prod(sizes[run]) / 1e6:,.1f} MB)"})
            continue
        shapes = [{"name": name, "shape": list(array.shape)} for name, array in weights.items()]
        kept = {key: network[key] for key in ("model", "activation", "num_layers", "num_heads", "num_steps")}
        networks.append({"name": run, **kept, "arrays": shapes, "type": f"float{8 * precisions[run]}"})
        blocks[f"weights-{run}"] = _base64(_rounded(array, precisions[run]) for array in weights.values())
    table = read_csv(layout.reports("evaluate", "table.csv"))
    data = {
        "normalise": vocab.normalise,
        "separator": vocab.line_separator,
        "tokens": vocab.tokens,
        "ngrams": {"tables": tables, "starts": counts.starts, "settings": settings},
        "networks": networks,
        "leftOut": left_out,
        "bits": table.set_index("model")["test_bits"].dropna().to_dict(),
        "labels": table.set_index("model")["label"].to_dict(),
        "history": history,
        "passages": {split: {"length": len(ids), "type": str(_smallest(ids).dtype)} for split, ids in passages.items()},
    }
    corpus = read_json(layout.corpus_record)
    scripts = [f"playground/{name}.js" for name in _SCRIPTS]
    return render(
        "playground/page.html", [*_STYLES, *scripts], title=title, corpus=corpus, best=table.iloc[0], styles=_STYLES,
        scripts=scripts, data=data, blocks=blocks,
    )  # fmt: skip


def _ngram_tables(counts: NgramCounts, blocks: dict[str, str], left_out: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Put the tables of the orders that fit into half of the page into ``blocks``; return what describes them.

    A table is stored as three arrays: for each row of the order below, how many n-grams continue it; the last token of
    each n-gram; and its count.
    """
    described: list[dict[str, Any]] = []
    size = 0
    for order, table in enumerate(counts.tables, start=1):
        prefixes, tokens = table.split()
        children = np.bincount(prefixes, minlength=1 if table.below is None else len(table.below))
        arrays = [_smallest(array) for array in (children, tokens, np.asarray(table.counts))]
        encoded = _base64(arrays)
        size += len(encoded)
        if size > MAX_PAGE / 2:
            names = f"n-gram models of order {order}" + (f" to {counts.max_order}" if order < counts.max_order else "")
            left_out.append({"name": names, "why": "too large"})
            break
        described.append({"types": [str(array.dtype) for array in arrays], "lengths": [len(array) for array in arrays]})
        blocks[f"counts-{order}"] = encoded
    return described


def _read_networks(
    layout: Layout, vocab: Vocab, runs: dict[str, dict[str, Any]], left_out: list[dict[str, str]]
) -> dict[str, tuple[dict[str, Any], dict[str, NDArray[np.float32]]]]:
    """Return the settings and weights of the runs that the page can compute."""
    found = {}
    for run, config in runs.items():
        if config["token"] != "char":
            left_out.append({"name": run, "why": f"reads {config['token']} tokens, and this page characters"})
        elif config["model"] not in _ROUNDED:
            left_out.append({"name": run, "why": f"this page cannot compute networks of the kind {config['model']}"})
        else:
            network, weights = read_weights(layout.run(run), run, vocab.key)
            found[run] = network, {name: weights[name] for name in sorted(weights)}  # read in a random order
    return found


def _precisions(sizes: dict[str, tuple[int, int]], budget: int) -> dict[str, int]:
    """Return how many bytes a weight takes in each network, so that all fit into a number of bytes.

    ``sizes`` has the number of parameters of each network, and the fewest bytes of one. The largest networks are left
    out until the others fit with these; the smallest of the others are in single precision.
    """
    kept = sorted(sizes, key=lambda run: math.prod(sizes[run]))
    while (spare := budget - sum(math.prod(sizes[run]) for run in kept)) < 0 and kept:
        kept.pop()
    found = {}
    for run in kept:
        num_parameters, fewest = sizes[run]
        found[run] = 4 if (spare := spare - num_parameters * (4 - fewest)) >= 0 else fewest
    return found


def _rounded(weights: NDArray[np.float32], num_bytes: int) -> NDArray[Any]:
    """Return weights in half precision, in single precision, or between: then as bytes, without the lowest."""
    if num_bytes == 3:
        # Half of the lowest byte is added, so that the rest is rounded.
        return (weights.astype("<f4").view("<u4") + 128).view(np.uint8).reshape(-1, 4)[:, 1:]
    return weights.astype(f"f{num_bytes}")


def _history(layout: Layout, run: str, config: dict[str, Any], vocab: Vocab) -> dict[str, Any]:
    """Return the perplexities of a run by epoch, and its samples with how much of each is copied from its text."""
    table = read_csv(layout.reports("train", run, "history.csv"))
    columns = ["epoch", "train_perplexity", "val_perplexity"]
    rows = table[columns].astype(object).where(np.isfinite(table[columns]), None).to_numpy().tolist()
    path = layout.samples_of_run(run)
    stored: dict[str, Any] = read_json(path) if path.exists() else {"prefix": "", "samples": []}
    found = {"sampling": config["sampling"], "rows": rows, **stored}
    if config["token"] != "char":
        return found
    train = load_split(layout.corpus("char"), "train", mmap=True)[: config["max_tokens"]]
    text = vocab.join(vocab.decode(train[:_SEARCHED].tolist()))
    for sample in stored["samples"]:
        sample["copied"] = longest_common_substring(sample["text"], text)
    return found | {"trainedOn": len(train)}


def _smallest(array: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the array in the smallest unsigned type that holds it, at most 32 bits."""
    return array.astype(np.promote_types(np.min_scalar_type(int(array.max(initial=0))), np.uint8))


def _base64(arrays: Iterable[NDArray[Any]]) -> str:
    """Return the bytes of arrays, one after another and least significant byte first, as base64."""
    parts = (array.astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays)
    return base64.b64encode(b"".join(parts)).decode()
