"""Writes the playground: one page with the models themselves, which compute in the reader's
browser.

The page holds the weights of networks and the counts of the n-gram models over characters. Its
scripts, in ``templates/playground/``, evaluate the formulas of :mod:`seqlm.networks` and
:mod:`seqlm.ngrams.models`.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout
from seqlm.models.info import NetworkDescription, read_description
from seqlm.networks.building import read_weights
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.registry import load_counts
from seqlm.pipeline.report.findings import showcase_models
from seqlm.pipeline.report.main_table import labels_by_model, read_main_table
from seqlm.pipeline.report.rendering import render_page
from seqlm.pipeline.train.configs import run_names
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab

MAX_PAGE = 4_500_000
"""Bytes of the largest page."""
_TEMPLATE_BYTES = 100_000
"""Bytes of the page without its numbers and texts, at most."""
_BITS = {"scratch": 25, "rnn": 26, "gru": 17, "lstm": 17}
"""Bits per weight, for each kind of network that the page can compute: a sign, five of an exponent,
and digits.

A network without gates carries a rounding on from character to character, so its weights keep 20
binary digits or more; those of the others keep 12.
"""
_ORDERS = (2, 3)
"""Orders of n-grams in the page, besides the highest."""
_PASSAGES = {"val": 1_600, "test": 10_000}
"""Characters in the page, from the beginning of each split."""
_MAX_EPOCHS = 120
_STYLES = ("page.css", "playground/page.css")
_COMPUTING, _SCRIPTS = (
    [f"playground/{name}.js" for name in names.split()]
    for names in (
        "arrays ngrams networks sampling units reading worker",
        "dom shannon typing writing inside history game main",
    )
)
"""The scripts that the page hands to its worker, and its own."""

Arrays = Sequence[tuple[NDArray[Any], int]]
"""Whole numbers from 0 on; each array with the bits of each of its numbers."""
Blocks = dict[str, str]
"""Name -> packed arrays."""
LeftOut = dict[str, str]
"""Model that is not on the page -> why."""


def build_playground(layout: Layout) -> str:
    """Return the page as HTML.

    Raises DataError if a model, a table or the corpus is missing or broken.
    """
    vocab, table = Vocab.load(layout.vocab("char"), "char"), read_main_table(layout)
    val, test = (
        load_split(layout.corpus("char"), split, vocab)[:size] for split, size in _PASSAGES.items()
    )
    history = {run: _history(layout, run) for run in run_names(layout.configs)}
    packed_val = [(val, num_bits(val))]
    blocks = {"val": pack_bits(packed_val)}
    ngrams, packed, left_out = _ngrams(layout, vocab)
    blocks |= packed
    texts = [json.dumps([history, vocab.tokens]), *blocks.values()]
    budget = MAX_PAGE - _TEMPLATE_BYTES - sum(map(len, texts))
    networks, packed, too_large = _networks(layout, vocab, table, budget)
    names = [model["name"] for model in (*ngrams["models"], *networks)]
    data = {
        "normalise": vocab.normalise,
        "joined": vocab.line_separator,
        "begin": vocab.encode(list(vocab.blank)).tolist(),
        "tokens": vocab.tokens,
        "ngrams": ngrams,
        "networks": networks,
        "chosen": sorted(showcase_models(names, table), key=history.__contains__),  # n-grams first
        "labels": labels_by_model(table),
        "history": history,
        "val": array_specs(packed_val)[0],
        "test": "".join(vocab.tokens[token] for token in test.tolist() if token),
    }
    return render_page(
        "playground/page.html",
        [*_STYLES, *_SCRIPTS],
        worker=True,
        corpus=read_json(layout.corpus_record),
        computing=_COMPUTING,
        has_unknown=not test.all(),
        data=data,
        blocks=blocks | packed,
        left_out=left_out | too_large,
    )


def _ngrams(layout: Layout, vocab: Vocab) -> tuple[dict[str, Any], Blocks, LeftOut]:
    """Describe and pack what Kneser-Ney models discount, of the orders that fit into half of the
    page.

    From order 2 on, a block has for each row of the order below how many n-grams continue it; the
    last token of each n-gram; its count, if there is a model of this order; and its count in models
    of higher orders.
    """
    counts, settings = load_counts(layout.ngrams("char"), vocab.key)
    models = KneserNey.build(counts, settings[KneserNey.smoothing])
    sizes = [
        len(table) * (num_bits(table.split()[1]) + num_bits(table.counts)) / 6
        for table in counts.tables[1:]
    ]  # a character of the page holds six bits
    highest = 1 + int(np.sum(np.cumsum(sizes) <= MAX_PAGE / 2))
    left_out = {}
    if highest < len(counts.tables):
        left_out[f"n-gram models of order {highest + 1} or more"] = "too large"
    orders = [order for order in dict.fromkeys((*_ORDERS, highest)) if order <= highest]
    levels, blocks = [], {}
    for order in range(2, highest + 1):
        prefixes, tokens = counts.table(order).split()
        statistics = {
            "highest": models[order - 1].statistics[-1] if order in orders else None,
            "lower": models[highest - 1].statistics[order - 1] if order < highest else None,
        }
        continuations = np.bincount(prefixes, minlength=len(counts.table(order - 1)))
        adjusted = [statistic.adjusted for statistic in statistics.values() if statistic]
        arrays = [(array, num_bits(array)) for array in (continuations, tokens, *adjusted)]
        blocks[f"ngrams-{order}"] = pack_bits(arrays)
        discounts = {name: kept and [0, *kept.discounts] for name, kept in statistics.items()}
        levels.append({"order": order, "arrays": array_specs(arrays), **discounts})
    described = [
        {
            "name": f"char-{models[order - 1].name}",
            "order": order,
            "unigram": models[order - 1].unigram.tolist(),
        }
        for order in orders
    ]
    return {"levels": levels, "models": described}, blocks, left_out


def _networks(
    layout: Layout, vocab: Vocab, table: pd.DataFrame, budget: int
) -> tuple[list[dict[str, Any]], Blocks, LeftOut]:
    """Describe and pack networks, the smallest first, while they fit into ``budget`` bytes.

    Of the chapter's runs, those with sequential minibatches are enough.
    """
    chapter = set(table["model"][table["as_in_chapter"]])
    left_out, weights_of, settings_of = {}, {}, {}
    for run in run_names(layout.configs):
        info = read_description(layout.description_of_run(run), NetworkDescription).model
        if info.token != "char":
            left_out[run] = f"reads {info.token} tokens, and this page characters"
        elif info.network not in _BITS:
            left_out[run] = f"the page cannot compute a {info.network}"
        elif run not in chapter or info.sampling != "random":
            settings_of[run], weights = read_weights(layout.run(run), run, vocab.key)
            weights_of[run] = to_torch_layout(weights) if info.network == "scratch" else weights
    described, blocks = [], {}
    sizes = {run: sum(map(np.size, weights.values())) for run, weights in weights_of.items()}
    for run in sorted(sizes, key=sizes.__getitem__):
        weights, network = weights_of[run], settings_of[run]
        bits, names = _BITS[network.model], sorted(weights)  # a file has no fixed order
        arrays = [(quantise(weights[name], bits), bits) for name in names]
        packed = pack_bits(arrays)
        if (budget := budget - len(packed)) < 0:
            left_out[run] = f"too large ({len(packed) / 1e6:,.1f} MB)"
            continue
        blocks[f"weights-{run}"] = packed
        described.append(
            {
                "name": run,
                "model": network.model.replace("scratch", "rnn"),
                "activation": network.activation,
                "num_layers": network.num_layers,
                "names": names,
                "arrays": array_specs(arrays),
            }
        )
    return described, blocks, left_out


def to_torch_layout(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """Return the weights of the chapter's RNN with the names and shapes of PyTorch's, whose layers
    have two biases."""
    return {
        "layers.0.weight_ih_l0": weights["W_xh"].T,
        "layers.0.weight_hh_l0": weights["W_hh"].T,
        "layers.0.bias_ih_l0": weights["b_h"],
        "layers.0.bias_hh_l0": np.zeros_like(weights["b_h"]),
        "output.weight": weights["W_hq"].T,
        "output.bias": weights["b_q"],
    }


def _history(layout: Layout, run: str) -> dict[str, Any]:
    """Return the perplexities of a run by epoch, and its samples."""
    table = read_csv(layout.reports("train", run, "history.csv"))
    step = math.ceil(len(table) / _MAX_EPOCHS)
    shown = sorted({0, len(table) - 1, *range(step - 1, len(table), step)})
    rows = table.loc[shown, ["epoch", "train_perplexity", "val_perplexity"]]
    rows = rows.astype(object).where(np.isfinite(rows), None)
    return {"rows": rows.to_numpy().tolist(), **read_json(layout.samples_of_run(run))}


def quantise(weights: NDArray[np.float32], bits: int) -> NDArray[np.int64]:
    """Return weights as whole numbers: from the highest bit a sign, five bits of an exponent, and
    rounded digits.

    16 bits are half precision.
    """
    digits, sizes = 2 ** (bits - 6), np.abs(weights).astype(np.float64)
    _, exponents = np.frexp(sizes)
    unit = np.where(weights == 0, -14, np.clip(exponents - 1, -14, 15))
    # A number below the smallest exponent has 0 as its exponent, and no leading digit 1.
    magnitudes = np.rint(np.ldexp(sizes, -unit) * digits).astype(np.int64)
    codes = np.minimum(magnitudes + (unit + 14) * digits, 31 * digits - 1)
    return np.asarray(codes + np.signbit(weights) * np.int64(32 * digits))


def array_specs(arrays: Arrays) -> list[dict[str, int]]:
    """Return what unpacking arrays needs."""
    return [{"length": array.size, "bits": bits} for array, bits in arrays]


def num_bits(array: NDArray[np.integer]) -> int:
    """Return how many bits hold each number of an array."""
    return max(int(array.max(initial=0)).bit_length(), 1)


def pack_bits(arrays: Arrays) -> str:
    """Return the numbers of arrays, one after another as text."""
    bits = [
        (array.reshape(-1, 1).astype(np.int64) >> np.arange(width)[::-1] & 1).reshape(-1)
        for array, width in arrays
    ]
    return base64.b64encode(np.packbits(np.concatenate(bits).astype(np.uint8)).tobytes()).decode()
