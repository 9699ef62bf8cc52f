"""The gradients of a minibatch, by backpropagation through time, as compiled loops for a team of threads.

Lanes do not touch each other until their gradients are summed up. So each member takes some lanes
through all steps of all layers, forward and backward, without waiting for the others; after that
each takes some rows of the gradients (:mod:`seqlm.rnn.compiled.sums`). Every sum has one order, whatever
the number of members.
"""

import numpy as np

from seqlm.rnn.compiled.cells import Slopes, Step, differentiate
from seqlm.rnn.compiled.compiling import ONCE, START, entry, inner, spliced
from seqlm.rnn.compiled.elementary import exp
from seqlm.rnn.compiled.forward import add_products, advance, embed, score, take_in
from seqlm.rnn.compiled.parameters import pack, pack_back
from seqlm.rnn.compiled.products import Panels, add_product
from seqlm.rnn.compiled.sums import sum_up_embedding, sum_up_layer, sum_up_outputs
from seqlm.rnn.compiled.team import Control, await_round, barrier, share
from seqlm.rnn.compiled.tiles import ROWS, WIDTH
from seqlm.rnn.compiled.work import Work


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
    sum_up_outputs(work, member, size)
    for layer in range(len(work.form.layers)):
        sum_up_layer(work, layer, member, size)
    barrier(control, size)
    if work.form.embedding_size > 0:
        sum_up_embedding(work, member, size)
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


@entry
def serve_gradients(member: int, size: int, control: Control, work: Work, done: int) -> int:
    """Do a member's part of the gradients in every round of a team (:class:`seqlm.rnn.compiled.team.Team`)."""
    turn = await_round(member, control, done)
    while turn > done:
        find_gradients(member, size, control, work)
        done = turn
        turn = await_round(member, control, done)
    return turn
