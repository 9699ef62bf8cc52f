"""Tokens through the layers of a network as compiled loops: what scoring, generation and training share, and reading.

All matrices are in panels (:mod:`seqlm.networks.compiled.tiles`). If a matrix belongs to several steps of a minibatch
of B rows, its row ``t * B + b`` is batch row b at step t. A layer takes a few steps at a time: their products with the
input are computed together, so that the weights are read once for all of them, and while the sums are still in the
cache the steps follow one by one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import ONCE, START, jit_entry, jit_inline, jit_internal
from seqlm.networks.compiled.cells import CellStep, activate
from seqlm.networks.compiled.team import Control, barrier
from seqlm.networks.compiled.tiles import (
    PANELS_OF_ROW,
    WIDTH,
    Panels,
    Tokens,
    add_product,
    from_panels,
    require_tokens,
    to_panels,
)
from seqlm.networks.compiled.weights import PackedWeights, is_one_hot


class BatchRows(NamedTuple):
    """The rows of a minibatch that one thread computes."""

    first: int
    last: int
    batch_size: int


class InferenceBuffers(NamedTuple):
    """Space for reading a text: for S steps at a time of every layer."""

    embedded: Panels
    """(S B, E)."""
    gates: NDArray[np.float32]
    """(L, panels of all blocks, S B, WIDTH)."""
    states: NDArray[np.float32]
    """(L, panels, 2 S B, WIDTH): step t has the rows from ``t % (2 S) * B`` on, so that a layer may read the steps
    that the one below it has taken while that one takes the next."""
    memories: NDArray[np.float32]
    """The same, of an LSTM."""


@jit_inline
def add_products(c: Panels, row: int, a: Panels, left_row: int, num_steps: int, rows: BatchRows, b: Panels) -> None:
    """Add a times b to c, both from a row on, for some batch rows of several steps."""
    num_rows, count, start = rows.last - rows.first, num_steps, rows.first
    if num_rows == rows.batch_size:
        num_rows, count, start = num_steps * rows.batch_size, 1, 0
    add_product(c, row + start, a, left_row + start, num_rows, count, rows.batch_size, b, count)


@jit_internal
def embed(weights: PackedWeights, tokens: Tokens, embedded: Panels, row: int, rows: BatchRows) -> None:
    """Copy the embeddings of tokens (T, B) into rows from ``row`` on."""
    size = weights.embedding.shape[1]
    for t in range(len(tokens)):
        for b in range(rows.first, rows.last):
            token, place = tokens[t, b], row + t * rows.batch_size + b
            for p in range(embedded.shape[0]):
                for k in range(min(WIDTH, size - p * WIDTH)):
                    embedded[p, place, k] = weights.embedding[token, p * WIDTH + k]


@jit_internal
def input_projection(
    weights: PackedWeights, layer: int, tokens: Tokens, rows: BatchRows, inputs: Panels, input_row: int,
    gates: Panels, row: int,
) -> None:  # fmt: skip
    """Set the sums of some steps to the biases and the products with the inputs.

    ``tokens`` (T, B) are those of the steps; ``inputs`` holds what the layer below outputs, from ``input_row`` on;
    ``gates`` get the sums, from ``row`` on.
    """
    num_steps, looks_up, num_products = len(tokens), is_one_hot(weights.spec, layer), weights.inputs.shape[1]
    source = weights.table if looks_up else weights.bias[layer]
    # A few panels at a time, so that the product finds the biases in the cache.
    for start in range(0, gates.shape[0], PANELS_OF_ROW):
        end = min(start + PANELS_OF_ROW, gates.shape[0])
        for p in range(start, end):
            for t in range(num_steps):
                for b in range(rows.first, rows.last):
                    chosen = tokens[t, b] if looks_up else 0
                    for k in range(WIDTH):
                        gates[p, row + t * rows.batch_size + b, k] = source[p, chosen, k]
        end = min(end, num_products)
        if start < end and not looks_up:
            matrix = weights.inputs[layer][start:end]
            add_products(gates[start:end], row, inputs, input_row, num_steps, rows, matrix)


@jit_inline
def recurrent_step(weights: PackedWeights, layer: int, step: CellStep, turn: int) -> None:
    """Take a layer through one step, given the input projection of its gates."""
    start, recurrent = step.states.shape[0] * weights.spec.cell.first_state_block, weights.recurrent[layer]
    sums = step.gates[start : start + recurrent.shape[0]]
    add_product(sums, step.row, step.states, step.before, step.num_rows, ONCE, step.num_rows, recurrent, turn)
    activate(weights.spec.cell.number, step)


@jit_internal
def output_logits(
    weights: PackedWeights, outputs: Panels, output_row: int, num_steps: int, rows: BatchRows, logits: Panels, row: int
) -> None:
    """Set the logits of some steps, given what the last layer outputs."""
    for p in range(logits.shape[0]):
        for t in range(num_steps):
            for b in range(rows.first, rows.last):
                for k in range(WIDTH):
                    logits[p, row + t * rows.batch_size + b, k] = weights.output_bias[p, 0, k]
    add_products(logits, row, outputs, output_row, num_steps, rows, weights.outputs)


@jit_internal
def _copy_outputs(outputs: Panels, output_row: int, num_steps: int, rows: BatchRows, target: Panels, row: int) -> None:
    for p in range(target.shape[0]):
        for place in range(num_steps * rows.batch_size):
            if rows.first <= place % rows.batch_size < rows.last:
                for k in range(WIDTH):
                    target[p, row + place, k] = outputs[p, output_row + place, k]


@jit_internal
def _take_steps(
    weights: PackedWeights, layer: int, tokens: Tokens, time: int, buffers: InferenceBuffers, logits: Panels,
    outputs: Panels, row: int, first: int, last: int,
) -> None:  # fmt: skip
    """Take a layer through the steps of ``tokens`` (at most S, B), the first of which is step ``time``."""
    num_steps, batch_size = tokens.shape
    rows, states, gates = BatchRows(first, last, batch_size), buffers.states[layer], buffers.gates[layer]
    ring = states.shape[1]
    here = time * batch_size % ring
    inputs, input_row = buffers.embedded, START
    if layer > 0:
        inputs, input_row = buffers.states[layer - 1], here
    elif weights.spec.embedding_size > 0:
        embed(weights, tokens, buffers.embedded, START, rows)
    input_projection(weights, layer, tokens, rows, inputs, input_row, gates, START)
    for t in range(num_steps):
        before, after = ((time + t - 1) * batch_size) % ring, here + t * batch_size
        step = CellStep(
            gates, t * batch_size + first, states, buffers.memories[layer], before + first, after + first, last - first
        )
        recurrent_step(weights, layer, step, t)
    if layer == len(weights.spec.layers) - 1:
        if len(logits) > 0:
            output_logits(weights, states, here, num_steps, rows, logits, row)
        _copy_outputs(states, here, num_steps, rows, outputs, row)


@jit_entry
def read(
    weights: PackedWeights, tokens: Tokens, time: int, buffers: InferenceBuffers, logits: Panels, outputs: Panels,
    first: int, last: int, member: int, size: int, control: Control,
) -> None:  # fmt: skip
    """Take batch rows ``first`` to ``last`` of ``tokens`` (T, B) through the network and set their logits (T B, V).

    ``outputs`` gets what the last layer outputs, (T B, h). Either may have no panels, and is left out then. ``time``
    is the number of the first step, a multiple of S: the state before it is where step ``time`` - 1 leaves it.
    ``size`` members share the layers, each some steps behind the one below.
    """
    num_steps, batch_size = tokens.shape
    num_layers, at_once = len(weights.spec.layers), buffers.states.shape[2] // (2 * batch_size)
    num_pieces = (num_steps + at_once - 1) // at_once
    for turn in range(num_pieces + num_layers - 1):
        for layer in range(member, num_layers, size):
            start = (turn - layer) * at_once
            if 0 <= start < num_steps:
                piece, row = tokens[start : min(start + at_once, num_steps)], start * batch_size
                _take_steps(weights, layer, piece, time + start, buffers, logits, outputs, row, first, last)
        barrier(control, size)


def to_tokens(ids: NDArray[np.int64], vocab_size: int) -> Tokens:
    """Return ids (B, T) as the loops read them, (T, B). Raises IndexError for one outside the vocabulary."""
    return require_tokens(np.ascontiguousarray(ids.T), vocab_size)


def put_state(state: NDArray[np.float32], states: NDArray[np.float32], memories: NDArray[np.float32], row: int) -> None:
    """Copy a state, (L, P, B, h), into rows from ``row`` on."""
    for layer, parts in enumerate(state):
        for part, panels in zip(parts, (states[layer], memories[layer]), strict=False):
            panels[:, row : row + len(part)] = to_panels(part)


def state_at(
    states: NDArray[np.float32], memories: NDArray[np.float32], row: int, batch_size: int, num_hiddens: int
) -> NDArray[np.float32]:
    """Return a copy of the state, (L, P, B, h), in the rows from ``row`` on."""
    parts = [panels[:, :, row : row + batch_size] for panels in (states, memories) if panels.shape[1]]
    return np.array([[from_panels(part[layer], num_hiddens) for part in parts] for layer in range(len(states))])
