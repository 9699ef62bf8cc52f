"""Writes the playground: one page with the models themselves, which compute in the reader's
browser.

The page holds the weights of networks and the counts of the n-gram models over characters. Its
scripts, in ``templates/playground/``, evaluate the formulas of :mod:`seqlm.networks` and
:mod:`seqlm.ngrams.models`.
"""

import base64
import json
import math
from collections.abc import Iterable, Mapping
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
from seqlm.pipeline.report.rendering import render
from seqlm.pipeline.report.statements import read_main_table, showcase_models
from seqlm.pipeline.train.configs import run_names
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab

MAX_PAGE = 4_500_000
"""Bytes of the largest page."""
_CODE = 100_000
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
_COMPUTING = ("arrays", "ngrams", "networks", "sampling", "units", "reading", "worker")
"""Scripts that the page hands to its worker."""
_SCRIPTS = ("dom", "shannon", "typing", "writing", "inside", "history", "game", "main")


def build_playground(layout: Layout) -> str:
    """Return the page as HTML.

    Raises DataError if a model, a table or the corpus is missing or broken.
    """
    vocab, table = Vocab.load(layout.vocab("char"), "char"), read_main_table(layout)
    val, test = (
        load_split(layout.corpus("char"), split)[:size] for split, size in _PASSAGES.items()
    )
    blocks = {"val": _packed([(val, _width(val))])}
    left_out: list[dict[str, str]] = []
    history = {run: _history(layout, run) for run in run_names(layout.configs)}
    ngrams = _ngrams(layout, vocab, blocks, left_out)
    used = _CODE + len(json.dumps([history, vocab.tokens])) + sum(map(len, blocks.values()))
    networks = _networks(layout, vocab, table, MAX_PAGE - used, blocks, left_out)
    names = [one["name"] for one in (*ngrams["models"], *networks)]
    data = {
        "normalise": vocab.normalise,
        "joined": vocab.line_separator,
        "begin": vocab.encode(list(vocab.blank)).tolist(),
        "tokens": vocab.tokens,
        "ngrams": ngrams,
        "networks": networks,
        "chosen": sorted(showcase_models(names, table), key=history.__contains__),  # n-grams first
        "labels": table.set_index("model")["label"].to_dict(),
        "history": history,
        "val": {"length": len(val), "bits": _width(val)},
        "test": "".join(vocab.tokens[token] for token in test.tolist() if token),
    }
    return render(
        "playground/page.html",
        [*_STYLES, *map(_script, _SCRIPTS)],
        worker=True,
        corpus=read_json(layout.corpus_record),
        computing=list(map(_script, _COMPUTING)),
        has_unknown=not test.all(),
        data=data,
        blocks=blocks,
        left_out=left_out,
    )


def _script(name: str) -> str:
    return f"playground/{name}.js"


def _ngrams(
    layout: Layout, vocab: Vocab, blocks: dict[str, str], left_out: list[dict[str, str]]
) -> dict[str, Any]:
    """Put what Kneser-Ney models discount into ``blocks``, of the orders that fit into half of the
    page; describe it.

    From order 2 on, a block has for each row of the order below how many n-grams continue it; the
    last token of each n-gram; its count, if there is a model of this order; and its count in models
    of higher orders.
    """
    counts, settings = load_counts(layout.ngrams("char"), vocab.key)
    models = KneserNey.build(counts, settings[KneserNey.smoothing])
    highest, num_bits = 1, 0
    for table in counts.tables[1:]:
        num_bits += len(table) * (_width(table.split()[1]) + _width(table.counts))
        if num_bits / 6 > MAX_PAGE / 2:  # a character of the page holds six bits
            left_out.append(
                {"name": f"n-gram models of order {highest + 1} or more", "why": "too large"}
            )
            break
        highest += 1
    orders = [order for order in dict.fromkeys((*_ORDERS, highest)) if order <= highest]
    levels = []
    for order in range(2, highest + 1):
        table = counts.table(order)
        prefixes, tokens = table.split()
        kept = {
            "highest": models[order - 1].statistics[-1] if order in orders else None,
            "lower": models[highest - 1].statistics[order - 1] if order < highest else None,
        }
        found = [np.bincount(prefixes, minlength=len(counts.table(order - 1))), tokens]
        arrays = [
            (array, _width(array))
            for array in [*found, *(one.adjusted for one in kept.values() if one)]
        ]
        blocks[f"ngrams-{order}"] = _packed(arrays)
        discounts = {name: one and [0, *one.discounts] for name, one in kept.items()}
        levels.append({"order": order, "arrays": _described(arrays), **discounts})
    shown = [
        {
            "name": f"char-{models[order - 1].name}",
            "order": order,
            "unigram": models[order - 1].unigram.tolist(),
        }
        for order in orders
    ]
    return {"levels": levels, "models": shown}


def _networks(
    layout: Layout,
    vocab: Vocab,
    table: pd.DataFrame,
    budget: int,
    blocks: dict[str, str],
    left_out: list[dict[str, str]],
) -> list[dict[str, Any]]:
    """Put the weights of networks into ``blocks``, the smallest first, while they fit; describe the
    networks.

    Of the chapter's runs, those with sequential minibatches are enough.
    """
    chapter = set(table["model"][table["as_in_chapter"]])
    found = []
    for run in run_names(layout.configs):
        info = read_description(layout.description_of_run(run), NetworkDescription).model
        if info.token != "char":
            left_out.append(
                {"name": run, "why": f"reads {info.token} tokens, and this page characters"}
            )
        elif info.network not in _BITS:
            left_out.append({"name": run, "why": f"the page cannot compute a {info.network}"})
        elif not (run in chapter and info.sampling == "random"):
            network, weights = read_weights(layout.run(run), run, vocab.key)
            found.append(
                (run, network, _as_framework(weights) if info.network == "scratch" else weights)
            )
    described = []
    for run, network, weights in sorted(
        found, key=lambda each: sum(array.size for array in each[2].values())
    ):
        bits, names = _BITS[network.model], sorted(weights)  # a file has weights in no fixed order
        arrays = [(_codes(weights[name], bits), bits) for name in names]
        packed = _packed(arrays)
        if (budget := budget - len(packed)) < 0:
            left_out.append({"name": run, "why": f"too large ({len(packed) / 1e6:,.1f} MB)"})
            continue
        blocks[f"weights-{run}"] = packed
        kept = network.model_dump(include={"activation", "num_layers"})
        model = network.model.replace("scratch", "rnn")
        described.append(
            {"name": run, "model": model, **kept, "names": names, "arrays": _described(arrays)}
        )
    return described


def _as_framework(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """Return the weights of the chapter's RNN with the names and shapes of PyTorch's, whose layers
    have two biases."""
    layer = {
        "weight_ih": weights["W_xh"].T,
        "weight_hh": weights["W_hh"].T,
        "bias_ih": weights["b_h"],
    }
    layer["bias_hh"] = np.zeros_like(weights["b_h"])
    found = {f"layers.0.{name}_l0": array for name, array in layer.items()}
    return found | {"output.weight": weights["W_hq"].T, "output.bias": weights["b_q"]}


def _history(layout: Layout, run: str) -> dict[str, Any]:
    """Return the perplexities of a run by epoch, and its samples."""
    table = read_csv(layout.reports("train", run, "history.csv"))
    columns = ["epoch", "train_perplexity", "val_perplexity"]
    rows = (
        table[columns].astype(object).where(np.isfinite(table[columns]), None).to_numpy().tolist()
    )
    step = math.ceil(len(rows) / _MAX_EPOCHS)
    kept = {0, len(rows) - 1, *range(step - 1, len(rows), step)}
    return {
        "rows": [row for place, row in enumerate(rows) if place in kept],
        **read_json(layout.samples_of_run(run)),
    }


def _codes(weights: NDArray[np.float32], bits: int) -> NDArray[np.int64]:
    """Return weights as whole numbers: from the highest bit a sign, five bits of an exponent, and
    rounded digits.

    16 bits are half precision.
    """
    digits = 2 ** (bits - 6)
    _, exponents = np.frexp(np.abs(weights).astype(np.float64))
    unit = np.where(weights == 0, -14, np.clip(exponents - 1, -14, 15))
    # A number below the smallest exponent has 0 as its exponent, and no leading digit 1.
    magnitude = np.rint(np.ldexp(np.abs(weights).astype(np.float64), -unit) * digits).astype(
        np.int64
    )
    codes = magnitude + (unit + 14) * digits
    return np.asarray(
        np.minimum(codes, 31 * digits - 1) + np.signbit(weights) * np.int64(32 * digits)
    )


def _described(arrays: Iterable[tuple[NDArray[Any], int]]) -> list[dict[str, int]]:
    return [{"length": array.size, "bits": bits} for array, bits in arrays]


def _width(array: NDArray[np.integer]) -> int:
    """Return how many bits hold each number of an array."""
    return max(int(array.max(initial=0)).bit_length(), 1)


def _packed(arrays: Iterable[tuple[NDArray[Any], int]]) -> str:
    """Return the numbers of arrays, each with this many bits, one after another as text."""
    bits = [
        (array.reshape(-1, 1).astype(np.int64) >> np.arange(width)[::-1] & 1).reshape(-1)
        for array, width in arrays
    ]
    return base64.b64encode(np.packbits(np.concatenate(bits).astype(np.uint8)).tobytes()).decode()
