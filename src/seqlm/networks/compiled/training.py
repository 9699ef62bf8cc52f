"""The gradients of a minibatch, by backpropagation through time, as compiled loops for a team of
threads.

Batch rows do not depend on each other until their gradients are summed up. So each member takes
some rows through all steps of all layers, forward and backward, without waiting for the others;
after that each computes some rows of the weights' gradients. Every sum has one order, whatever the
number of members.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import ONE, ZERO, jit_entry, jit_inline, jit_internal
from seqlm.core.elementary import exp_single, log_of
from seqlm.networks.compiled import forward, tiles, weights
from seqlm.networks.compiled.cells import CellStep, StepGradients, differentiate
from seqlm.networks.compiled.forward import Activations, BatchRows, State
from seqlm.networks.compiled.team import Control, Team, barrier, member_range, wait_for_task
from seqlm.networks.compiled.tiles import (
    ROWS,
    WIDTH,
    Matrix,
    Panels,
    Tokens,
    empty_panels,
    to_panels,
    to_tokens,
)
from seqlm.networks.compiled.weights import Flat, NetworkSpec, PackedWeights, weight_matrix
from seqlm.networks.network import DropoutMask

_ROWS_OF_STEPS = 256
"""Rows of the steps that a layer takes at a time."""


class TrainBuffers(NamedTuple):
    """All that a team needs for the gradients of a minibatch of T steps and B rows."""

    flat: Flat
    gradients: Flat
    packed: PackedWeights
    inputs: Tokens
    """(T, B)."""
    targets: Tokens
    """(T, B)."""
    has_dropout: bool
    input_mask: Panels
    """(B, E): dropout's factors of the embeddings."""
    masks: NDArray[np.float32]
    """(L, panels, B, WIDTH): dropout's factors of what each layer outputs."""
    has_gradient_mask: NDArray[np.bool_]
    """One value: whether there are factors ``gradient_mask``."""
    gradient_mask: Matrix
    """(T, B): factors of the gradient that each step sends back (8.7.8)."""
    steps: Activations
    """Of all T steps. The gates are activations, then gradients with respect to the sums."""
    d_embedded: Panels
    """(T B, E): the loss's gradients with respect to the embeddings."""
    logits: Panels
    """(T B, V): logits, then the loss's gradients with respect to them."""
    nll: NDArray[np.float64]
    """(T, B): -log p of every target."""
    d_states: Panels
    """(S B, h): the loss's gradients with respect to the states of S steps."""
    carry: Panels
    """(B, h): what a step leaves to the one before it
    (:class:`seqlm.networks.compiled.cells.StepGradients`)."""
    sent: Panels
    """(B, state blocks): space for gradients times ``gradient_mask``."""
    sums: NDArray[np.float32]
    """(members, panels, ROWS_AT_ONCE, WIDTH): space for a part of an outer product for each
    member."""


@jit_inline
def _find_gradients(member: int, size: int, control: Control, buffers: TrainBuffers) -> None:
    """Do a member's part of the gradients of a minibatch. All members return when all are done."""
    spec, batch_size = buffers.packed.spec, buffers.inputs.shape[1]
    weights.pack(buffers.flat, buffers.packed, member, size)
    barrier(control, size)
    first, last = member_range(batch_size, ROWS, member, size)
    if first < last:
        rows = BatchRows(first, last, batch_size)
        _forward(buffers, rows)
        _backward(buffers, rows)
    barrier(control, size)
    _output_gradients(buffers, member, size)
    for layer in range(len(spec.layers)):
        _layer_gradients(buffers, layer, member, size)
    barrier(control, size)
    if spec.embedding_size > 0:
        _embedding_gradients(buffers, member, size)
        barrier(control, size)


@jit_internal
def _forward(buffers: TrainBuffers, rows: BatchRows) -> None:
    """Take batch rows through all steps of all layers; set the mean loss's gradients with respect
    to the logits."""
    packed, steps, (num_steps, batch_size) = buffers.packed, buffers.steps, buffers.inputs.shape
    at_once, num_layers = buffers.d_states.shape[1] // batch_size, len(packed.spec.layers)
    if packed.spec.embedding_size > 0:
        forward.embed(packed, buffers.inputs, steps.embedded, ZERO, rows)
        if buffers.has_dropout:
            _drop(steps.embedded, steps.embedded, ZERO, num_steps, buffers.input_mask, rows)
    for layer in range(num_layers):
        for start in range(0, num_steps, at_once):
            tokens, row = (
                buffers.inputs[start : min(start + at_once, num_steps)],
                start * batch_size,
            )
            forward.run_layer(packed, layer, tokens, rows, steps, start, row)
            if buffers.has_dropout:
                row += batch_size
                _drop(
                    steps.states[layer],
                    steps.outputs[layer],
                    row,
                    len(tokens),
                    buffers.masks[layer],
                    rows,
                )
    scale = np.float32(1 / (num_steps * batch_size))
    for start in range(0, num_steps, at_once):
        end, row = min(start + at_once, num_steps), start * batch_size
        outputs = steps.outputs[num_layers - 1]
        forward.output_logits(
            packed, outputs, row + batch_size, end - start, rows, buffers.logits, row
        )
        for t in range(start, end):
            for b in range(rows.first, rows.last):
                buffers.nll[t, b] = _softmax_cross_entropy_backward(
                    buffers.logits,
                    t * batch_size + b,
                    packed.spec.vocab_size,
                    buffers.targets[t, b],
                    scale,
                )


@jit_internal
def _drop(
    source: Panels, target: Panels, row: int, num_steps: int, mask: Panels, rows: BatchRows
) -> None:
    """Set ``target`` at some steps, from ``row`` on, to ``source`` times each batch row's row of
    the mask."""
    for p in range(mask.shape[0]):
        for t in range(num_steps):
            for b in range(rows.first, rows.last):
                place = row + t * rows.batch_size + b
                for k in range(WIDTH):
                    target[p, place, k] = source[p, place, k] * mask[p, b, k]


@jit_internal
def _softmax_cross_entropy_backward(
    logits: Panels, row: int, vocab_size: int, target: int, scale: np.float32
) -> float:
    """Replace a row of logits by (softmax - one-hot) times ``scale``, (8.7.11), and return -log p
    of the target."""
    largest = logits[0, row, 0]
    for p in range(logits.shape[0]):
        for column in range(min(WIDTH, vocab_size - p * WIDTH)):
            value = logits[p, row, column]
            if value > largest:
                largest = value
    wanted = logits[target // WIDTH, row, target % WIDTH] - largest
    total = np.float32(0)
    for p in range(logits.shape[0]):
        for column in range(WIDTH):
            logits[p, row, column] = exp_single(logits[p, row, column] - largest)
        width = min(WIDTH, vocab_size - p * WIDTH)
        for column in range(width):
            total += logits[p, row, column]
        # Zeros beyond the vocabulary.
        for column in range(width, WIDTH):
            logits[p, row, column] = 0
    factor = scale / total
    for p in range(logits.shape[0]):
        for column in range(WIDTH):
            logits[p, row, column] *= factor
    logits[target // WIDTH, row, target % WIDTH] -= scale
    return log_of(np.float64(total)) - np.float64(wanted)


@jit_internal
def _backward(buffers: TrainBuffers, rows: BatchRows) -> None:
    """Replace the gates of batch rows with the gradients of the mean loss with respect to the sums.

    Also set the gradients with respect to the embeddings.
    """
    (num_steps, batch_size), spec, d_states = (
        buffers.inputs.shape,
        buffers.packed.spec,
        buffers.d_states,
    )
    at_once, top = d_states.shape[1] // batch_size, len(spec.layers) - 1
    for layer in range(top, -1, -1):
        buffers.carry[:, rows.first : rows.last] = 0
        for start in range((num_steps - 1) // at_once * at_once, -1, -at_once):
            end, row = min(start + at_once, num_steps), start * batch_size
            if layer == top:
                _set_product(
                    d_states, buffers.logits, row, end - start, rows, buffers.packed.outputs_back
                )
            else:
                _gradients_by_inputs(buffers, layer + 1, row, end - start, rows, d_states)
            if buffers.has_dropout:
                _drop(d_states, d_states, ZERO, end - start, buffers.masks[layer], rows)
            for t in range(end - 1, start - 1, -1):
                _step_backward(buffers, layer, t, start, rows)
    if spec.embedding_size > 0:
        _gradients_by_inputs(buffers, ZERO, ZERO, num_steps, rows, buffers.d_embedded)
        if buffers.has_dropout:
            _drop(buffers.d_embedded, buffers.d_embedded, ZERO, num_steps, buffers.input_mask, rows)


@jit_inline
def _gradients_by_inputs(
    buffers: TrainBuffers, layer: int, row: int, num_steps: int, rows: BatchRows, found: Panels
) -> None:
    """Set ``found`` to the gradients with respect to a layer's inputs at some steps, whose sums
    begin at ``row``."""
    sums = buffers.steps.gates[layer][: buffers.packed.inputs_back.shape[2] // WIDTH]
    _set_product(
        found, sums, row, num_steps, rows, buffers.packed.inputs_back[layer][: found.shape[0]]
    )


@jit_internal
def _set_product(
    found: Panels, left: Panels, row: int, num_steps: int, rows: BatchRows, right: Panels
) -> None:
    """Set ``found`` to the product of some steps' rows of the left matrix, from ``row`` on, and the
    right one."""
    for p in range(found.shape[0]):
        for t in range(num_steps):
            found[p, t * rows.batch_size + rows.first : t * rows.batch_size + rows.last] = 0
    forward.add_products(found, ZERO, left, row, num_steps, rows, right)


@jit_inline
def _step_backward(buffers: TrainBuffers, layer: int, t: int, start: int, rows: BatchRows) -> None:
    """Add what step t + 1 sends back to the gradients with respect to the states of step t;
    differentiate step t."""
    steps, cell, (num_steps, batch_size) = (
        buffers.steps,
        buffers.packed.spec.cell,
        buffers.inputs.shape,
    )
    gates, states, recurrent = (
        steps.gates[layer],
        steps.states[layer],
        buffers.packed.recurrent_back[layer],
    )
    row, gradient_row = t * batch_size + rows.first, (t - start) * batch_size + rows.first
    num_rows = rows.last - rows.first
    if t < num_steps - 1:
        block = cell.first_state_block * states.shape[0]
        later, place = gates[block : block + buffers.sent.shape[0]], row + batch_size
        if buffers.has_gradient_mask[0]:
            for p in range(buffers.sent.shape[0]):
                for b in range(rows.first, rows.last):
                    for k in range(WIDTH):
                        buffers.sent[p, b, k] = (
                            later[p, (t + 1) * batch_size + b, k] * buffers.gradient_mask[t + 1, b]
                        )
            later, place = buffers.sent, rows.first
        tiles.add_product(
            buffers.d_states, gradient_row, later, place, num_rows, ONE, num_rows, recurrent, t
        )
    step = CellStep(gates, row, states, steps.cell_states[layer], row, row + batch_size, num_rows)
    differentiate(
        cell.kind, step, StepGradients(buffers.d_states, gradient_row, buffers.carry, rows.first)
    )


# The gradients of the weights are sums over all steps and batch rows. Each member computes some of
# their rows or columns.


@jit_inline
def _output_gradients(buffers: TrainBuffers, member: int, size: int) -> None:
    """Set a member's part of the gradients of the output layer (8.7.12)."""
    spec, d_logits, flat = buffers.packed.spec, buffers.logits, buffers.gradients
    outputs, batch_size = buffers.steps.outputs[len(spec.layers) - 1], buffers.inputs.shape[1]
    matrix = weight_matrix(spec, flat, spec.outputs, spec.num_hiddens, spec.vocab_size)
    _matrix_gradients(buffers, matrix, d_logits, outputs, batch_size, member, size)
    first, last = member_range(d_logits.shape[0], 1, member, size)
    _sum_rows(d_logits, first, last, flat[spec.output_bias : spec.output_bias + spec.vocab_size])


@jit_internal
def _layer_gradients(buffers: TrainBuffers, layer: int, member: int, size: int) -> None:
    """Set a member's part of the gradients of a layer (8.7.15), (8.7.16)."""
    spec, flat, steps, batch_size = (
        buffers.packed.spec,
        buffers.gradients,
        buffers.steps,
        buffers.inputs.shape[1],
    )
    units, size_in, panels = (
        spec.num_hiddens,
        weights.num_inputs(spec, layer),
        steps.states.shape[1],
    )
    matrix_start, recurrent_start, bias_start, state_bias_start = spec.layers[layer]
    inputs, input_row = steps.embedded, ZERO
    if layer > 0:
        inputs, input_row = steps.outputs[layer - 1], batch_size
    first, last = member_range(panels, 1, member, size)
    for gate in range(len(spec.cell.input_blocks)):
        block = spec.cell.input_blocks[gate] * panels
        deltas = steps.gates[layer][block : block + panels]
        matrix = weight_matrix(spec, flat, matrix_start + gate * units * size_in, size_in, units)
        if weights.is_one_hot(spec, layer):
            # The table has served for this minibatch, and gives the space.
            table = buffers.packed.table[block : block + panels]
            _sum_tokens(buffers.inputs, deltas, table, first, last)
            tiles.copy(matrix, not spec.is_input_major, table, ZERO, first, last, True)
            deltas = table
        else:
            _matrix_gradients(buffers, matrix, deltas, inputs, input_row, member, size)
        bias = flat[bias_start + gate * units : bias_start + (gate + 1) * units]
        _sum_rows(deltas, first, last, bias)

        state_block = (spec.cell.first_state_block + gate) * panels
        deltas = steps.gates[layer][state_block : state_block + panels]
        matrix = weight_matrix(spec, flat, recurrent_start + gate * units * units, units, units)
        _matrix_gradients(buffers, matrix, deltas, steps.states[layer], ZERO, member, size)
        if state_bias_start >= 0:
            state_bias = flat[
                state_bias_start + gate * units : state_bias_start + (gate + 1) * units
            ]
            if state_block == block:
                for unit in range(first * WIDTH, min(last * WIDTH, units)):
                    state_bias[unit] = bias[unit]
            else:
                _sum_rows(deltas, first, last, state_bias)


@jit_inline
def _matrix_gradients(
    buffers: TrainBuffers,
    matrix: Matrix,
    deltas: Panels,
    inputs: Panels,
    input_row: int,
    member: int,
    size: int,
) -> None:
    """Set a member's part of a matrix of gradients: over all rows, inputs times gradients with
    respect to sums."""
    first, last = member_range(matrix.shape[0], ROWS, member, size)
    num_terms, sums = buffers.logits.shape[1], buffers.sums[member]
    if buffers.packed.spec.is_input_major:
        tiles.outer_product(matrix, first, last, inputs, input_row, deltas, ZERO, num_terms, sums)
    else:
        tiles.outer_product(matrix, first, last, deltas, ZERO, inputs, input_row, num_terms, sums)


@jit_internal
def _sum_rows(panels: Panels, first: int, last: int, sums: Flat) -> None:
    """Set ``sums`` to the sums of the columns of panels ``first`` to ``last``."""
    for p in range(first, last):
        width = min(WIDTH, len(sums) - p * WIDTH)
        part = sums[p * WIDTH : p * WIDTH + width]
        part[:] = 0
        for row in range(panels.shape[1]):
            for k in range(width):
                part[k] += panels[p, row, k]


@jit_internal
def _sum_tokens(tokens: Tokens, deltas: Panels, sums: Panels, first: int, last: int) -> None:
    """Set panels of ``sums`` (V, h) to each token's sum of rows of ``deltas``: a one-hot vector
    picks a row."""
    batch_size = tokens.shape[1]
    for p in range(first, last):
        sums[p] = 0
        for row in range(deltas.shape[1]):
            token = tokens[row // batch_size, row % batch_size]
            for k in range(WIDTH):
                sums[p, token, k] += deltas[p, row, k]


@jit_inline
def _embedding_gradients(buffers: TrainBuffers, member: int, size: int) -> None:
    """Set some columns of the embedding's gradients, or add to them if they are the output layer's
    too."""
    spec, batch_size = buffers.packed.spec, buffers.inputs.shape[1]
    numbers = buffers.gradients[
        spec.embedding : spec.embedding + spec.vocab_size * spec.embedding_size
    ]
    target = numbers.reshape(spec.vocab_size, spec.embedding_size)
    first, last = member_range(buffers.d_embedded.shape[0], 1, member, size)
    start, end = first * WIDTH, min(last * WIDTH, spec.embedding_size)
    if spec.embedding != spec.outputs:
        for token in range(spec.vocab_size):
            target[token, start:end] = 0
    for row in range(buffers.d_embedded.shape[1]):
        token = buffers.inputs[row // batch_size, row % batch_size]
        for p in range(first, last):
            for k in range(min(WIDTH, end - p * WIDTH)):
                target[token, p * WIDTH + k] += buffers.d_embedded[p, row, k]


@jit_entry
def serve_gradients(member: int, size: int, control: Control, buffers: TrainBuffers) -> None:
    """Do a member's part of every task of a team (:class:`seqlm.networks.compiled.team.Team`)."""
    number = 1
    while wait_for_task(member, control, number):
        _find_gradients(member, size, control, buffers)
        number += 1


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
        layers, _, batch_size, hiddens = state.shape
        rows, shape = num_steps * batch_size, (num_steps, batch_size)
        buffers = TrainBuffers(
            flat=flat,
            gradients=gradients,
            packed=weights.empty_packed(spec, flat, for_training=True),
            inputs=np.zeros(shape, np.int64),
            targets=np.zeros(shape, np.int64),
            has_dropout=dropout > 0,
            input_mask=empty_panels(batch_size, spec.embedding_size),
            masks=empty_panels(batch_size, hiddens, layers),
            has_gradient_mask=np.zeros(1, np.bool_),
            gradient_mask=np.ones(shape, np.float32),
            steps=forward.empty_steps(spec, state, num_steps, num_steps, has_dropout=dropout > 0),
            d_embedded=empty_panels(rows, spec.embedding_size),
            logits=empty_panels(rows, spec.vocab_size),
            nll=np.zeros(shape),
            d_states=empty_panels(max(_ROWS_OF_STEPS // batch_size, 1) * batch_size, hiddens),
            carry=empty_panels(batch_size, hiddens),
            sent=empty_panels(batch_size, len(spec.cell.input_blocks) * tiles.padded(hiddens)),
            sums=empty_panels(
                tiles.ROWS_AT_ONCE,
                max(weights.max_inputs(spec), hiddens, spec.vocab_size),
                num_threads,
            ),
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
        forward.put_state(state, buffers.steps)
        if buffers.has_dropout and draw_mask is not None:
            if spec.embedding_size:
                buffers.input_mask[:] = to_panels(
                    draw_mask(spec.embedding_size, self.dropout)[:, 0]
                )
            for mask in buffers.masks:
                mask[:] = to_panels(draw_mask(spec.num_hiddens, self.dropout)[:, 0])
        buffers.has_gradient_mask[0] = gradient_mask is not None
        if gradient_mask is not None:
            buffers.gradient_mask[:] = gradient_mask
        self.run()
        return buffers.nll.T.copy(), forward.last_state(spec, buffers.steps, len(inputs))
