"""Tokens through the layers of a network as compiled loops: what scoring, generation and training
share, and reading.

What the layers compute is in arrays (steps, batch rows, columns)
(:mod:`seqlm.networks.compiled.tiles`). A layer takes a few steps at a time: their products with the
input are computed together, so that the weights are read once for all of them, and while the sums
are still in the cache the steps follow one by one.
"""

from typing import NamedTuple

import numpy as np
from numpy import float32, float64
from numpy.typing import NDArray

from seqlm.core.compiling import ZERO, jit_entry, jit_internal
from seqlm.core.elementary import exp_below_zero, log_of
from seqlm.core.metrics import Nll
from seqlm.core.threads import for_each
from seqlm.networks.compiled.cells import activate
from seqlm.networks.compiled.team import Member, barrier, split_rows
from seqlm.networks.compiled.tiles import (
    WIDTH,
    BatchRows,
    Matrix,
    Panels,
    Stack,
    Steps,
    Tokens,
    Vector,
    add_product,
    empty_rows,
)
from seqlm.networks.compiled.weights import NetworkSpec, PackedWeights, is_one_hot

State = NDArray[np.float32]
"""(L, P, B, h) for L layers, P state arrays (2 of an lstm, 1 of the others), B batch rows and h
hidden units."""

_NUM_SUMS = 32
"""Sums of a row, a multiple of every processor's WIDTH."""
_ROWS = 64
"""Rows whose logits are in memory at a time."""
_LOWEST, _NONE = float64(np.finfo(np.float32).min), float32(-np.inf)


class Activations(NamedTuple):
    """What the layers compute of T steps of B rows: all that training needs, or of the sums only S
    steps at a time."""

    embedded: Steps
    """(S, B, E)."""
    gates: Stack
    """(L, blocks, S, B, h): sums, then activations."""
    states: Stack
    """(L, T + 1, B, h): the first step is the state before the text."""
    cell_states: Stack
    """The same, of an LSTM."""
    outputs: Stack
    """What the layers output: the states, or an array of their shape for the states after
    dropout."""


def empty_activations(
    spec: NetworkSpec, state: State, num_steps: int, sums_of: int, *, has_dropout: bool = False
) -> Activations:
    """Return space for T steps from a state on, with the sums of S steps."""
    layers, _, batch_size, hiddens = state.shape
    shape = layers, num_steps + 1, batch_size, hiddens
    states = empty_rows(*shape)
    activations = Activations(
        embedded=empty_rows(sums_of, batch_size, spec.embedding_size),
        gates=empty_rows(layers, spec.cell.num_blocks, sums_of, batch_size, hiddens),
        states=states,
        cell_states=empty_rows(*shape) if spec.cell.has_cell_state else empty_rows(layers, 0, 0, 0),
        outputs=empty_rows(*shape) if has_dropout else states,
    )
    put_state(state, activations)
    return activations


def put_state(state: State, activations: Activations) -> None:
    """Make a state the one before the text."""
    for part, steps in zip(
        state.swapaxes(0, 1), (activations.states, activations.cell_states), strict=False
    ):
        steps[:, 0, :, : state.shape[3]] = part


def last_state(spec: NetworkSpec, activations: Activations) -> State:
    """Return a copy of the state after the last step."""
    parts = [activations.states, activations.cell_states][: 1 + spec.cell.has_cell_state]
    return np.stack([steps[:, -1, :, : spec.num_hiddens] for steps in parts], 1)


@jit_internal
def look_up(table: Matrix, tokens: Tokens, result: Steps, rows: BatchRows) -> None:
    """Set batch rows of a result (T, B, N) to the table's rows of the tokens (T, B)."""
    for t in range(len(tokens)):
        for b in range(rows.first, rows.last):
            token = tokens[t, b]  # otherwise read again for each number
            for k in range(table.shape[1]):
                result[t, b, k] = table[token, k]


@jit_internal
def _repeat(values: Vector, result: Steps, rows: BatchRows) -> None:
    """Set batch rows of a result (T, B, N) to the same values (N,)."""
    for t in range(len(result)):
        for b in range(rows.first, rows.last):
            for k in range(len(values)):
                result[t, b, k] = values[k]


@jit_internal
def run_layer(
    weights: PackedWeights,
    layer: int,
    tokens: Tokens,
    rows: BatchRows,
    activations: Activations,
    start: int,
    gate_start: int,
) -> None:
    """Take batch rows of a layer through the steps of ``tokens`` (S, B), from step ``start`` on.

    Their sums are in ``gates`` from step ``gate_start`` on, and so are the embeddings.
    """
    cell, num_steps, looks_up = weights.spec.cell, len(tokens), is_one_hot(weights.spec, layer)
    states, gates = activations.states[layer], activations.gates[layer]
    if layer > 0:
        inputs = activations.outputs[layer - 1][start + 1 : start + 1 + num_steps]
    else:
        inputs = activations.embedded[gate_start : gate_start + num_steps]
    num_gates = len(cell.input_blocks)
    for block in range(cell.num_blocks):
        sums = gates[block, gate_start : gate_start + num_steps]
        if looks_up and block < num_gates:
            look_up(weights.table[block], tokens, sums, rows)
        else:
            _repeat(weights.bias[layer, block], sums, rows)
        if block < num_gates and not looks_up:
            add_product(sums, inputs, weights.inputs[layer, block], rows, ZERO)
    for t in range(num_steps):
        g, before = gate_start + t, states[start + t : start + t + 1]
        for n in range(num_gates):
            gate = num_gates - 1 - n if t % 2 else n
            sums = gates[cell.first_state_block + gate, g : g + 1]
            add_product(sums, before, weights.recurrent[layer, gate], rows, t)
        activate(cell.kind, gates, g, states, activations.cell_states[layer], start + t, rows)


@jit_internal
def output_logits(
    weights: Panels, bias: Vector, outputs: Steps, rows: BatchRows, logits: Steps
) -> None:
    """Set the logits of some steps (T, B, V), given what the last layer outputs (T, B, h)."""
    _repeat(bias, logits, rows)
    add_product(logits, outputs, weights, rows, ZERO)


@jit_entry
def run_network(
    weights: PackedWeights,
    tokens: Tokens,
    activations: Activations,
    logits: Steps,
    rows: BatchRows,
    member: Member,
) -> None:
    """Take batch rows of ``tokens`` (T, B) through the network.

    Set their logits (T, B, V) too, unless these have no steps. The threads share the layers, each
    some steps behind the one below.
    """
    num_steps, num_layers = len(tokens), len(weights.spec.layers)
    at_once = activations.gates.shape[2]
    num_pieces = (num_steps + at_once - 1) // at_once
    for turn in range(num_pieces + num_layers - 1):
        for layer in range(member.thread, num_layers, member.num_threads):
            start = (turn - layer) * at_once
            end = start + at_once
            if 0 <= start < num_steps:
                piece = tokens[start:end]
                if layer == 0 and weights.spec.embedding_size > 0:
                    look_up(weights.embedding, piece, activations.embedded, rows)
                run_layer(weights, layer, piece, rows, activations, start, ZERO)
                if layer == num_layers - 1 and len(logits) > 0:
                    outputs = activations.states[layer, start + 1 : end + 1]
                    some = logits[start:end]
                    output_logits(weights.outputs, weights.output_bias, outputs, rows, some)
        barrier(member)


@jit_internal
def _nll_of_row(logits: Vector, target: int, sums: NDArray[np.float64]) -> float64:
    """Return -log p of a target, given a row of logits; ``sums`` (2, 32) is space.

    Columns that are 32 apart share a sum of exponentials. So loops over columns become vector
    instructions, and the sums do not depend on the processor.
    """
    largest, totals = sums[0], sums[1]
    for column in range(_NUM_SUMS):
        largest[column], totals[column] = _LOWEST, 0
    for start in range(0, len(logits), WIDTH):
        first_sum = start % _NUM_SUMS
        for k in range(WIDTH):
            value, top = float64(logits[start + k]), largest[first_sum + k]
            largest[first_sum + k] = value if value > top else top
    top = largest[0]
    for column in range(1, _NUM_SUMS):
        top = max(top, largest[column])
    for start in range(0, len(logits), WIDTH):
        first_sum = start % _NUM_SUMS
        for k in range(WIDTH):
            totals[first_sum + k] += exp_below_zero(float64(logits[start + k]) - top)
    total = 0.0
    for column in range(_NUM_SUMS):
        total += totals[column]
    return log_of(total) + (top - float64(logits[target]))


@jit_entry
def _nll_of_some_outputs(
    weights: Panels,
    bias: Vector,
    vocab_size: int,
    outputs: Matrix,
    targets: Tokens,
    logits: Steps,
    sums: NDArray[np.float64],
    nll: Nll,
    first: int,
    last: int,
) -> None:
    """Set ``nll`` (N,) in rows ``first`` to ``last`` to -log p of ``targets`` (N,), given N rows of
    outputs."""
    at_once = logits.shape[1]
    for start in range(first, last, at_once):
        num_rows = min(at_once, last - start)
        some = outputs[start : start + num_rows].reshape(1, num_rows, outputs.shape[1])
        output_logits(weights, bias, some, BatchRows(int(ZERO), num_rows), logits)
        for row in range(num_rows):
            for column in range(vocab_size, logits.shape[2]):
                logits[0, row, column] = _NONE  # there are no logits beyond the vocabulary
            nll[start + row] = _nll_of_row(logits[0, row], targets[start + row], sums)


def nll_of_outputs(
    weights: PackedWeights, outputs: Steps, targets: Tokens, num_threads: int
) -> Nll:
    """Return -log p of ``targets`` (T, B) in double precision, given what the last layer
    outputs."""
    nll = np.empty(targets.size)

    def work(first: int, last: int) -> None:
        logits = empty_rows(1, _ROWS, weights.spec.vocab_size)
        _nll_of_some_outputs(
            weights.outputs,
            weights.output_bias,
            weights.spec.vocab_size,
            outputs.reshape(nll.size, outputs.shape[2]),
            targets.reshape(-1),
            logits,
            np.zeros((2, _NUM_SUMS)),
            nll,
            first,
            last,
        )

    for_each(work, split_rows(len(nll), num_threads), num_threads)
    return nll.reshape(targets.shape)
