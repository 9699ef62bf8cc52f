"""Tokens through the layers of a network as compiled loops: what scoring, writing and training share.

All matrices are in panels (:mod:`seqlm.rnn.compiled.products`). Of what belongs to several steps of B
lanes, row ``t * B + b`` is lane b at step t. A layer takes a few steps at a time: their products with the
input are computed together, so that the weights are read once for all of them, and while the sums
are still in the cache the steps follow one by one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.cells import Step, activate
from seqlm.rnn.compiled.compiling import ONCE, START, entry, inner, spliced
from seqlm.rnn.compiled.parameters import Flat, NetworkSpec, Packed, is_one_hot, matrix_at
from seqlm.rnn.compiled.products import Panels, add_product
from seqlm.rnn.compiled.team import Control, barrier
from seqlm.rnn.compiled.tiles import PANELS_OF_ROW, WIDTH

Tokens = NDArray[np.int64]


class Reading(NamedTuple):
    """Room for reading a text: for S steps at a time of every layer."""

    embedded: Panels
    """(S B, E)."""
    gates: NDArray[np.float32]
    """(L, panels of all blocks, S B, WIDTH)."""
    states: NDArray[np.float32]
    """(L, panels, 2 S B, WIDTH): step t has the rows from ``t % (2 S) * B`` on, so that a layer may read the steps
    that the one below it has taken while that one takes the next."""
    memories: NDArray[np.float32]
    """The same."""


@entry
def are_tokens(tokens: Tokens, vocab_size: int) -> bool:
    """Whether all ids lie within the vocabulary: the loops do not look."""
    for row in range(tokens.shape[0]):
        for token in tokens[row]:
            if token < 0 or token >= vocab_size:
                return False
    return True


@spliced
def add_products(
    c: Panels, row: int, a: Panels, left_row: int, num_steps: int, lanes: int, first: int, last: int, b: Panels
) -> None:
    """Add a times b to c, both from a row on, for lanes ``first`` to ``last`` of several steps."""
    num_rows, count, start = last - first, num_steps, first
    if num_rows == lanes:
        num_rows, count, start = num_steps * lanes, 1, 0
    add_product(c, row + start, a, left_row + start, num_rows, count, lanes, b, count)


@inner
def embed(form: NetworkSpec, flat: Flat, tokens: Tokens, embedded: Panels, row: int, first: int, last: int) -> None:
    """Copy the embeddings of lanes' tokens (T, B) into rows from ``row`` on."""
    embedding, lanes = matrix_at(flat, form.embedding, form.vocab_size, form.embedding_size), tokens.shape[1]
    for t in range(len(tokens)):
        for lane in range(first, last):
            token, place = tokens[t, lane], row + t * lanes + lane
            for p in range(embedded.shape[0]):
                for k in range(min(WIDTH, form.embedding_size - p * WIDTH)):
                    embedded[p, place, k] = embedding[token, p * WIDTH + k]


@inner
def take_in(
    form: NetworkSpec, packed: Packed, layer: int, tokens: Tokens, first: int, last: int, inputs: Panels,
    input_row: int, gates: Panels, row: int,
) -> None:  # fmt: skip
    """Set lanes' sums at some steps to the biases and the products with the inputs.

    ``tokens`` (T, B) are those of the steps; ``inputs`` has what the layer below gives, from
    ``input_row`` on; ``gates`` get the sums, from ``row`` on.
    """
    num_steps, lanes = tokens.shape
    looks_up, num_products = is_one_hot(form, layer), packed.inputs.shape[1]
    source = packed.table if looks_up else packed.bias[layer]
    # A few panels at a time, so that the product finds the biases in the cache.
    for start in range(0, gates.shape[0], PANELS_OF_ROW):
        end = min(start + PANELS_OF_ROW, gates.shape[0])
        for p in range(start, end):
            for t in range(num_steps):
                for lane in range(first, last):
                    chosen = tokens[t, lane] if looks_up else 0
                    for k in range(WIDTH):
                        gates[p, row + t * lanes + lane, k] = source[p, chosen, k]
        end = min(end, num_products)
        if start < end and not looks_up:
            weights = packed.inputs[layer][start:end]
            add_products(gates[start:end], row, inputs, input_row, num_steps, lanes, first, last, weights)


@spliced
def advance(form: NetworkSpec, recurrent: Panels, step: Step, turn: int) -> None:
    """Take a layer through one step: the sums of its gates have their biases and products with the input."""
    start = step.states.shape[0] * form.first_state_block
    sums = step.gates[start : start + recurrent.shape[0]]
    add_product(sums, step.row, step.states, step.before, step.num_rows, ONCE, step.num_rows, recurrent, turn)
    activate(form.cell, step)


@inner
def score(
    packed: Packed, outputs: Panels, output_row: int, num_steps: int, lanes: int, first: int, last: int,
    scores: Panels, row: int,
) -> None:  # fmt: skip
    """Set the scores of lanes at some steps to the logits of what the last layer gives."""
    for p in range(scores.shape[0]):
        for t in range(num_steps):
            for lane in range(first, last):
                for k in range(WIDTH):
                    scores[p, row + t * lanes + lane, k] = packed.output_bias[p, 0, k]
    add_products(scores, row, outputs, output_row, num_steps, lanes, first, last, packed.outputs)


@inner
def _keep(
    outputs: Panels, output_row: int, num_steps: int, lanes: int, first: int, last: int, kept: Panels, row: int
) -> None:
    """Copy what the last layer gives to lanes at some steps."""
    for p in range(kept.shape[0]):
        for place in range(num_steps * lanes):
            if first <= place % lanes < last:
                for k in range(WIDTH):
                    kept[p, row + place, k] = outputs[p, output_row + place, k]


@inner
def _read_some(
    form: NetworkSpec, flat: Flat, packed: Packed, layer: int, tokens: Tokens, time: int, room: Reading,
    scores: Panels, kept: Panels, row: int, first: int, last: int,
) -> None:  # fmt: skip
    """Take a layer through the steps of ``tokens`` (at most S, B), the first of which is step ``time``."""
    num_steps, lanes = tokens.shape
    ring = room.states.shape[2]
    here = time * lanes % ring
    inputs, input_row = room.embedded, START
    if layer > 0:
        inputs, input_row = room.states[layer - 1], here
    elif form.embedding_size > 0:
        embed(form, flat, tokens, room.embedded, START, first, last)
    take_in(form, packed, layer, tokens, first, last, inputs, input_row, room.gates[layer], START)
    for t in range(num_steps):
        before, after = ((time + t - 1) * lanes) % ring, here + t * lanes
        step = Step(
            room.gates[layer], t * lanes + first, room.states[layer], room.memories[layer], before + first,
            after + first, last - first,
        )  # fmt: skip
        advance(form, packed.recurrent[layer], step, t)
    if layer == len(form.layers) - 1:
        if len(scores) > 0:
            score(packed, room.states[layer], here, num_steps, lanes, first, last, scores, row)
        _keep(room.states[layer], here, num_steps, lanes, first, last, kept, row)


@entry
def read(
    form: NetworkSpec, flat: Flat, packed: Packed, tokens: Tokens, time: int, room: Reading, scores: Panels,
    kept: Panels, first: int, last: int, member: int, size: int, control: Control,
) -> None:  # fmt: skip
    """Take lanes ``first`` to ``last`` of ``tokens`` (T, B) through the network and fill their scores (T B, V).

    ``kept`` gets what the last layer gives, (T B, h). Either may have no panels, and is left out then.

    ``time`` is the number of the first step, a multiple of S: the state before it stands where step
    ``time`` - 1 leaves it. ``size`` members share out the layers, each some steps behind the one below.
    """
    num_steps, lanes = tokens.shape
    num_layers, at_once = len(form.layers), room.states.shape[2] // (2 * lanes)
    num_pieces = (num_steps + at_once - 1) // at_once
    for turn in range(num_pieces + num_layers - 1):
        for layer in range(member, num_layers, size):
            start = (turn - layer) * at_once
            if 0 <= start < num_steps:
                piece = tokens[start : min(start + at_once, num_steps)]
                _read_some(
                    form, flat, packed, layer, piece, time + start, room, scores, kept, start * lanes, first, last
                )
        barrier(control, size)


@entry
def write_greedily(
    form: NetworkSpec, flat: Flat, packed: Packed, tokens: Tokens, room: Reading, scores: Panels, first: int,
    last: int,
) -> None:  # fmt: skip
    """Fill rows 1.. of ``tokens`` (N, B), for lanes ``first`` to ``last``, with the likeliest tokens but token 0.

    ``room`` is for one step at a time; ``scores`` is (B, V).
    """
    kept = scores[:0]
    for n in range(len(tokens) - 1):
        for layer in range(len(form.layers)):
            _read_some(form, flat, packed, layer, tokens[n : n + 1], n, room, scores, kept, START, first, last)
        for lane in range(first, last):
            best = 1
            for token in range(2, form.vocab_size):
                if scores[token // WIDTH, lane, token % WIDTH] > scores[best // WIDTH, lane, best % WIDTH]:
                    best = token
            tokens[n + 1, lane] = best
