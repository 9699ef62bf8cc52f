"""A network that runs as compiled loops on NumPy's arrays: for training, scoring, dynamic evaluation and generation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqlm.core.threads import imap
from seqlm.rnn.compiled.adapting import step_and_pull, without_subnormals
from seqlm.rnn.compiled.inference import CompiledInference
from seqlm.rnn.compiled.parameters import Flat, NetworkSpec
from seqlm.rnn.compiled.tiles import Matrix
from seqlm.rnn.compiled.training import CompiledGradients

T = TypeVar("T")
R = TypeVar("R")
Ids = NDArray[np.int64]
State = NDArray[np.float32]
Nll = NDArray[np.float64]

_MIN_FLOPS_OF_A_TEAM = 2e6
"""A minibatch with fewer floating-point operations takes one thread less time than a team needs to meet."""


class CompiledNetwork:
    """The network of a :class:`~seqlm.rnn.compiled.parameters.NetworkSpec`, with weights in one flat array.

    Implements :class:`seqlm.rnn.array_network.ArrayNetwork`. A state is (L, P, B, h) for L layers, P state arrays (2 of
    an lstm, 1 of the others), B batch rows and h hidden units; a network of one layer and one state array may have
    (B, h).
    """

    def __init__(self, spec: NetworkSpec, flat: Flat, num_threads: int = 1) -> None:
        """Use the weights ``flat`` in place. ``num_threads`` read text; gradients take one unless told otherwise."""
        self._spec, self.flat, self.gradient, self.num_threads = spec, flat, np.zeros_like(flat), num_threads
        self.vocab_size = spec.vocab_size
        self._gradient_loops: tuple[tuple[object, ...], CompiledGradients] | None = None
        self._inference_loops: tuple[Flat, CompiledInference] | None = None

    @property
    def arrays(self) -> Self:
        """This network."""
        return self

    @property
    def weights(self) -> list[Flat]:
        """The flat array of weights."""
        return [self.flat]

    @property
    def gradients(self) -> list[Flat]:
        """Their gradients."""
        return [self.gradient]

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state, ``(L, P, batch_size, h)``."""
        spec = self._spec
        return np.zeros((len(spec.layers), 1 + spec.cell.has_memory, batch_size, spec.num_hiddens), np.float32)

    def logits(self, ids: Ids, state: State) -> tuple[NDArray[np.float32], State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""
        return self._inference().run(ids, state, self.num_threads)

    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``."""
        return self._inference().token_nll(ids, targets, state, self.num_threads)

    def advance_state(self, ids: Ids, state: State) -> State:
        """Return the state after ids ``(B, T)``."""
        return self._inference().advance_state(ids, state, self.num_threads)

    def step_fn(self, state: State) -> Callable[[Ids], NDArray[np.float32]]:
        """Return a function from one token per row, ``(B,)``, to logits ``(B, V)``; it keeps the state."""
        return self._inference().step_fn(state)

    def continue_greedily(self, ids: Ids, state: State, num_preds: int) -> Ids:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` ``(B,)``, each the most likely except token 0."""
        return self._inference().continue_greedily(ids, state, num_preds, self.num_threads)

    def compute_gradients(
        self, inputs: Ids, targets: Ids, state: State, masks: Sequence[Matrix] = (), keep: Matrix | None = None,
        *, num_threads: int = 1,
    ) -> tuple[Nll, State]:  # fmt: skip
        """Set the gradients of the mean loss; return each target's -log p, ``(B, T)``, and the new state.

        ``masks`` and ``keep`` are those of :meth:`seqlm.rnn.compiled.training.CompiledGradients.compute`.
        """
        if 6 * self.flat.size * inputs.size < _MIN_FLOPS_OF_A_TEAM:
            num_threads = 1
        key = (*inputs.shape, bool(masks), num_threads, self.gradient.ctypes.data)
        if self._gradient_loops is None or self._gradient_loops[0] != key:
            self.stop_threads()
            loops = CompiledGradients(
                self._spec, self.flat, self.gradient, *inputs.shape, has_dropout=bool(masks), num_threads=num_threads
            )
            self._gradient_loops = (key, loops)
        return self._gradient_loops[1].compute(inputs, targets, state, masks, keep)

    def stop_threads(self) -> None:
        """End the threads that wait for the next minibatch."""
        if self._gradient_loops is not None:
            self._gradient_loops[1].stop()
        self._gradient_loops = None

    def adapt(self, lr: float, scales: list[Flat], trained: list[Flat], pulls: list[Flat]) -> None:
        """Change the weights by their gradients: w -= lr g / scale, then w += pull (trained - w)."""
        step_and_pull(self.flat, self.gradient, scales[0], trained[0], pulls[0], np.float32(lr))

    def copy(self) -> Self:
        """Return a copy with weights of its own, which one thread computes."""
        return type(self)(self._spec, self.flat.copy())

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item, in order: as many at once as the network has threads."""
        return imap(function, items, self.num_threads)

    def without_subnormals(self) -> AbstractContextManager[Any]:
        """Treat numbers below 1.2e-38 as zero in this thread, if the processor can."""
        return without_subnormals()

    def _inference(self) -> CompiledInference:
        """Return the loops with the weights packed, anew only if the weights have changed."""
        if self._inference_loops is None or not np.array_equal(self._inference_loops[0], self.flat):
            self._inference_loops = (self.flat.copy(), CompiledInference(self._spec, self.flat))
        return self._inference_loops[1]
