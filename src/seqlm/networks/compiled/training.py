"""The gradients of a minibatch, by backpropagation through time, as compiled loops for a team of
threads.

Batch rows do not depend on each other until their gradients are summed up. So each thread takes
some rows through all steps of all layers, forward and backward, without waiting for the others;
after that each computes some rows of the weights' gradients. Every sum has one order, whatever the
number of threads.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import ZERO, jit_entry, jit_inline, jit_internal
from seqlm.core.elementary import exp_single, log_of
from seqlm.networks.compiled import forward, weights
from seqlm.networks.compiled.cells import differentiate
from seqlm.networks.compiled.forward import Activations, State
from seqlm.networks.compiled.team import Member, Team, barrier, share, wait_for_task
from seqlm.networks.compiled.tiles import (
    MAX_SUMS,
    ROWS,
    WIDTH,
    BatchRows,
    Matrix,
    Stack,
    Steps,
    Tokens,
    Vector,
    add_product,
    empty_rows,
    product_of_columns,
    to_tokens,
)
from seqlm.networks.compiled.weights import Flat, NetworkSpec, PackedWeights, is_one_hot
from seqlm.networks.network import DropoutMask

_ROWS_AT_ONCE = 256
"""Rows of the steps that a layer takes at a time."""


class TrainBuffers(NamedTuple):
    """All that a team needs for the gradients of a minibatch of T steps and B rows."""

    gradients: Flat
    packing: weights.Packing
    packed: PackedWeights
    back: weights.BackWeights
    inputs: Tokens
    """(T, B)."""
    targets: Tokens
    """(T, B)."""
    input_mask: Matrix
    """(B, E): dropout's factors of the embeddings; no rows without dropout."""
    masks: Stack
    """(L, B, h): dropout's factors of what each layer outputs."""
    has_gradient_mask: NDArray[np.bool_]
    """One value: whether there are factors ``gradient_mask``."""
    gradient_mask: Matrix
    """(T, B): factors of the gradient that each step sends back (8.7.8)."""
    activations: Activations
    """Of all T steps. The gates are activations, then gradients with respect to the sums."""
    d_embedded: Steps
    """(T, B, E): the loss's gradients with respect to the embeddings."""
    logits: Steps
    """(T, B, V): logits, then the loss's gradients with respect to them."""
    nll: NDArray[np.float64]
    """(T, B): -log p of every target."""
    d_states: Steps
    """(S, B, h): the loss's gradients with respect to the states of S steps."""
    d_before: Steps
    """(1, B, h): what a step leaves to the one before it
    (:func:`seqlm.networks.compiled.cells.differentiate`)."""
    masked: Steps
    """(1, B, h): space for gradients times ``gradient_mask``."""
    sums: Stack
    """(threads, 1, MAX_SUMS, columns): space for a part of a product of columns for each thread."""


@jit_internal
def _forward(buffers: TrainBuffers, rows: BatchRows) -> None:
    """Take batch rows through all steps of all layers; set the mean loss's gradients with respect
    to the logits."""
    packed, activations, num_steps = buffers.packed, buffers.activations, len(buffers.inputs)
    at_once, num_layers = len(buffers.d_states), len(packed.spec.layers)
    vocab_size, scale = packed.spec.vocab_size, np.float32(1 / buffers.inputs.size)
    if packed.spec.embedding_size > 0:
        forward.look_up(packed.embedding, buffers.inputs, activations.embedded, rows)
        _drop(activations.embedded, activations.embedded, buffers.input_mask, rows)
    for layer in range(num_layers):
        for start in range(0, num_steps, at_once):
            end = min(start + at_once, num_steps)
            tokens = buffers.inputs[start:end]
            forward.run_layer(packed, layer, tokens, rows, activations, start, start)
            states = activations.states[layer, start + 1 : end + 1]
            outputs = activations.outputs[layer, start + 1 : end + 1]
            _drop(states, outputs, buffers.masks[layer], rows)
            if layer == num_layers - 1:
                some = buffers.logits[start:end]
                forward.output_logits(packed.outputs, packed.output_bias, outputs, rows, some)
                for t in range(start, end):
                    for b in range(rows.first, rows.last):
                        buffers.nll[t, b] = _softmax_cross_entropy_backward(
                            buffers.logits[t, b], vocab_size, buffers.targets[t, b], scale
                        )


@jit_internal
def _drop(source: Steps, target: Steps, mask: Matrix, rows: BatchRows) -> None:
    """Set batch rows of the target (T, B, N) to the source times the mask (B, N), if this has
    rows."""
    if len(mask) == 0:
        return
    for t in range(len(source)):
        for b in range(rows.first, rows.last):
            for k in range(mask.shape[1]):
                target[t, b, k] = source[t, b, k] * mask[b, k]


@jit_internal
def _softmax_cross_entropy_backward(
    logits: Vector, vocab_size: int, target: int, scale: np.float32
) -> float:
    """Replace a row of logits by (softmax - one-hot) times ``scale``, (8.7.11), and return -log p
    of the target."""
    largest = logits[0]
    for k in range(vocab_size):
        if logits[k] > largest:
            largest = logits[k]
    target_logit = logits[target] - largest
    for k in range(len(logits)):  # whole vectors, which is faster
        logits[k] = exp_single(logits[k] - largest)
    for k in range(vocab_size, len(logits)):
        logits[k] = 0
    total = np.float32(0)
    for k in range(vocab_size):
        total += logits[k]
    factor = scale / total
    for k in range(len(logits)):
        logits[k] *= factor
    logits[target] -= scale
    return log_of(np.float64(total)) - np.float64(target_logit)


@jit_internal
def _backward(buffers: TrainBuffers, rows: BatchRows) -> None:
    """Replace the gates of batch rows with the gradients of the mean loss with respect to the sums.

    Also set the gradients with respect to the embeddings.
    """
    packed, d_states, num_steps = buffers.packed, buffers.d_states, len(buffers.inputs)
    at_once, top, gates = len(d_states), len(packed.spec.layers) - 1, buffers.activations.gates
    for layer in range(top, -1, -1):
        buffers.d_before[0, rows.first : rows.last] = 0
        for start in range((num_steps - 1) // at_once * at_once, -1, -at_once):
            end = min(start + at_once, num_steps)
            some = d_states[: end - start]
            some[:, rows.first : rows.last] = 0
            if layer == top:
                add_product(some, buffers.logits[start:end], buffers.back.outputs, rows, ZERO)
            else:
                _add_products(some, gates[layer + 1], start, buffers.back.inputs[layer + 1], rows)
            _drop(some, some, buffers.masks[layer], rows)
            for t in range(end - 1, start - 1, -1):
                _step_backward(buffers, layer, t, d_states[t - start : t - start + 1], rows)
    if packed.spec.embedding_size > 0:
        d_embedded = buffers.d_embedded
        d_embedded[:, rows.first : rows.last] = 0
        _add_products(d_embedded, gates[0], ZERO, buffers.back.inputs[0], rows)
        _drop(d_embedded, d_embedded, buffers.input_mask, rows)


@jit_internal
def _add_products(
    result: Steps, gates: Stack, start: int, weights_back: Stack, rows: BatchRows
) -> None:
    """Add to a result (S, B, N) the products of all gates (blocks, T, B, h), from step ``start``
    on."""
    for gate in range(len(weights_back)):
        deltas = gates[gate, start : start + len(result)]
        add_product(result, deltas, weights_back[gate], rows, ZERO)


@jit_internal
def _step_backward(
    buffers: TrainBuffers, layer: int, t: int, d_state: Steps, rows: BatchRows
) -> None:
    """Add what step t + 1 sends back to the gradients with respect to the states of step t;
    differentiate step t."""
    activations, packed = buffers.activations, buffers.packed
    cell, gates = packed.spec.cell, activations.gates[layer]
    if t < len(buffers.inputs) - 1:
        recurrent = buffers.back.recurrent[layer]
        for n in range(len(recurrent)):
            deltas = gates[cell.first_state_block + n, t + 1 : t + 2]
            if buffers.has_gradient_mask[0]:
                for b in range(rows.first, rows.last):
                    for k in range(deltas.shape[2]):
                        buffers.masked[0, b, k] = deltas[0, b, k] * buffers.gradient_mask[t + 1, b]
                deltas = buffers.masked
            add_product(d_state, deltas, recurrent[n], rows, t)
    differentiate(
        cell.kind,
        gates,
        activations.states[layer],
        activations.cell_states[layer],
        t,
        d_state,
        buffers.d_before,
        rows,
    )


# The gradients of the weights are sums over all steps and batch rows. Each thread computes some of
# their rows or columns.


@jit_inline
def _matrix_of(
    spec: NetworkSpec, flat: Flat, start: int, num_inputs: int, num_outputs: int
) -> Matrix:
    """Return the part of the flat array from ``start`` on as a matrix (inputs, outputs)."""
    part = flat[start : start + num_inputs * num_outputs]
    if spec.is_input_major:
        return part.reshape(num_inputs, num_outputs)
    return part.reshape(num_outputs, num_inputs).T


@jit_inline
def _gate_matrix(spec: NetworkSpec, flat: Flat, layer: int, operand: int, gate: int) -> Matrix:
    """Return the matrix of a gate: ``operand`` 0 is the layer's input, 1 the state before."""
    size = units = spec.num_hiddens
    if layer == 0 and operand == 0:
        size = spec.embedding_size or spec.vocab_size
    return _matrix_of(spec, flat, spec.layers[layer, operand] + gate * size * units, size, units)


@jit_inline
def _output_gradients(buffers: TrainBuffers, member: Member) -> None:
    """Set a thread's part of the gradients of the output layer (8.7.12)."""
    spec, flat = buffers.packed.spec, buffers.gradients
    outputs = buffers.activations.outputs[len(spec.layers) - 1, 1:]
    matrix = _matrix_of(spec, flat, spec.outputs, spec.num_hiddens, spec.vocab_size)
    _matrix_gradients(buffers, matrix, outputs, buffers.logits, member)
    bias = flat[spec.output_bias : spec.output_bias + spec.vocab_size]
    first, last = share(len(bias), WIDTH, member)
    _sum_rows(buffers.logits, first, last, bias)


@jit_internal
def _layer_gradients(buffers: TrainBuffers, layer: int, member: Member) -> None:
    """Set a thread's part of the gradients of a layer (8.7.15), (8.7.16)."""
    spec, flat, activations = buffers.packed.spec, buffers.gradients, buffers.activations
    units, starts = spec.num_hiddens, spec.layers[layer]
    first, last = share(units, WIDTH, member)
    for gate in range(len(spec.cell.input_blocks)):
        input_block, state_block = spec.cell.input_blocks[gate], spec.cell.first_state_block + gate
        for operand in range(2):
            matrix = _gate_matrix(spec, flat, layer, operand, gate)
            deltas = activations.gates[layer, state_block if operand == 1 else input_block]
            if operand == 0 and is_one_hot(spec, layer):
                # The table has served for this minibatch, and gives the space.
                table = buffers.packed.table[input_block]
                table[:, first:last] = 0
                _add_by_token(buffers.inputs, deltas, table, first, last)
                for token in range(len(table)):
                    for unit in range(first, last):
                        matrix[token, unit] = table[token, unit]
                deltas = buffers.packed.table[input_block : input_block + 1]
            else:
                factors = activations.embedded
                if operand == 1:
                    factors = activations.states[layer, : len(buffers.inputs)]
                elif layer > 0:
                    factors = activations.outputs[layer - 1, 1:]
                _matrix_gradients(buffers, matrix, factors, deltas, member)
            if starts[2 + operand] >= 0:
                bias = flat[starts[2 + operand] + gate * units :][:units]
                if operand == 0 or state_block != input_block:
                    _sum_rows(deltas, first, last, bias)
                else:  # the same sum as that of the first bias
                    for unit in range(first, last):
                        bias[unit] = flat[starts[2] + gate * units + unit]


@jit_inline
def _matrix_gradients(
    buffers: TrainBuffers, matrix: Matrix, inputs: Steps, deltas: Steps, member: Member
) -> None:
    """Set a thread's part of the gradients of a matrix (inputs, outputs): over all steps and batch
    rows, inputs times gradients with respect to sums."""
    out, left, right = matrix, inputs, deltas
    if not buffers.packed.spec.is_input_major:  # its rows are those in memory
        out, left, right = matrix.T, right, left
    first, last = share(len(out), ROWS, member)
    product_of_columns(out, first, last, left, right, buffers.sums[member.thread])


@jit_internal
def _sum_rows(steps: Steps, first: int, last: int, sums: Vector) -> None:
    """Set the sums from ``first`` to ``last`` to those of the columns."""
    sums[first:last] = 0
    for t in range(len(steps)):
        for b in range(steps.shape[1]):
            for k in range(first, last):
                sums[k] += steps[t, b, k]


@jit_internal
def _add_by_token(tokens: Tokens, deltas: Steps, sums: Matrix, first: int, last: int) -> None:
    """Add to columns of ``sums`` (V, N) each token's sum of ``deltas`` (T, B, N): a one-hot vector
    picks a row."""
    for t in range(len(tokens)):
        for b in range(tokens.shape[1]):
            token = tokens[t, b]  # otherwise read again for each number
            for k in range(first, last):
                sums[token, k] += deltas[t, b, k]


@jit_internal
def _embedding_gradients(buffers: TrainBuffers, member: Member) -> None:
    """Set some columns of the embedding's gradients, or add to them if they are the output layer's
    too."""
    spec = buffers.packed.spec
    numbers = buffers.gradients[spec.embedding :][: spec.vocab_size * spec.embedding_size]
    target = numbers.reshape(spec.vocab_size, spec.embedding_size)
    first, last = share(spec.embedding_size, WIDTH, member)
    if spec.embedding != spec.outputs:
        target[:, first:last] = 0
    _add_by_token(buffers.inputs, buffers.d_embedded, target, first, last)


@jit_entry
def serve_gradients(member: Member, buffers: TrainBuffers) -> None:
    """Do a thread's part of the gradients of a minibatch, again and again
    (:class:`seqlm.networks.compiled.team.Team`)."""
    number, spec = 1, buffers.packed.spec
    while wait_for_task(member, number):
        number += 1
        weights.pack(buffers.packing, member)
        barrier(member)
        first, last = share(buffers.inputs.shape[1], ROWS, member)
        if first < last:
            rows = BatchRows(first, last)
            _forward(buffers, rows)
            _backward(buffers, rows)
        barrier(member)
        _output_gradients(buffers, member)
        for layer in range(len(spec.layers)):
            _layer_gradients(buffers, layer, member)
        barrier(member)
        if spec.embedding_size > 0:
            _embedding_gradients(buffers, member)
            barrier(member)


class CompiledGradients(Team):
    """The gradients of minibatches of one shape, by a team of threads."""

    def __init__(
        self,
        spec: NetworkSpec,
        flat: Flat,
        gradients: Flat,
        state_shape: tuple[int, ...],
        num_steps: int,
        dropout: float,
        num_threads: int,
    ) -> None:
        """Start the team for minibatches with states of a shape.

        ``flat`` is read and ``gradients`` written in place, in every call of :meth:`compute`.
        """
        self.dropout, state = dropout, np.zeros(state_shape, np.float32)
        layers, _, batch_size, hiddens = state_shape
        shape, has_dropout = (num_steps, batch_size), dropout > 0
        widest = max(weights.max_inputs(spec), hiddens, spec.vocab_size)
        packed, back, packing = weights.empty_packed(spec, flat, for_training=True)
        buffers = TrainBuffers(
            gradients=gradients,
            packing=packing,
            packed=packed,
            back=back,
            inputs=np.zeros(shape, np.int64),
            targets=np.zeros(shape, np.int64),
            input_mask=empty_rows(batch_size * has_dropout, spec.embedding_size),
            masks=empty_rows(layers, batch_size * has_dropout, hiddens),
            has_gradient_mask=np.zeros(1, np.bool_),
            gradient_mask=np.ones(shape, np.float32),
            activations=forward.empty_activations(
                spec, state, num_steps, num_steps, has_dropout=has_dropout
            ),
            d_embedded=empty_rows(*shape, spec.embedding_size),
            logits=empty_rows(*shape, spec.vocab_size),
            nll=np.zeros(shape),
            d_states=empty_rows(max(_ROWS_AT_ONCE // batch_size, 1), batch_size, hiddens),
            d_before=empty_rows(1, batch_size, hiddens),
            masked=empty_rows(1, batch_size, hiddens),
            sums=empty_rows(num_threads, 1, MAX_SUMS, widest),
        )
        super().__init__(num_threads, serve_gradients, buffers)

    def compute(
        self,
        inputs: NDArray[np.int64],
        targets: NDArray[np.int64],
        state: State,
        draw_mask: DropoutMask | None,
        gradient_mask: Matrix | None,
    ) -> tuple[NDArray[np.float64], State]:
        """Do what :meth:`seqlm.networks.network.Network.compute_gradients` does."""
        buffers, spec = self.buffers, self.buffers.packed.spec
        buffers.inputs[:] = to_tokens(inputs, spec.vocab_size)
        buffers.targets[:] = to_tokens(targets, spec.vocab_size)
        forward.put_state(state, buffers.activations)
        if self.dropout and draw_mask is not None:
            masks = [(buffers.input_mask, spec.embedding_size)]
            for mask, size in masks + [(mask, spec.num_hiddens) for mask in buffers.masks]:
                mask[:, :size] = draw_mask(size, self.dropout)[:, 0] if size else 0
        buffers.has_gradient_mask[0] = gradient_mask is not None
        if gradient_mask is not None:
            buffers.gradient_mask[:] = gradient_mask
        self.run()
        return buffers.nll.T.copy(), forward.last_state(spec, buffers.activations)
