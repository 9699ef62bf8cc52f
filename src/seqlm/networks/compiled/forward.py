"""Tokens through the layers of a network as compiled loops: what scoring, generation and training
share, and reading.

All matrices are in panels (:mod:`seqlm.networks.compiled.tiles`). If a matrix belongs to several
steps of a minibatch of B rows, its row ``t * B + b`` is batch row b at step t. A layer takes a few
steps at a time: their products with the input are computed together, so that the weights are read
once for all of them, and while the sums are still in the cache the steps follow one by one.
"""

from typing import NamedTuple

import numpy as np
from numpy import float32, float64
from numpy.typing import NDArray

from seqlm.core.compiling import ONE, ZERO, jit_entry, jit_inline, jit_internal
from seqlm.core.elementary import exp_below_zero, log_of
from seqlm.core.metrics import Nll
from seqlm.core.threads import for_each
from seqlm.networks.compiled import tiles
from seqlm.networks.compiled.cells import CellStep, activate
from seqlm.networks.compiled.team import Control, barrier, split_rows
from seqlm.networks.compiled.tiles import WIDTH, Panels, Tokens, empty_panels
from seqlm.networks.compiled.weights import NetworkSpec, PackedWeights, is_one_hot

State = NDArray[np.float32]
"""(L, P, B, h) for L layers, P state arrays (2 of an lstm, 1 of the others), B batch rows and h
hidden units."""

_NUM_SUMS = 32
"""Sums of a row, a multiple of every processor's WIDTH."""
_PANELS_OF_SUMS = _NUM_SUMS // WIDTH
_ROWS = 64
"""Rows whose logits are in memory at a time."""
_LOWEST, _NONE = float32(np.finfo(np.float32).min), float32(-np.inf)


class BatchRows(NamedTuple):
    """The rows of a minibatch that one thread computes."""

    first: int
    last: int
    batch_size: int


class Activations(NamedTuple):
    """What the layers compute of T steps of B rows: all that training needs, or of the sums only S
    steps at a time."""

    embedded: Panels
    """(S B, E)."""
    gates: NDArray[np.float32]
    """(L, panels of all blocks, S B, WIDTH): sums, then activations."""
    states: NDArray[np.float32]
    """(L, panels, (T + 1) B, WIDTH): the first B rows are those before the text."""
    cell_states: NDArray[np.float32]
    """The same, of an LSTM."""
    outputs: NDArray[np.float32]
    """What the layers output: the states, or an array of their shape for the states after
    dropout."""


def empty_steps(
    spec: NetworkSpec, state: State, num_steps: int, sums_of: int, *, has_dropout: bool = False
) -> Activations:
    """Return space for T steps from a state on, with the sums of S steps."""
    layers, _, batch_size, hiddens = state.shape
    rows, rows_of_sums = (num_steps + 1) * batch_size, sums_of * batch_size
    states = empty_panels(rows, hiddens, layers)
    steps = Activations(
        embedded=empty_panels(rows_of_sums, spec.embedding_size),
        gates=empty_panels(rows_of_sums, spec.cell.num_blocks * tiles.padded(hiddens), layers),
        states=states,
        cell_states=empty_panels(rows, hiddens if spec.cell.has_memory else 0, layers),
        outputs=empty_panels(rows, hiddens, layers) if has_dropout else states,
    )
    put_state(state, steps)
    return steps


def put_state(state: State, steps: Activations) -> None:
    """Make a state the one before the text."""
    for layer, parts in enumerate(state):
        for part, panels in zip(
            parts, (steps.states[layer], steps.cell_states[layer]), strict=False
        ):
            panels[:, : len(part)] = tiles.to_panels(part)


def last_state(spec: NetworkSpec, steps: Activations, batch_size: int) -> State:
    """Return a copy of the state after the last step."""
    parts = [
        panels[:, :, -batch_size:]
        for panels in (steps.states, steps.cell_states)
        if panels.shape[1]
    ]
    layers = range(len(steps.states))
    return np.array(
        [[tiles.from_panels(part[layer], spec.num_hiddens) for part in parts] for layer in layers]
    )


@jit_inline
def add_products(
    c: Panels, row: int, a: Panels, left_row: int, num_steps: int, rows: BatchRows, b: Panels
) -> None:
    """Add a times b to c, both from a row on, for some batch rows of several steps."""
    num_rows, count, start = rows.last - rows.first, num_steps, rows.first
    if num_rows == rows.batch_size:
        num_rows, count, start = num_steps * rows.batch_size, 1, 0
    tiles.add_product(
        c, row + start, a, left_row + start, num_rows, count, rows.batch_size, b, count
    )


@jit_internal
def embed(
    weights: PackedWeights, tokens: Tokens, embedded: Panels, row: int, rows: BatchRows
) -> None:
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
    weights: PackedWeights,
    layer: int,
    tokens: Tokens,
    rows: BatchRows,
    inputs: Panels,
    input_row: int,
    gates: Panels,
    row: int,
) -> None:
    """Set the sums of some steps to the biases and the products with the inputs.

    ``tokens`` (T, B) are those of the steps; ``inputs`` holds what the layer below outputs, from
    ``input_row`` on; ``gates`` get the sums, from ``row`` on.
    """
    num_steps, looks_up, num_products = (
        len(tokens),
        is_one_hot(weights.spec, layer),
        weights.inputs.shape[1],
    )
    source = weights.table if looks_up else weights.bias[layer]
    # A few panels at a time, so that the product finds the biases in the cache.
    for start in range(0, gates.shape[0], tiles.PANELS_OF_ROW):
        end = min(start + tiles.PANELS_OF_ROW, gates.shape[0])
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


@jit_internal
def run_layer(
    weights: PackedWeights,
    layer: int,
    tokens: Tokens,
    rows: BatchRows,
    steps: Activations,
    start: int,
    gate_row: int,
) -> None:
    """Take batch rows of a layer through the steps of ``tokens``, from step ``start`` on.

    The sums are in the rows of ``steps.gates`` from ``gate_row`` on, and so are the embeddings.
    """
    gates, states, recurrent = steps.gates[layer], steps.states[layer], weights.recurrent[layer]
    batch_size, num_rows = rows.batch_size, rows.last - rows.first
    inputs, input_row = steps.embedded, gate_row
    if layer > 0:
        inputs, input_row = steps.outputs[layer - 1], (start + 1) * batch_size
    input_projection(weights, layer, tokens, rows, inputs, input_row, gates, gate_row)
    first_panel = states.shape[0] * weights.spec.cell.first_state_block
    sums = gates[first_panel : first_panel + recurrent.shape[0]]
    for t in range(len(tokens)):
        row, before = gate_row + t * batch_size + rows.first, (start + t) * batch_size + rows.first
        tiles.add_product(sums, row, states, before, num_rows, ONE, num_rows, recurrent, t)
        step = CellStep(
            gates, row, states, steps.cell_states[layer], before, before + batch_size, num_rows
        )
        activate(weights.spec.cell.kind, step)


@jit_internal
def output_logits(
    weights: PackedWeights,
    outputs: Panels,
    output_row: int,
    num_steps: int,
    rows: BatchRows,
    logits: Panels,
    row: int,
) -> None:
    """Set the logits of some steps, given what the last layer outputs."""
    for p in range(logits.shape[0]):
        for t in range(num_steps):
            for b in range(rows.first, rows.last):
                for k in range(WIDTH):
                    logits[p, row + t * rows.batch_size + b, k] = weights.output_bias[p, 0, k]
    add_products(logits, row, outputs, output_row, num_steps, rows, weights.outputs)


@jit_entry
def read(
    weights: PackedWeights,
    tokens: Tokens,
    steps: Activations,
    logits: Panels,
    first: int,
    last: int,
    member: int,
    size: int,
    control: Control,
) -> None:
    """Take batch rows ``first`` to ``last`` of ``tokens`` (T, B) through the network.

    Set their logits (T B, V) too, unless these have no panels. ``size`` members share the layers,
    each some steps behind the one below.
    """
    (num_steps, batch_size), num_layers = tokens.shape, len(weights.spec.layers)
    rows, at_once = BatchRows(first, last, batch_size), steps.gates.shape[2] // batch_size
    num_pieces = (num_steps + at_once - 1) // at_once
    for turn in range(num_pieces + num_layers - 1):
        for layer in range(member, num_layers, size):
            start = (turn - layer) * at_once
            if 0 <= start < num_steps:
                piece = tokens[start : min(start + at_once, num_steps)]
                if layer == 0 and weights.spec.embedding_size > 0:
                    embed(weights, piece, steps.embedded, ZERO, rows)
                run_layer(weights, layer, piece, rows, steps, start, ZERO)
                if layer == num_layers - 1 and len(logits) > 0:
                    row = start * batch_size
                    output_logits(
                        weights,
                        steps.states[layer],
                        row + batch_size,
                        len(piece),
                        rows,
                        logits,
                        row,
                    )
        barrier(control, size)


@jit_internal
def _nll_of_row(
    logits: Panels, row: int, target: int, largest: NDArray[np.float32], totals: NDArray[np.float64]
) -> float64:
    """Return -log p of a target; ``largest`` and ``totals`` (sums,) are space.

    Columns that are 32 apart share a sum of exponentials. So loops over columns become vector
    instructions, and the sums do not depend on the processor.
    """
    largest[:] = _LOWEST
    totals[:] = 0
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            value, top = logits[p, row, k], largest[start + k]
            largest[start + k] = value if value > top else top
    top = largest[0]
    for column in range(1, _NUM_SUMS):
        top = max(top, largest[column])
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            totals[start + k] += exp_below_zero(float64(logits[p, row, k]) - float64(top))
    total = 0.0
    for column in range(_NUM_SUMS):
        total += totals[column]
    return log_of(total) + (float64(top) - float64(logits[target // WIDTH, row, target % WIDTH]))


@jit_entry
def _nll_of_some_outputs(
    weights: PackedWeights,
    outputs: Panels,
    targets: Tokens,
    logits: Panels,
    largest: NDArray[np.float32],
    totals: NDArray[np.float64],
    nll: Nll,
    first: int,
    last: int,
) -> None:
    """Set ``nll`` (N,) in rows ``first`` to ``last`` to -log p of ``targets`` (N,), given the last
    N outputs."""
    vocab_size, row_of_first = weights.spec.vocab_size, outputs.shape[1] - len(targets)
    for start in range(first, last, _ROWS):
        num_rows = min(_ROWS, last - start)
        rows = BatchRows(int(ZERO), num_rows, num_rows)
        output_logits(weights, outputs, row_of_first + start, ONE, rows, logits, ZERO)
        # There are no logits beyond the vocabulary.
        for column in range(vocab_size, logits.shape[0] * WIDTH):
            logits[column // WIDTH, :num_rows, column % WIDTH] = _NONE
        for row in range(num_rows):
            nll[start + row] = _nll_of_row(logits, row, targets[start + row], largest, totals)


def nll_of_outputs(
    weights: PackedWeights, outputs: Panels, targets: Tokens, num_threads: int
) -> Nll:
    """Return -log p of ``targets`` (N,) in double precision, given the last N outputs of the last
    layer."""
    nll = np.empty(len(targets))

    def work(first: int, last: int) -> None:
        logits = empty_panels(_ROWS, weights.spec.vocab_size)
        largest, totals = np.zeros(_NUM_SUMS, np.float32), np.zeros(_NUM_SUMS)
        _nll_of_some_outputs(weights, outputs, targets, logits, largest, totals, nll, first, last)

    for_each(work, split_rows(len(nll), num_threads), num_threads)
    return nll
