"""The compiled loops of a network seen from tensors on the CPU."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.rnn.compiled.cells import CELLS
from seqlm.rnn.compiled.forward import Reading, Tokens, are_tokens, read, write_greedily
from seqlm.rnn.compiled.gradients import serve_gradients
from seqlm.rnn.compiled.parameters import NetworkSpec, empty_back, empty_packed, most_inputs, pack_weights
from seqlm.rnn.compiled.products import ROWS_AT_ONCE, Matrix, Panels, empty_panels, padded
from seqlm.rnn.compiled.surprisals import compare_outputs, compare_rows, new_room
from seqlm.rnn.compiled.team import Team, new_control
from seqlm.rnn.compiled.tiles import ROWS, WIDTH
from seqlm.rnn.compiled.work import Work

_ROWS_OF_STEPS = 256
"""Rows of the steps that a layer takes at a time in training."""
_ROWS_OF_READING = 64
"""The same where a text is read."""
_NOTHING = empty_panels(0, 0)


class CompiledGradients:
    """The gradients of minibatches of one shape, by a team of threads."""

    def __init__(
        self,
        form: NetworkSpec,
        cell: str,
        weights: Tensor,
        gradients: Tensor,
        *,
        num_steps: int,
        lanes: int,
        is_dropped: bool,
        num_threads: int,
    ) -> None:
        """Start the team. ``weights`` are read and ``gradients`` written in place, now and in every call."""
        kind, num_hiddens = CELLS[cell], form.num_hiddens
        rows, at_once = num_steps * lanes, max(_ROWS_OF_STEPS // lanes, 1)

        states = _in_layers(form, rows + lanes, num_hiddens)
        self._work = Work(
            form=form,
            weights=weights.numpy(),
            gradients=gradients.numpy(),
            packed=empty_packed(form, kind),
            back=empty_back(form, kind),
            inputs=np.zeros((num_steps, lanes), np.int64),
            targets=np.zeros((num_steps, lanes), np.int64),
            is_dropped=is_dropped,
            input_mask=empty_panels(lanes, form.embedding_size),
            masks=_in_layers(form, lanes, num_hiddens),
            is_kept=np.zeros(1, np.bool_),
            keep=np.ones((num_steps, lanes), np.float32),
            embedded=empty_panels(rows, form.embedding_size),
            embedding_slopes=empty_panels(rows, form.embedding_size),
            gates=_in_layers(form, rows, kind.num_blocks * padded(num_hiddens)),
            states=states,
            memories=_in_layers(form, rows + lanes, num_hiddens if kind.has_memory else 0),
            outputs=_in_layers(form, rows + lanes, num_hiddens) if is_dropped else states,
            scores=empty_panels(rows, form.vocab_size),
            nats=np.zeros((num_steps, lanes)),
            slopes=empty_panels(at_once * lanes, num_hiddens),
            carry=empty_panels(lanes, num_hiddens),
            sent=empty_panels(lanes, len(kind.state_blocks) * padded(num_hiddens)),
            sums=np.stack(
                [empty_panels(ROWS_AT_ONCE, max(most_inputs(form), num_hiddens, form.vocab_size))] * num_threads
            ),
        )
        self._team = Team(num_threads, serve_gradients, self._work)

    def compute(
        self, inputs: Tensor, targets: Tensor, state: Tensor, masks: list[Tensor], keep: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Set the gradients of the mean loss; return each target's -log p, ``(B, T)``, and the new state.

        ``inputs``, ``targets``: ``(B, T)``; ``state``: (L, parts, B, h); ``masks``: ``(B, size)`` each, of the
        embeddings where there are such, and of every layer; ``keep``: (T, B).
        Raises IndexError for a token outside the vocabulary.
        """
        work, lanes = self._work, len(inputs)
        work.inputs[:] = _checked(inputs, work.form)
        work.targets[:] = _checked(targets, work.form)
        _put_state(state, work.states, work.memories, 0)
        if work.is_dropped:
            if work.form.embedding_size:
                work.input_mask[:] = _panels(masks[0])
            for layer, mask in enumerate(masks[-len(work.masks) :]):
                work.masks[layer] = _panels(mask)
        work.is_kept[0] = keep is not None
        if keep is not None:
            work.keep[:] = keep.numpy()
        self._team.run()
        after = _state_at(work.states, work.memories, work.inputs.size, lanes, work.form)
        return torch.from_numpy(work.nats.T.copy()), after

    def stop(self) -> None:
        """End the team's threads."""
        self._team.stop()


class CompiledInference:
    """The network with the weights that it has now, for text of any length."""

    def __init__(self, form: NetworkSpec, cell: str, weights: Tensor) -> None:
        """Pack the weights, which must not change as long as this is used."""
        self._spec, self._cell, self._weights = form, CELLS[cell], weights.numpy()
        self._packed = empty_packed(form, self._cell)
        pack_weights(form, self._weights, self._packed)

    def run(self, ids: Tensor, state: Tensor, num_threads: int) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, T, V)`` and the state after the last step, for ids ``(B, T)``.

        Threads share out the lanes, or the layers where lanes are few. Raises IndexError for
        a token outside the vocabulary.
        """
        lanes, num_steps = ids.shape
        scores = empty_panels(num_steps * lanes, self._spec.vocab_size)
        after = self._read(ids, state, num_threads, scores, _NOTHING)
        logits = _rows(scores, self._spec.vocab_size).reshape(num_steps, lanes, -1)
        return torch.from_numpy(logits).transpose(0, 1), after

    def advance_state(self, ids: Tensor, state: Tensor, num_threads: int) -> Tensor:
        """Return the state after ids ``(B, T)``; raises as :meth:`run` does."""
        return self._read(ids, state, num_threads, _NOTHING, _NOTHING)

    def nats(self, ids: Tensor, targets: Tensor, state: Tensor, num_threads: int) -> tuple[Tensor, Tensor]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``; raises as :meth:`run` does.

        Logits stand in the cache only. Threads first share out what they do in :meth:`run`, then rows of logits.
        """
        lanes, num_steps = ids.shape
        outputs = empty_panels(num_steps * lanes, self._spec.num_hiddens)
        after = self._read(ids, state, num_threads, _NOTHING, outputs)
        wanted, nats = _checked(targets, self._spec).reshape(-1), np.empty(num_steps * lanes)

        def compare(first: int, last: int) -> None:
            compare_outputs(self._packed, outputs, self._spec.vocab_size, wanted, new_room(), nats, first, last)

        _at_once(_shares(num_steps * lanes, num_threads), compare)
        return torch.from_numpy(nats.reshape(num_steps, lanes)).T, after

    def _read(self, ids: Tensor, state: Tensor, num_threads: int, scores: Panels, kept: Panels) -> Tensor:
        """Fill scores, and what the last layer gives, where there is room for them; return the state after ids."""
        lanes, num_steps = ids.shape
        tokens = _checked(ids, self._spec)
        room = self._room(lanes, max(min(_ROWS_OF_READING // lanes, num_steps), 1), state)
        shares = _shares(lanes, num_threads)
        size = min(num_threads, len(self._spec.layers)) if len(shares) == 1 else 1
        control = new_control(size)

        def take(first: int, last: int, member: int) -> None:
            read(
                self._spec, self._weights, self._packed, tokens, 0, room, scores, kept, first, last, member, size,
                control,
            )  # fmt: skip

        _at_once([(*share, member) for share in shares for member in range(size)], take)
        return _state_at(room.states, room.memories, (num_steps - 1) * lanes % room.states.shape[2], lanes, self._spec)

    def step_fn(self, state: Tensor) -> Callable[[Tensor], Tensor]:
        """Return a function from one token a lane to logits ``(B, V)``; the state goes on inside it."""
        lanes, time = state.shape[2], 0
        room, scores, control = self._room(lanes, 1, state), empty_panels(lanes, self._spec.vocab_size), new_control(1)

        def step(ids: Tensor) -> Tensor:
            nonlocal time
            tokens = _checked(ids[:, None], self._spec)
            read(self._spec, self._weights, self._packed, tokens, time, room, scores, _NOTHING, 0, lanes, 0, 1, control)
            time += 1
            return torch.from_numpy(_rows(scores, self._spec.vocab_size))

        return step

    def continue_greedily(self, ids: Tensor, state: Tensor, num_preds: int, num_threads: int) -> Tensor:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` (B,), the likeliest but token 0 at each step."""
        lanes = len(ids)
        tokens = np.empty((num_preds + 1, lanes), np.int64)
        tokens[0] = _checked(ids[:, None], self._spec)[0]
        room, scores = self._room(lanes, 1, state), empty_panels(lanes, self._spec.vocab_size)

        def write(first: int, last: int) -> None:
            write_greedily(self._spec, self._weights, self._packed, tokens, room, scores, first, last)

        _at_once(_shares(lanes, num_threads), write)
        return torch.from_numpy(tokens[1:].T.copy())

    def _room(self, lanes: int, steps: int, state: Tensor) -> Reading:
        """Return room for so many steps at a time, with the state before step 0 in its place."""
        form, cell, rows = self._spec, self._cell, steps * lanes
        room = Reading(
            embedded=empty_panels(rows, form.embedding_size),
            gates=_in_layers(form, rows, cell.num_blocks * padded(form.num_hiddens)),
            states=_in_layers(form, 2 * rows, form.num_hiddens),
            memories=_in_layers(form, 2 * rows, form.num_hiddens if cell.has_memory else 0),
        )
        _put_state(state, room.states, room.memories, 2 * rows - lanes)
        return room


def row_nats(logits: Tensor, targets: Tensor, num_threads: int) -> Tensor:
    """Return -log p of targets ``(N,)`` under logits ``(N, V)`` in single precision, in double precision.

    Raises IndexError for a target outside the vocabulary.
    """
    rows, wanted, nats = np.ascontiguousarray(logits.numpy()), targets.numpy(), np.empty(len(targets))
    if not are_tokens(wanted[None], rows.shape[1]):
        raise IndexError(f"a token lies outside the vocabulary of {rows.shape[1]}")

    def compare(first: int, last: int) -> None:
        compare_rows(rows[first:last], wanted[first:last], new_room(), nats[first:last])

    _at_once(_shares(len(nats), num_threads), compare)
    return torch.from_numpy(nats)


def _shares(lanes: int, num_threads: int) -> list[tuple[int, int]]:
    """Return the first and the last lane, or row, of each thread's share.

    Less than a tile is slower than a thread is worth.
    """
    count = max(min(num_threads, lanes // ROWS), 1)
    borders = [lanes // ROWS * number // count * ROWS for number in range(count)] + [lanes]
    return list(itertools.pairwise(borders))


def _at_once(arguments: Sequence[tuple[int, ...]], work: Callable[..., None]) -> None:
    """Call ``work`` with each of the arguments, each in a thread of its own."""
    if len(arguments) == 1:
        work(*arguments[0])
        return
    with ThreadPoolExecutor(len(arguments)) as pool:
        list(pool.map(lambda one: work(*one), arguments))


def _checked(ids: Tensor, form: NetworkSpec) -> Tokens:
    """Return ids (B, T) as the loops read them, (T, B)."""
    tokens = np.ascontiguousarray(ids.numpy().T)
    if not are_tokens(tokens, form.vocab_size):
        raise IndexError(f"a token lies outside the vocabulary of {form.vocab_size}")
    return tokens


def _in_layers(form: NetworkSpec, rows: int, columns: int) -> NDArray[np.float32]:
    """Return a matrix of zeros in panels for every layer."""
    return np.zeros((len(form.layers), padded(columns) // WIDTH, rows, WIDTH), np.float32)


def _put_state(state: Tensor, states: NDArray[np.float32], memories: NDArray[np.float32], row: int) -> None:
    """Copy a state (L, parts, B, h) into rows from ``row`` on."""
    for layer, parts in enumerate(state):
        for part, panels in zip(parts, (states[layer], memories[layer]), strict=False):
            panels[:, row : row + len(part)] = _panels(part)


def _state_at(
    states: NDArray[np.float32], memories: NDArray[np.float32], row: int, lanes: int, form: NetworkSpec
) -> Tensor:
    """Return the state that stands in ``lanes`` rows from ``row`` on, (L, parts, B, h)."""
    parts = [panels[:, :, row : row + lanes] for panels in (states, memories) if panels.shape[1]]
    rows = [[_rows(part[layer], form.num_hiddens) for part in parts] for layer in range(len(states))]
    return torch.from_numpy(np.array(rows))


def _panels(matrix: Tensor) -> Panels:
    """Return rows and columns in panels."""
    rows, columns = matrix.shape
    filled = np.zeros((rows, padded(columns)), np.float32)
    filled[:, :columns] = matrix.numpy()
    return filled.reshape(rows, -1, WIDTH).transpose(1, 0, 2)


def _rows(panels: Panels, columns: int) -> Matrix:
    """Return a matrix in panels as rows and columns; what fills up the last panel stays behind the rows."""
    num_panels, num_rows, _ = panels.shape
    return panels.transpose(1, 0, 2).reshape(num_rows, num_panels * WIDTH)[:, :columns]
