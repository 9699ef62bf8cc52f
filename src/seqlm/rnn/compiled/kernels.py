"""The network of section 8.5 and its gradients (8.7.14)-(8.7.16) as compiled loops for the processor.

Lanes do not touch each other until their gradients are summed up. So each member of a team
takes some lanes through all steps, forward and backward, without waiting for the others; after
that each takes some rows of the gradients. All matrices but the parameters are in panels
(:mod:`seqlm.rnn.compiled.products`); of states and their gradients, row ``t * B + b`` is lane b at step t.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlm.rnn.compiled.elementary import exp, tanh
from seqlm.rnn.compiled.products import Matrix, Panels, add_product, empty_panels, outer_product, pack, pack_transposed
from seqlm.rnn.compiled.team import Control, barrier, serving
from seqlm.rnn.compiled.tiles import ROWS, WIDTH

Tokens = NDArray[np.int64]


class Parameters(NamedTuple):
    """The parameters, or their gradients, by the names of the book."""

    w_xh: Matrix
    w_hh: Matrix
    b_h: Matrix
    w_hq: Matrix
    b_q: Matrix


class Packed(NamedTuple):
    """The parameters as the loops read them, in panels."""

    inputs: Panels
    """W_xh + b_h: a row for each token."""
    recurrent: Panels
    """W_hh."""
    outputs: Panels
    """W_hq."""
    output_bias: Panels
    """b_q: one row."""


class Work(NamedTuple):
    """All that a team needs for the gradients of a minibatch."""

    weights: Parameters
    gradients: Parameters
    packed: Packed
    recurrent_back: Panels
    """The transpose of W_hh."""
    outputs_back: Panels
    """The transpose of W_hq."""
    inputs: Tokens
    """(T, B)."""
    targets: Tokens
    """(T, B)."""
    keep: Matrix
    """(T, B): factors of the gradient that goes back from a step (8.7.8)."""
    is_kept: NDArray[np.bool_]
    """One value: whether there are such factors."""
    is_relu: bool
    state: Matrix
    """(B, h): before the minibatch, and then after it."""
    states: Panels
    """((T + 1) B, h)."""
    deltas: Panels
    """(T B, h): dL/dZ_t, where Z_t is what the activation is applied to."""
    scores: Panels
    """(T B, V): logits, then their gradient."""
    nats: NDArray[np.float64]
    """(T B): -log p of every target."""
    sent: Panels
    """(B, h): room for what a step sends back."""
    sums: NDArray[np.float32]
    """(members, panels, ROWS_AT_ONCE, WIDTH): room for a part of an outer product each."""


def pack_weights(weights: Parameters) -> Packed:
    """Return the parameters in panels."""
    packed = empty_packed(weights)
    _pack(weights, packed, 0, 1)
    return packed


def empty_packed(weights: Parameters) -> Packed:
    """Return room for the parameters in panels."""
    vocab_size, num_hiddens = weights.w_xh.shape
    padded = WIDTH * -(-num_hiddens // WIDTH)
    return Packed(
        empty_panels(vocab_size, num_hiddens),
        empty_panels(padded, num_hiddens),
        empty_panels(padded, vocab_size),
        empty_panels(1, vocab_size),
    )


@njit(nogil=True)
def _share(count: int, step: int, member: int, size: int) -> tuple[int, int]:
    """Return the first and the last of a member's share of ``count`` things, cut at multiples of ``step``."""
    steps = (count + step - 1) // step
    return min(steps * member // size * step, count), min(steps * (member + 1) // size * step, count)


@njit(nogil=True)
def _pack(weights: Parameters, packed: Packed, member: int, size: int) -> None:
    first, last = _share(packed.recurrent.shape[0], 1, member, size)
    pack(weights.w_xh, packed.inputs, first, last)
    for p in range(first, last):
        for column in range(min(WIDTH, len(weights.b_h) - p * WIDTH)):
            for row in range(packed.inputs.shape[1]):
                packed.inputs[p, row, column] += weights.b_h[p * WIDTH + column]
    pack(weights.w_hh, packed.recurrent, first, last)
    first, last = _share(packed.outputs.shape[0], 1, member, size)
    pack(weights.w_hq, packed.outputs, first, last)
    pack(weights.b_q.reshape(1, -1), packed.output_bias, first, last)


@njit(nogil=True, error_model="numpy")
def _advance(
    packed: Packed, is_relu: bool, tokens: Tokens, first: int, last: int, states: Panels, before: int, after: int,
    backwards: bool,
) -> None:  # fmt: skip
    """Take lanes ``first`` to ``last`` through (8.4.5), from rows ``before`` of the states on to rows ``after``."""
    for p in range(states.shape[0]):
        for lane in range(first, last):
            for column in range(WIDTH):
                states[p, after + lane, column] = packed.inputs[p, tokens[lane], column]
    add_product(states, after + first, states, before + first, last - first, packed.recurrent, backwards)
    for p in range(states.shape[0]):
        for lane in range(first, last):
            for column in range(WIDTH):
                value = states[p, after + lane, column]
                if is_relu:
                    # A number that is not one stays so.
                    states[p, after + lane, column] = np.float32(0) if value < 0 else value
                else:
                    states[p, after + lane, column] = tanh(value)


@njit(nogil=True)
def _score(packed: Packed, states: Panels, state_row: int, num_rows: int, scores: Panels, row: int) -> None:
    """Set ``num_rows`` rows of the scores to the logits (8.4.6) of rows of the states."""
    for p in range(scores.shape[0]):
        for r in range(row, row + num_rows):
            for column in range(WIDTH):
                scores[p, r, column] = packed.output_bias[p, 0, column]
    add_product(scores, row, states, state_row, num_rows, packed.outputs, False)


@njit(nogil=True, error_model="numpy")
def _compare(scores: Panels, row: int, vocab_size: int, target: int, share: np.float32) -> float:
    """Turn a row of logits into ``share`` times (softmax - one-hot), (8.7.11), and return -log p of the target."""
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
    scale = share / total
    for p in range(scores.shape[0]):
        for column in range(WIDTH):
            scores[p, row, column] *= scale
    scores[target // WIDTH, row, target % WIDTH] -= share
    return np.log(np.float64(total)) - np.float64(wanted)


@njit(nogil=True)
def _go_forward(work: Work, first: int, last: int) -> None:
    """Take lanes through all steps, and set the scores to the gradient of the mean loss by the logits."""
    (num_steps, lanes), vocab_size = work.inputs.shape, work.weights.w_xh.shape[0]
    share = np.float32(1 / (num_steps * lanes))
    for t in range(num_steps):
        row = t * lanes
        _advance(work.packed, work.is_relu, work.inputs[t], first, last, work.states, row, row + lanes, t % 2 == 1)
        _score(work.packed, work.states, row + lanes + first, last - first, work.scores, row + first)
        for lane in range(first, last):
            work.nats[row + lane] = _compare(work.scores, row + lane, vocab_size, work.targets[t, lane], share)


@njit(nogil=True)
def _go_back(work: Work, first: int, last: int) -> None:
    """Set lanes' deltas to dL/dZ_t by (8.7.14), from the last step to the first."""
    num_steps, lanes = work.inputs.shape
    for t in range(num_steps - 1, -1, -1):
        row = t * lanes
        work.deltas[:, row + first : row + last] = 0
        add_product(work.deltas, row + first, work.scores, row + first, last - first, work.outputs_back, False)
        if t < num_steps - 1:
            later, place = work.deltas, row + lanes + first
            if work.is_kept[0]:
                for p in range(work.sent.shape[0]):
                    for lane in range(first, last):
                        for column in range(WIDTH):
                            sent = work.deltas[p, row + lanes + lane, column] * work.keep[t + 1, lane]
                            work.sent[p, lane, column] = sent
                later, place = work.sent, first
            add_product(work.deltas, row + first, later, place, last - first, work.recurrent_back, t % 2 == 1)
        for p in range(work.deltas.shape[0]):
            for lane in range(first, last):
                for column in range(WIDTH):
                    state = work.states[p, row + lanes + lane, column]
                    if work.is_relu:
                        slope = np.float32(1) if state > 0 else np.float32(0)
                    else:
                        slope = np.float32(1) - state * state
                    work.deltas[p, row + lane, column] *= slope


@njit(nogil=True)
def _sum_up_inputs(work: Work, first: int, last: int) -> None:
    """Set panels of the gradients of W_xh and b_h: a one-hot vector picks a row.

    The inputs' panels have served for this minibatch, and give the room.
    """
    (num_steps, lanes), gradients, sums = work.inputs.shape, work.gradients, work.packed.inputs
    for p in range(first, last):
        for token in range(sums.shape[1]):
            for column in range(WIDTH):
                sums[p, token, column] = 0
        for t in range(num_steps):
            for lane in range(lanes):
                token, row = work.inputs[t, lane], t * lanes + lane
                for column in range(WIDTH):
                    sums[p, token, column] += work.deltas[p, row, column]
        start = p * WIDTH
        for column in range(min(WIDTH, len(gradients.b_h) - start)):
            gradients.b_h[start + column] = 0
        for token in range(sums.shape[1]):
            for column in range(min(WIDTH, len(gradients.b_h) - start)):
                gradients.w_xh[token, start + column] = sums[p, token, column]
                gradients.b_h[start + column] += sums[p, token, column]


@njit(nogil=True)
def _sum_up_output_bias(work: Work) -> None:
    gradient = work.gradients.b_q
    gradient[:] = 0
    for row in range(work.scores.shape[1]):
        for token in range(len(gradient)):
            gradient[token] += work.scores[token // WIDTH, row, token % WIDTH]


@njit(nogil=True)
def gradients_task(member: int, size: int, control: Control, work: Work) -> None:
    """Do a member's part of the gradients of a minibatch. All members return when all are done."""
    _pack(work.weights, work.packed, member, size)
    first, last = _share(work.recurrent_back.shape[0], 1, member, size)
    pack_transposed(work.weights.w_hh, work.recurrent_back, first, last)
    pack_transposed(work.weights.w_hq, work.outputs_back, first, last)
    barrier(control, size)

    num_steps, lanes = work.inputs.shape
    first, last = _share(lanes, ROWS, member, size)
    num_hiddens = work.weights.w_hh.shape[0]
    for lane in range(first, last):
        for unit in range(num_hiddens):
            work.states[unit // WIDTH, lane, unit % WIDTH] = work.state[lane, unit]
    _go_forward(work, first, last)
    _go_back(work, first, last)
    for lane in range(first, last):
        for unit in range(num_hiddens):
            work.state[lane, unit] = work.states[unit // WIDTH, num_steps * lanes + lane, unit % WIDTH]
    barrier(control, size)

    num_terms = num_steps * lanes
    first, last = _share(num_hiddens, ROWS, member, size)
    sums = work.sums[member]
    # dL/dW_hh (8.7.16) and dL/dW_hq (8.7.12).
    outer_product(work.gradients.w_hh, first, last, work.states, 0, 0, work.deltas, 0, num_terms, sums)
    outer_product(work.gradients.w_hq, first, last, work.states, lanes, 0, work.scores, 0, num_terms, sums)
    # dL/dW_hx (8.7.15).
    first, last = _share(work.deltas.shape[0], 1, member, size)
    _sum_up_inputs(work, first, last)
    if member == size - 1:
        _sum_up_output_bias(work)
    barrier(control, size)


serve_gradients = serving(gradients_task)


@njit(nogil=True)
def are_tokens(tokens: Tokens, vocab_size: int) -> bool:
    """Whether all ids lie within the vocabulary: the loops do not look."""
    for row in range(tokens.shape[0]):
        for token in tokens[row]:
            if token < 0 or token >= vocab_size:
                return False
    return True


@njit(nogil=True)
def forward(packed: Packed, is_relu: bool, tokens: Tokens, states: Panels, scores: Panels) -> None:
    """Take all lanes of ``tokens`` (T, B) through the network, from the states' first B rows on.

    ``states`` ((T + 1) B, h) and ``scores`` (T B, V) are filled.
    """
    num_steps, lanes = tokens.shape
    for t in range(num_steps):
        _advance(packed, is_relu, tokens[t], 0, lanes, states, t * lanes, (t + 1) * lanes, t % 2 == 1)
    _score(packed, states, lanes, num_steps * lanes, scores, 0)


@njit(nogil=True)
def continue_greedily(
    packed: Packed, is_relu: bool, vocab_size: int, tokens: Tokens, states: Panels, scores: Panels, first: int,
    last: int,
) -> None:  # fmt: skip
    """Fill rows 1.. of ``tokens`` (N, B), for lanes ``first`` to ``last``, with the likeliest tokens but token 0.

    ``states`` (2 B, h) holds the state in its first B rows; ``scores`` is (B, V).
    """
    lanes = tokens.shape[1]
    for n in range(len(tokens) - 1):
        before, after = (n % 2) * lanes, ((n + 1) % 2) * lanes
        _advance(packed, is_relu, tokens[n], first, last, states, before, after, n % 2 == 1)
        _score(packed, states, after + first, last - first, scores, first)
        for lane in range(first, last):
            best = 1
            for token in range(2, vocab_size):
                if scores[token // WIDTH, lane, token % WIDTH] > scores[best // WIDTH, lane, best % WIDTH]:
                    best = token
            tokens[n + 1, lane] = best
