"""A network that runs as compiled loops on NumPy's arrays: for training, scoring, dynamic
evaluation and generation."""

import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Self

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from seqlm.core.compiling import jit_entry
from seqlm.core.metrics import Nll
from seqlm.core.threads import R, T, for_each, imap
from seqlm.networks.compiled.forward import (
    Activations,
    State,
    empty_steps,
    last_state,
    nll_of_outputs,
    read,
)
from seqlm.networks.compiled.optimizer import FlatOptimizer, clip
from seqlm.networks.compiled.team import new_control, split_rows
from seqlm.networks.compiled.tiles import Panels, empty_panels, from_panels, to_tokens
from seqlm.networks.compiled.training import CompiledGradients
from seqlm.networks.compiled.weights import (
    Flat,
    PackedWeights,
    empty_packed,
    pack,
    shapes_of,
    spec_of,
    views,
)
from seqlm.networks.network import DropoutMask, Ids, Network
from seqlm.networks.settings import NetworkSettings

_ROWS_AT_ONCE = 64
"""Rows of the steps that a layer takes at a time."""
_TOKENS_AT_ONCE = 1 << 12
"""Tokens whose states are in memory at a time when text is scored."""
_NOTHING = empty_panels(0, 0)
_MIN_FLOPS_OF_A_TEAM = 2e6
"""A minibatch with fewer floating-point operations takes one thread less time than a team needs to
meet."""
_IS_X86 = platform.machine().lower() in {"x86_64", "amd64"}
_SUBNORMALS_ARE_ZERO = np.uint32(0x1F80 | 0x8040)
"""Of the control register: the default, and small results (bit 15) and small arguments (bit 6) are
zero."""


class CompiledNetwork(Network):
    """The network of a :class:`~seqlm.networks.compiled.weights.NetworkSpec`, with weights in one
    flat array.

    A state is (L, P, B, h) for L layers, P state arrays (2 of an lstm, 1 of the others), B batch
    rows and h hidden units. Clipping and optimizers see one tensor.
    """

    engine = "compiled"

    def __init__(
        self,
        settings: NetworkSettings,
        vocab_size: int,
        weights: Mapping[str, NDArray[np.float32]],
        num_threads: int = 1,
    ) -> None:
        """Copy the weights by name. ``num_threads`` read text; gradients take one outside of a
        team.

        Raises ValueError for weights of other names or shapes.
        """
        shapes = shapes_of(settings, vocab_size)
        if {name: weight.shape for name, weight in weights.items()} != shapes:
            raise ValueError("the weights belong to a different network")
        self.settings, self.vocab_size, self._spec = (
            settings,
            vocab_size,
            spec_of(settings, vocab_size),
        )
        self.flat = np.concatenate([weights[name].reshape(-1) for name in shapes])
        self._views = views(shapes, self.flat)
        self.gradient, self.num_threads, self._team_size = np.zeros_like(self.flat), num_threads, 1
        self._gradient_loops: tuple[tuple[object, ...], CompiledGradients] | None = None
        self._packed: tuple[Flat, PackedWeights] | None = None

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
        return np.zeros(
            (len(spec.layers), 1 + spec.cell.has_memory, batch_size, spec.num_hiddens), np.float32
        )

    def logits(self, ids: Ids, state: State) -> tuple[NDArray[np.float32], State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""
        logits = empty_panels(ids.size, self.vocab_size)
        _, after = self._read(ids, state, logits)
        return from_panels(logits, self.vocab_size).reshape(*ids.T.shape, -1).transpose(
            1, 0, 2
        ), after

    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``.

        Threads first share what they do in :meth:`logits`, then rows of logits.
        """
        num_steps, found, weights = max(_TOKENS_AT_ONCE // len(ids), 1), [], self._packed_weights()
        for start in range(0, ids.shape[1], num_steps):
            part = slice(start, start + num_steps)
            steps, state = self._read(ids[:, part], state, _NOTHING)
            wanted = to_tokens(targets[:, part], self.vocab_size)
            nll = nll_of_outputs(weights, steps.outputs[-1], wanted.reshape(-1), self.num_threads)
            found.append(nll.reshape(wanted.shape).T)
        return np.concatenate(found, 1), state

    def advance_state(self, ids: Ids, state: State) -> State:
        """Return the state after ids ``(B, T)``."""
        return self._read(ids, state, _NOTHING)[1]

    def step_fn(self, state: State) -> Callable[[Ids], NDArray[np.float32]]:
        """Return a function from one token per row, ``(B,)``, to logits ``(B, V)``; it keeps the
        state."""
        batch_size, weights, control = state.shape[2], self._packed_weights(), new_control()
        steps, logits = (
            empty_steps(self._spec, state, 1, 1),
            empty_panels(batch_size, self.vocab_size),
        )

        def step(ids: Ids) -> NDArray[np.float32]:
            read(
                weights,
                to_tokens(ids[:, None], self.vocab_size),
                steps,
                logits,
                0,
                batch_size,
                0,
                1,
                control,
            )
            for panels in (steps.states, steps.cell_states):
                panels[:, :, :batch_size] = panels[:, :, batch_size:]
            return from_panels(logits, self.vocab_size)

        return step

    def compute_gradients(
        self,
        inputs: Ids,
        targets: Ids,
        state: State,
        draw_mask: DropoutMask | None = None,
        keep: NDArray[np.float32] | None = None,
    ) -> tuple[Nll, State]:
        """Do what :meth:`Network.compute_gradients` does, in this thread alone or with those of the
        team."""
        dropout = 0.0 if draw_mask is None else self.settings.dropout
        is_small = 6 * self.flat.size * math.prod(inputs.shape) < _MIN_FLOPS_OF_A_TEAM
        shape = (state.shape, inputs.shape[1], dropout, 1 if is_small else self._team_size)
        if self._gradient_loops is None or self._gradient_loops[0] != shape:
            self._stop_threads()
            self._gradient_loops = (
                shape,
                CompiledGradients(self._spec, self.flat, self.gradient, *shape),
            )
        return self._gradient_loops[1].compute(inputs, targets, state, draw_mask, keep)

    @contextmanager
    def thread_team(self) -> Iterator[None]:
        """Use all threads of the network for gradients inside this context."""
        self._team_size = self.num_threads
        try:
            yield
        finally:
            self._stop_threads()
            self._team_size = 1

    def _stop_threads(self) -> None:
        """End the threads that wait for the next minibatch."""
        if self._gradient_loops is not None:
            self._gradient_loops[1].close()
        self._gradient_loops = None

    def start_training(
        self, optimizer: Literal["sgd", "adamw"] = "sgd", weight_decay: float = 0.0
    ) -> None:
        self._optimizer = FlatOptimizer(optimizer, self.flat, self.gradient, weight_decay)

    def clip_gradients(self, max_norm: float) -> float:
        return clip(self.gradient, max_norm)

    def step(self, lr: float) -> None:
        self._optimizer.step(lr)

    @property
    def optimizer_state(self) -> dict[str, NDArray[np.floating]]:
        return self._optimizer.state

    def load_optimizer(self, state: Mapping[str, NDArray[np.floating]]) -> None:
        for name, array in self._optimizer.state.items():
            array[:] = state[name]

    def named_weights(self) -> dict[str, NDArray[np.float32]]:
        return self._views

    def weight_copies(self) -> dict[str, NDArray[np.float32]]:
        return {name: weight.copy() for name, weight in self._views.items()}

    def load_weights(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        for name, weight in self._views.items():
            weight[:] = weights[name]

    def dynamic_step(
        self, lr: float, scales: list[Flat], trained: list[Flat], pulls: list[Flat]
    ) -> None:
        """Change the weights by their gradients: w -= lr g / scale, then w += pull (trained -
        w)."""
        _step_and_pull(self.flat, self.gradient, scales[0], trained[0], pulls[0], np.float32(lr))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what makes an equal network."""
        return type(self), (self.settings, self.vocab_size, self.weight_copies(), self.num_threads)

    def copy(self) -> Self:
        """Return a copy with weights of its own, which one thread computes."""
        return type(self)(self.settings, self.vocab_size, self._views)

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item, in order: as many at once as the network has
        threads."""
        return imap(function, items, self.num_threads)

    @contextmanager
    def flush_denormals(self) -> Iterator[None]:
        """Treat numbers below 1.2e-38 as zero in this thread; nothing happens on processors other
        than x86."""
        if not _IS_X86:
            yield
            return
        before = _exchange_control(_SUBNORMALS_ARE_ZERO)
        try:
            yield
        finally:
            _exchange_control(np.uint32(before))

    def _packed_weights(self) -> PackedWeights:
        """Return the weights in panels, packed anew only if they have changed."""
        if self._packed is None or not np.array_equal(self._packed[0], self.flat):
            packed = empty_packed(self._spec, self.flat)
            pack(self.flat, packed, 0, 1)
            self._packed = (self.flat.copy(), packed)
        return self._packed[1]

    def _read(self, ids: Ids, state: State, logits: Panels) -> tuple[Activations, State]:
        """Set logits, if they have panels; return what the layers computed, and the state after
        ids.

        Threads share the batch rows, or the layers if there are few rows.
        """
        (batch_size, num_steps), weights, control = ids.shape, self._packed_weights(), new_control()
        tokens = to_tokens(ids, self.vocab_size)
        steps = empty_steps(
            self._spec, state, num_steps, max(min(_ROWS_AT_ONCE // batch_size, num_steps), 1)
        )
        parts = split_rows(batch_size, self.num_threads)
        size = min(self.num_threads, len(self._spec.layers)) if len(parts) == 1 else 1

        def take(first: int, last: int, member: int) -> None:
            read(weights, tokens, steps, logits, first, last, member, size, control)

        for_each(
            take, [(*part, member) for part in parts for member in range(size)], len(parts) * size
        )
        return steps, last_state(self._spec, steps, batch_size)


@jit_entry
def _step_and_pull(
    weights: Flat, gradients: Flat, scales: Flat, trained: Flat, pulls: Flat, lr: np.float32
) -> None:
    """Set w to w - lr g / scale, then to w + pull (trained - w)."""
    for index in range(len(weights)):
        moved = weights[index] - lr * (gradients[index] / scales[index])
        weights[index] = moved + pulls[index] * (trained[index] - moved)


@intrinsic
def _exchange(_typing: Any, _value: Any) -> Any:
    """Set the control register of this thread's vector arithmetic and return what it was."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer])
        before, after = (cgutils.alloca_once(builder, ir.IntType(32)) for _ in range(2))
        builder.store(values[0], after)
        for name, place in (("stmxcsr", before), ("ldmxcsr", after)):
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            builder.call(function, [builder.bitcast(place, pointer)])
        return builder.load(before)

    return types.uint32(types.uint32), generate


@jit_entry
def _exchange_control(value: np.uint32) -> np.uint32:
    return _exchange(value)
