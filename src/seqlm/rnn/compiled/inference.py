"""Scoring and generation with the weights that a network has now, as compiled loops."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.cells import CellStep
from seqlm.rnn.compiled.compiling import START, jit_entry, jit_internal
from seqlm.rnn.compiled.forward import (
    BatchRows,
    embed,
    input_projection,
    output_logits,
    put_state,
    recurrent_step,
    state_at,
    to_tokens,
)
from seqlm.rnn.compiled.logsumexp import Nll, nll_of_outputs
from seqlm.rnn.compiled.parameters import Flat, NetworkSpec, PackedWeights, empty_packed, pack_weights
from seqlm.rnn.compiled.team import Control, barrier, in_threads, new_control, split_rows
from seqlm.rnn.compiled.tiles import WIDTH, Panels, Tokens, empty_panels, from_panels, padded

Ids = NDArray[np.int64]
State = NDArray[np.float32]

_ROWS_AT_ONCE = 64
"""Rows of the steps that a layer takes at a time."""
_NOTHING = empty_panels(0, 0)


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


@jit_entry
def write_greedily(
    weights: PackedWeights, tokens: Tokens, buffers: InferenceBuffers, logits: Panels, first: int, last: int
) -> None:
    """Fill rows 1.. of ``tokens`` (N, B), for batch rows ``first`` to ``last``, with the likeliest tokens except 0.

    ``buffers`` are for one step at a time; ``logits`` is (B, V).
    """
    for n in range(len(tokens) - 1):
        for layer in range(len(weights.spec.layers)):
            _take_steps(weights, layer, tokens[n : n + 1], n, buffers, logits, logits[:0], START, first, last)
        for b in range(first, last):
            best = 1
            for token in range(2, weights.spec.vocab_size):
                if logits[token // WIDTH, b, token % WIDTH] > logits[best // WIDTH, b, best % WIDTH]:
                    best = token
            tokens[n + 1, b] = best


class CompiledInference:
    """The network with the weights that it has now, for text of any length.

    Shapes: B rows, T steps, V vocabulary; a state is (L, P, B, h), or (B, h) with one layer and part. All methods
    raise IndexError for a token outside the vocabulary.
    """

    def __init__(self, spec: NetworkSpec, flat: Flat) -> None:
        """Pack the weights, which must not change as long as this is used."""
        self._spec, self._weights = spec, empty_packed(spec, flat)
        pack_weights(flat, self._weights)

    def run(self, ids: Ids, state: State, num_threads: int) -> tuple[NDArray[np.float32], State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step.

        Threads share the batch rows, or the layers if there are few rows.
        """
        batch_size, num_steps = ids.shape
        logits = empty_panels(num_steps * batch_size, self._spec.vocab_size)
        after = self._read(ids, state, num_threads, logits, _NOTHING)
        rows = from_panels(logits, self._spec.vocab_size).reshape(num_steps, batch_size, -1)
        return rows.transpose(1, 0, 2), after

    def advance_state(self, ids: Ids, state: State, num_threads: int) -> State:
        """Return the state after ids ``(B, T)``."""
        return self._read(ids, state, num_threads, _NOTHING, _NOTHING)

    def token_nll(self, ids: Ids, targets: Ids, state: State, num_threads: int) -> tuple[Nll, State]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``.

        Logits are in the cache only. Threads first share what they do in :meth:`run`, then rows of logits.
        """
        batch_size, num_steps = ids.shape
        outputs = empty_panels(num_steps * batch_size, self._spec.num_hiddens)
        after = self._read(ids, state, num_threads, _NOTHING, outputs)
        wanted, weights = to_tokens(targets, self._spec.vocab_size).reshape(-1), self._weights
        nll = nll_of_outputs(weights.outputs, weights.output_bias, outputs, self._spec.vocab_size, wanted, num_threads)
        return nll.reshape(num_steps, batch_size).T, after

    def step_fn(self, state: State) -> Callable[[Ids], NDArray[np.float32]]:
        """Return a function from one token per row to logits ``(B, V)``; it keeps the state."""
        (batch_size, _), vocab_size, times = state.shape[-2:], self._spec.vocab_size, itertools.count()
        buffers, logits, control = self._buffers(1, state), empty_panels(batch_size, vocab_size), new_control(1)

        def step(ids: Ids) -> NDArray[np.float32]:
            tokens = to_tokens(ids[:, None], vocab_size)
            read(self._weights, tokens, next(times), buffers, logits, _NOTHING, 0, batch_size, 0, 1, control)
            return from_panels(logits, vocab_size)

        return step

    def continue_greedily(self, ids: Ids, state: State, num_preds: int, num_threads: int) -> Ids:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` (B,), each the likeliest except token 0."""
        batch_size = len(ids)
        tokens = np.empty((num_preds + 1, batch_size), np.int64)
        tokens[0] = to_tokens(ids[:, None], self._spec.vocab_size)
        buffers, logits = self._buffers(1, state), empty_panels(batch_size, self._spec.vocab_size)

        def write(first: int, last: int) -> None:
            write_greedily(self._weights, tokens, buffers, logits, first, last)

        in_threads(write, split_rows(batch_size, num_threads))
        return tokens[1:].T.copy()

    def _read(self, ids: Ids, state: State, num_threads: int, logits: Panels, outputs: Panels) -> State:
        """Set logits and what the last layer outputs, if they have panels; return the state after ids."""
        batch_size, num_steps = ids.shape
        tokens = to_tokens(ids, self._spec.vocab_size)
        buffers = self._buffers(max(min(_ROWS_AT_ONCE // batch_size, num_steps), 1), state)
        parts = split_rows(batch_size, num_threads)
        size = min(num_threads, len(self._spec.layers)) if len(parts) == 1 else 1
        control = new_control(size)

        def take(first: int, last: int, member: int) -> None:
            read(self._weights, tokens, 0, buffers, logits, outputs, first, last, member, size, control)

        in_threads(take, [(*part, member) for part in parts for member in range(size)])
        last = (num_steps - 1) * batch_size % buffers.states.shape[2]
        return state_at(buffers.states, buffers.memories, last, state.shape)

    def _buffers(self, num_steps: int, state: State) -> InferenceBuffers:
        """Return buffers for so many steps at a time, with the state before step 0 in its place."""
        spec, batch_size = self._spec, state.shape[-2]
        rows, hiddens, layers = num_steps * batch_size, spec.num_hiddens, len(spec.layers)
        buffers = InferenceBuffers(
            embedded=empty_panels(rows, spec.embedding_size),
            gates=empty_panels(rows, spec.cell.num_blocks * padded(hiddens), layers),
            states=empty_panels(2 * rows, hiddens, layers),
            memories=empty_panels(2 * rows, hiddens if spec.cell.has_memory else 0, layers),
        )
        put_state(state, buffers.states, buffers.memories, 2 * rows - batch_size)
        return buffers
