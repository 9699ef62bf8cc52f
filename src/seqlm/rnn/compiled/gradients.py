"""The gradients of a minibatch, by backpropagation through time, as compiled loops for a team of threads.

Lanes do not touch each other until their gradients are summed up. So each member takes some lanes
through all steps of all layers, forward and backward, without waiting for the others; after that
each takes some rows of the gradients. Every sum has one order, whatever the number of members.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.cells import Slopes, Step, differentiate
from seqlm.rnn.compiled.compiling import ONCE, START, entry, inner, spliced
from seqlm.rnn.compiled.elementary import exp
from seqlm.rnn.compiled.forward import Tokens, add_products, advance, embed, score, take_in
from seqlm.rnn.compiled.parameters import (
    Back,
    Flat,
    Form,
    Packed,
    is_one_hot,
    matrix_at,
    matrix_of_gate,
    num_inputs_of,
    output_matrix,
    pack,
    pack_back,
)
from seqlm.rnn.compiled.products import Matrix, Panels, add_product, copy_out, outer_product
from seqlm.rnn.compiled.team import Control, await_round, barrier, share
from seqlm.rnn.compiled.tiles import ROWS, WIDTH


class Work(NamedTuple):
    """All that a team needs for the gradients of a minibatch of T steps of B lanes."""

    form: Form
    weights: Flat
    gradients: Flat
    packed: Packed
    back: Back
    inputs: Tokens
    """(T, B)."""
    targets: Tokens
    """(T, B)."""
    is_dropped: bool
    """Whether there are masks; otherwise ``outputs`` are ``states``."""
    input_mask: Panels
    """(B, E): dropout's factors of the embeddings."""
    masks: NDArray[np.float32]
    """(L, panels, B, WIDTH): dropout's factors of what each layer gives."""
    is_kept: NDArray[np.bool_]
    """One value: whether there are factors of what steps send back."""
    keep: Matrix
    """(T, B): factors of the gradient that goes back from a step (8.7.8)."""
    embedded: Panels
    """(T B, E)."""
    embedding_slopes: Panels
    """(T B, E): the loss's gradients by the embeddings."""
    gates: NDArray[np.float32]
    """(L, panels of all blocks, T B, WIDTH): activations, then gradients by the sums."""
    states: NDArray[np.float32]
    """(L, panels, (T + 1) B, WIDTH): the first B rows are those before the minibatch."""
    memories: NDArray[np.float32]
    """The same, of an LSTM."""
    outputs: NDArray[np.float32]
    """The same as the states, but for dropout."""
    scores: Panels
    """(T B, V): logits, then the loss's gradients by them."""
    nats: NDArray[np.float64]
    """(T, B): -log p of every target."""
    slopes: Panels
    """(S B, h): the loss's gradients by the states of S steps."""
    carry: Panels
    """(B, h): what a step leaves to the one before it (:class:`seqlm.rnn.compiled.cells.Slopes`)."""
    sent: Panels
    """(B, state blocks): room for gradients times ``keep``."""
    sums: NDArray[np.float32]
    """(members, panels, ROWS_AT_ONCE, WIDTH): room for a part of an outer product each."""


@spliced
def find_gradients(member: int, size: int, control: Control, work: Work) -> None:
    """Do a member's part of the gradients of a minibatch. All members return when all are done."""
    pack(work.form, work.weights, work.packed, member, size)
    pack_back(work.form, work.weights, work.back, member, size)
    barrier(control, size)
    first, last = share(work.inputs.shape[1], ROWS, member, size)
    if first < last:
        _go_forward(work, first, last)
        _go_back(work, first, last)
    barrier(control, size)
    _sum_up_outputs(work, member, size)
    for layer in range(len(work.form.layers)):
        _sum_up_layer(work, layer, member, size)
    barrier(control, size)
    if work.form.embedding_size > 0:
        _sum_up_embedding(work, member, size)
        barrier(control, size)


@inner
def _go_forward(work: Work, first: int, last: int) -> None:
    """Take lanes through all steps of all layers, and set the scores to the mean loss's gradients by the logits."""
    (num_steps, lanes), num_layers = work.inputs.shape, len(work.form.layers)
    at_once = work.slopes.shape[1] // lanes
    if work.form.embedding_size > 0:
        embed(work.form, work.weights, work.inputs, work.embedded, START, first, last)
        if work.is_dropped:
            _drop(work.embedded, START, work.embedded, START, num_steps, work.input_mask, first, last)
    for layer in range(num_layers):
        for start in range(0, num_steps, at_once):
            _take_steps(work, layer, start, min(start + at_once, num_steps), first, last)
    share_of_loss = np.float32(1 / (num_steps * lanes))
    for start in range(0, num_steps, at_once):
        end, row = min(start + at_once, num_steps), start * lanes
        score(work.packed, work.outputs[num_layers - 1], row + lanes, end - start, lanes, first, last, work.scores, row)
        for t in range(start, end):
            for lane in range(first, last):
                target = work.targets[t, lane]
                work.nats[t, lane] = _compare(
                    work.scores, t * lanes + lane, work.form.vocab_size, target, share_of_loss
                )


@spliced
def _take_steps(work: Work, layer: int, start: int, end: int, first: int, last: int) -> None:
    """Take lanes of a layer through the steps ``start`` to ``end``."""
    lanes, form = work.inputs.shape[1], work.form
    inputs, input_row = work.embedded, start * lanes
    if layer > 0:
        inputs, input_row = work.outputs[layer - 1], (start + 1) * lanes
    tokens, gates, states = work.inputs[start:end], work.gates[layer], work.states[layer]
    take_in(form, work.packed, layer, tokens, first, last, inputs, input_row, gates, start * lanes)
    for t in range(start, end):
        row = t * lanes + first
        step = Step(gates, row, states, work.memories[layer], row, row + lanes, last - first)
        advance(form, work.packed.recurrent[layer], step, t)
    if work.is_dropped:
        row = (start + 1) * lanes
        _drop(states, row, work.outputs[layer], row, end - start, work.masks[layer], first, last)


@inner
def _drop(
    source: Panels, row: int, target: Panels, target_row: int, num_steps: int, mask: Panels, first: int, last: int
) -> None:
    """Set lanes of ``target`` at some steps to those of ``source`` times the mask's row of their lane."""
    lanes = mask.shape[1]
    for p in range(mask.shape[0]):
        for t in range(num_steps):
            for lane in range(first, last):
                place = t * lanes + lane
                for k in range(WIDTH):
                    target[p, target_row + place, k] = source[p, row + place, k] * mask[p, lane, k]


@inner
def _compare(scores: Panels, row: int, vocab_size: int, target: int, share_of_loss: np.float32) -> float:
    """Turn a row of logits into a share of (softmax - one-hot), (8.7.11), and return -log p of the target."""
    largest = scores[0, row, 0]
    for p in range(scores.shape[0]):
        for column in range(min(WIDTH, vocab_size - p * WIDTH)):
            value = scores[p, row, column]
            if value > largest:
                largest = value
    wanted = scores[target // WIDTH, row, target % WIDTH] - largest
    total = np.float32(0)
    for p in range(scores.shape[0]):
        for column in range(WIDTH):
            scores[p, row, column] = exp(scores[p, row, column] - largest)
        width = min(WIDTH, vocab_size - p * WIDTH)
        for column in range(width):
            total += scores[p, row, column]
        # Beyond the vocabulary stand zeros.
        for column in range(width, WIDTH):
            scores[p, row, column] = 0
    scale = share_of_loss / total
    for p in range(scores.shape[0]):
        for column in range(WIDTH):
            scores[p, row, column] *= scale
    scores[target // WIDTH, row, target % WIDTH] -= share_of_loss
    return np.log(np.float64(total)) - np.float64(wanted)


@inner
def _go_back(work: Work, first: int, last: int) -> None:
    """Set lanes' gates to the mean loss's gradients by the sums, and the embeddings to the gradients by them."""
    (num_steps, lanes), form = work.inputs.shape, work.form
    at_once = work.slopes.shape[1] // lanes
    for layer in range(len(form.layers) - 1, -1, -1):
        work.carry[:, first:last] = 0
        for start in range((num_steps - 1) // at_once * at_once, -1, -at_once):
            end = min(start + at_once, num_steps)
            _slopes_from_above(work, layer, start, end, first, last)
            for t in range(end - 1, start - 1, -1):
                _send_back(work, layer, t, start, first, last)
    if form.embedding_size > 0:
        slopes, sums = work.embedding_slopes, work.gates[0][: work.back.inputs.shape[2] // WIDTH]
        _clear(slopes, START, num_steps, lanes, first, last)
        to_inputs = work.back.inputs[0][: slopes.shape[0]]
        add_products(slopes, START, sums, START, num_steps, lanes, first, last, to_inputs)
        if work.is_dropped:
            _drop(slopes, START, slopes, START, num_steps, work.input_mask, first, last)


@inner
def _clear(panels: Panels, row: int, num_steps: int, lanes: int, first: int, last: int) -> None:
    for p in range(panels.shape[0]):
        for t in range(num_steps):
            panels[p, row + t * lanes + first : row + t * lanes + last] = 0


@spliced
def _slopes_from_above(work: Work, layer: int, start: int, end: int, first: int, last: int) -> None:
    """Set the slopes to what the output layer, or the layer above, sends to the steps ``start`` to ``end``."""
    lanes, row = work.inputs.shape[1], start * work.inputs.shape[1]
    slopes, num_panels = work.slopes, work.slopes.shape[0]
    _clear(slopes, START, end - start, lanes, first, last)
    if layer == len(work.form.layers) - 1:
        add_products(slopes, START, work.scores, row, end - start, lanes, first, last, work.back.outputs)
    else:
        sums = work.gates[layer + 1][: work.back.inputs.shape[2] // WIDTH]
        to_inputs = work.back.inputs[layer + 1][:num_panels]
        add_products(slopes, START, sums, row, end - start, lanes, first, last, to_inputs)
    if work.is_dropped:
        _drop(slopes, START, slopes, START, end - start, work.masks[layer], first, last)


@spliced
def _send_back(work: Work, layer: int, t: int, start: int, first: int, last: int) -> None:
    """Add what step t + 1 sends back to the slopes of step t, and turn its gates into gradients by its sums."""
    (num_steps, lanes), num_rows = work.inputs.shape, last - first
    gates, states, recurrent = work.gates[layer], work.states[layer], work.back.recurrent[layer]
    row, slope_row = t * lanes + first, (t - start) * lanes + first
    if t < num_steps - 1:
        block = work.form.first_state_block * states.shape[0]
        later, place = gates[block : block + work.sent.shape[0]], row + lanes
        if work.is_kept[0]:
            for p in range(work.sent.shape[0]):
                for lane in range(first, last):
                    for k in range(WIDTH):
                        work.sent[p, lane, k] = later[p, (t + 1) * lanes + lane, k] * work.keep[t + 1, lane]
            later, place = work.sent, first
        add_product(work.slopes, slope_row, later, place, num_rows, ONCE, num_rows, recurrent, t)
    step = Step(gates, row, states, work.memories[layer], row, row + lanes, num_rows)
    differentiate(work.form.cell, step, Slopes(work.slopes, slope_row, work.carry, first))


@spliced
def _sum_up_outputs(work: Work, member: int, size: int) -> None:
    """Set a member's share of the gradients of the output layer (8.7.12)."""
    form, lanes = work.form, work.inputs.shape[1]
    _sum_up_matrix(
        work, output_matrix(form, work.gradients), work.scores, work.outputs[len(form.layers) - 1], lanes, member, size
    )
    first, last = share(work.scores.shape[0], 1, member, size)
    _sum_up_rows(work.scores, first, last, work.gradients[form.output_bias : form.output_bias + form.vocab_size])


@inner
def _sum_up_layer(work: Work, layer: int, member: int, size: int) -> None:
    """Set a member's share of the gradients of a layer (8.7.15), (8.7.16)."""
    form, lanes, panels, units = work.form, work.inputs.shape[1], work.states.shape[1], work.form.num_hiddens
    matrix_start, recurrent_start, bias_start, state_bias_start = form.layers[layer]
    inputs, input_row = work.embedded, START
    if layer > 0:
        inputs, input_row = work.outputs[layer - 1], lanes
    first, last = share(panels, 1, member, size)
    for gate in range(len(form.input_blocks)):
        block = form.input_blocks[gate] * panels
        deltas = work.gates[layer][block : block + panels]
        matrix = matrix_of_gate(form, work.gradients, matrix_start, num_inputs_of(form, layer), gate)
        if is_one_hot(form, layer):
            # The table has served for this minibatch, and gives the room.
            table = work.packed.table[block : block + panels]
            _sum_up_tokens(work.inputs, deltas, table, first, last)
            copy_out(table, matrix, not form.has_input_rows, first, last)
            deltas = table
        else:
            _sum_up_matrix(work, matrix, deltas, inputs, input_row, member, size)
        bias = work.gradients[bias_start + gate * units : bias_start + (gate + 1) * units]
        _sum_up_rows(deltas, first, last, bias)

        state_block = (form.first_state_block + form.state_blocks[gate]) * panels
        deltas = work.gates[layer][state_block : state_block + panels]
        matrix = matrix_of_gate(form, work.gradients, recurrent_start, units, gate)
        _sum_up_matrix(work, matrix, deltas, work.states[layer], START, member, size)
        if state_bias_start >= 0:
            state_bias = work.gradients[state_bias_start + gate * units : state_bias_start + (gate + 1) * units]
            if state_block == block:
                for unit in range(first * WIDTH, min(last * WIDTH, units)):
                    state_bias[unit] = bias[unit]
            else:
                _sum_up_rows(deltas, first, last, state_bias)


@spliced
def _sum_up_matrix(
    work: Work, matrix: Matrix, deltas: Panels, inputs: Panels, input_row: int, member: int, size: int
) -> None:
    """Set a member's share of a matrix of gradients: the sum of all rows' gradients by sums times inputs."""
    first, last = share(matrix.shape[0], ROWS, member, size)
    num_terms, room = work.scores.shape[1], work.sums[member]
    if work.form.has_input_rows:
        outer_product(matrix, first, last, inputs, input_row, deltas, START, num_terms, room)
    else:
        outer_product(matrix, first, last, deltas, START, inputs, input_row, num_terms, room)


@inner
def _sum_up_rows(panels: Panels, first: int, last: int, sums: Flat) -> None:
    """Set ``sums`` to the sums of the columns of panels ``first`` to ``last``."""
    for p in range(first, last):
        width = min(WIDTH, len(sums) - p * WIDTH)
        part = sums[p * WIDTH : p * WIDTH + width]
        part[:] = 0
        for row in range(panels.shape[1]):
            for k in range(width):
                part[k] += panels[p, row, k]


@inner
def _sum_up_tokens(tokens: Tokens, deltas: Panels, sums: Panels, first: int, last: int) -> None:
    """Set panels of ``sums`` (V, h) to each token's sum of rows of ``deltas``: a one-hot vector picks a row."""
    lanes = tokens.shape[1]
    for p in range(first, last):
        sums[p] = 0
        for row in range(deltas.shape[1]):
            token = tokens[row // lanes, row % lanes]
            for k in range(WIDTH):
                sums[p, token, k] += deltas[p, row, k]


@spliced
def _sum_up_embedding(work: Work, member: int, size: int) -> None:
    """Set some columns of the embedding's gradients, or add to them where they are the output layer's too."""
    form, lanes = work.form, work.inputs.shape[1]
    target = matrix_at(work.gradients, form.embedding, form.vocab_size, form.embedding_size)
    first, last = share(work.embedded.shape[0], 1, member, size)
    start, end = first * WIDTH, min(last * WIDTH, form.embedding_size)
    if form.embedding != form.outputs:
        for token in range(form.vocab_size):
            target[token, start:end] = 0
    for row in range(work.embedded.shape[1]):
        token = work.inputs[row // lanes, row % lanes]
        for p in range(first, last):
            for k in range(min(WIDTH, end - p * WIDTH)):
                target[token, p * WIDTH + k] += work.embedding_slopes[p, row, k]


@entry
def serve_gradients(member: int, size: int, control: Control, work: Work, done: int) -> int:
    """Do a member's part of the gradients in every round of a team (:class:`seqlm.rnn.compiled.team.Team`)."""
    turn = await_round(member, control, done)
    while turn > done:
        find_gradients(member, size, control, work)
        done = turn
        turn = await_round(member, control, done)
    return turn
