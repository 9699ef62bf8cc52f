"""The compiled network (:mod:`seqlm.rnn.compiled.kernels`) seen from tensors on the CPU."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from seqlm.rnn.compiled.kernels import (
    Parameters,
    Tokens,
    Work,
    are_tokens,
    continue_greedily,
    empty_packed,
    forward,
    gradients_task,
    pack_weights,
    serve_gradients,
)
from seqlm.rnn.compiled.products import ROWS_AT_ONCE, Matrix, Panels, empty_panels
from seqlm.rnn.compiled.team import Team
from seqlm.rnn.compiled.tiles import ROWS, WIDTH


class CompiledGradients:
    """The gradients of minibatches of one shape, by a team of threads."""

    def __init__(
        self, weights: Parameters, gradients: Parameters, *, is_relu: bool, num_steps: int, lanes: int, num_threads: int
    ) -> None:
        """Start the team. ``weights`` are read and ``gradients`` written in place, now and in every call."""
        vocab_size, num_hiddens = weights.w_xh.shape
        padded, padded_vocab = WIDTH * -(-num_hiddens // WIDTH), WIDTH * -(-vocab_size // WIDTH)
        self._work = Work(
            weights=weights,
            gradients=gradients,
            packed=empty_packed(weights),
            recurrent_back=empty_panels(padded, num_hiddens),
            outputs_back=empty_panels(padded_vocab, num_hiddens),
            inputs=np.zeros((num_steps, lanes), np.int64),
            targets=np.zeros((num_steps, lanes), np.int64),
            keep=np.ones((num_steps, lanes), np.float32),
            is_kept=np.zeros(1, np.bool_),
            is_relu=is_relu,
            state=np.zeros((lanes, num_hiddens), np.float32),
            states=empty_panels((num_steps + 1) * lanes, num_hiddens),
            deltas=empty_panels(num_steps * lanes, num_hiddens),
            scores=empty_panels(num_steps * lanes, vocab_size),
            nats=np.zeros(num_steps * lanes),
            sent=empty_panels(lanes, num_hiddens),
            sums=np.stack([empty_panels(ROWS_AT_ONCE, max(num_hiddens, vocab_size))] * num_threads),
        )
        self._team = Team(num_threads, gradients_task, serve_gradients, self._work)

    def compute(self, inputs: Tensor, targets: Tensor, state: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """Set the gradients of the mean loss and return the total loss and the new state.

        Shapes as in :meth:`seqlm.rnn.scratch.ScratchRNN.compute_gradients`.
        Raises IndexError for a token outside the vocabulary.
        """
        work = self._work
        work.inputs[:] = _checked(inputs, work.weights)
        work.targets[:] = _checked(targets, work.weights)
        work.state[:] = state.numpy()
        work.is_kept[0] = keep is not None
        if keep is not None:
            work.keep[:] = keep.numpy()
        self._team.run()
        return torch.tensor(work.nats.sum(), dtype=torch.float32), torch.from_numpy(work.state.copy())

    def stop(self) -> None:
        """End the team's threads."""
        self._team.stop()


class CompiledInference:
    """The network with the weights that it has now, for text of any length."""

    def __init__(self, weights: Parameters, *, is_relu: bool) -> None:
        self._weights, self._packed, self._is_relu = weights, pack_weights(weights), is_relu
        self._vocab_size, self._num_hiddens = weights.w_xh.shape

    def run(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, T, V)`` and the state after the last step, for ids ``(B, T)``.

        Raises IndexError for a token outside the vocabulary.
        """
        lanes, num_steps = ids.shape
        states = self._room_for_states(num_steps + 1, state)
        scores = empty_panels(num_steps * lanes, self._vocab_size)
        forward(self._packed, self._is_relu, _checked(ids, self._weights), states, scores)
        logits = _rows(scores, self._vocab_size).reshape(num_steps, lanes, -1)
        after = _rows(states[:, num_steps * lanes :], self._num_hiddens)
        return torch.from_numpy(logits).transpose(0, 1), torch.from_numpy(after)

    def stepper(self, state: Tensor) -> Callable[[Tensor], Tensor]:
        """Return a function from one token a lane to logits ``(B, V)``; the state goes on inside it."""
        lanes = len(state)
        states = self._room_for_states(2, state)
        scores = empty_panels(lanes, self._vocab_size)

        def step(ids: Tensor) -> Tensor:
            forward(self._packed, self._is_relu, _checked(ids[:, None], self._weights), states, scores)
            states[:, :lanes] = states[:, lanes:]
            return torch.from_numpy(_rows(scores, self._vocab_size))

        return step

    def continue_greedily(self, ids: Tensor, state: Tensor, num_preds: int, num_threads: int) -> Tensor:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` (B,), the likeliest but token 0 at each step."""
        lanes = len(ids)
        tokens = np.empty((num_preds + 1, lanes), np.int64)
        tokens[0] = _checked(ids[:, None], self._weights)[0]
        states, scores = self._room_for_states(2, state), empty_panels(lanes, self._vocab_size)
        # A share of less than a tile is slower than a thread is worth.
        num_shares = max(min(num_threads, lanes // ROWS), 1)
        borders = [lanes // ROWS * share // num_shares * ROWS for share in range(num_shares)] + [lanes]

        def write(first: int, last: int) -> None:
            continue_greedily(self._packed, self._is_relu, self._vocab_size, tokens, states, scores, first, last)

        with ThreadPoolExecutor(num_shares) as pool:
            list(pool.map(write, borders[:-1], borders[1:]))
        return torch.from_numpy(tokens[1:].T.copy())

    def _room_for_states(self, num_steps: int, state: Tensor) -> Panels:
        lanes = len(state)
        states = empty_panels(num_steps * lanes, self._num_hiddens)
        padded = np.zeros((lanes, len(states) * WIDTH), np.float32)
        padded[:, : self._num_hiddens] = state.numpy()
        states[:, :lanes] = padded.reshape(lanes, -1, WIDTH).transpose(1, 0, 2)
        return states


def _checked(ids: Tensor, weights: Parameters) -> Tokens:
    """Return ids (B, T) as the loops read them, (T, B)."""
    tokens = np.ascontiguousarray(ids.numpy().T)
    if not are_tokens(tokens, len(weights.w_xh)):
        raise IndexError(f"a token lies outside the vocabulary of {len(weights.w_xh)}")
    return tokens


def _rows(panels: Panels, columns: int) -> Matrix:
    """Return a matrix in panels as rows and columns."""
    num_panels, num_rows, _ = panels.shape
    return np.ascontiguousarray(panels.transpose(1, 0, 2).reshape(num_rows, num_panels * WIDTH)[:, :columns])
