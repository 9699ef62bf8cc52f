"""A network that runs as compiled loops on NumPy's arrays: for training, scoring, dynamic
evaluation and generation."""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, Self

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from seqlm.core.compiling import jit_entry
from seqlm.core.metrics import Nll
from seqlm.core.threads import for_each
from seqlm.networks.compiled.forward import (
    Activations,
    State,
    empty_activations,
    last_state,
    nll_of_outputs,
    run_network,
)
from seqlm.networks.compiled.optimizer import FlatOptimizer, clip
from seqlm.networks.compiled.team import Member, new_team, split_rows
from seqlm.networks.compiled.tiles import BatchRows, Matrix, Steps, empty_rows, to_tokens
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
from seqlm.networks.network import Arrays, DropoutMask, Factors, Ids, Logits, Network, OptimizerName
from seqlm.networks.settings import NetworkSettings

_ROWS_AT_ONCE = 64
"""Rows of the steps that a layer takes at a time."""
_TOKENS_AT_ONCE = 1 << 12
"""Tokens whose states are in memory at a time when text is scored."""
_NOTHING = empty_rows(0, 0, 0)
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
    rows and h hidden units. Clipping and optimizers see one array.
    """

    engine = "compiled"

    def __init__(
        self, settings: NetworkSettings, vocab_size: int, weights: Arrays, num_threads: int = 1
    ) -> None:
        """Copy the weights by name. ``num_threads`` read text; gradients take one outside of a
        team.

        Raises ValueError for weights of other names or shapes.
        """
        shapes = shapes_of(settings, vocab_size)
        if {name: weight.shape for name, weight in weights.items()} != shapes:
            raise ValueError("the weights belong to a different network")
        self.settings, self.vocab_size = settings, vocab_size
        self._spec = spec_of(settings, vocab_size)
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
        shape = len(spec.layers), 1 + spec.cell.has_cell_state, batch_size, spec.num_hiddens
        return np.zeros(shape, np.float32)

    def logits(self, ids: Ids, state: State) -> tuple[Logits, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""
        logits = empty_rows(*ids.T.shape, self.vocab_size)
        _, after = self._run(ids, state, logits)
        return logits[:, :, : self.vocab_size].swapaxes(0, 1), after

    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``.

        Threads first share what they do in :meth:`logits`, then rows of logits.
        """
        num_steps, parts, weights = max(_TOKENS_AT_ONCE // len(ids), 1), [], self._packed_weights()
        for start in range(0, ids.shape[1], num_steps):
            part = slice(start, start + num_steps)
            activations, state = self._run(ids[:, part], state, _NOTHING)
            tokens = to_tokens(targets[:, part], self.vocab_size)
            outputs = activations.outputs[-1, 1:]
            parts.append(nll_of_outputs(weights, outputs, tokens, self.num_threads))
        return np.concatenate(parts).T, state

    def advance_state(self, ids: Ids, state: State) -> State:
        return self._run(ids, state, _NOTHING)[1]

    def step_fn(self, state: State) -> Callable[[Ids], Logits]:
        """Return a function from one token per row, ``(B,)``, to logits ``(B, V)``; it keeps the
        state."""
        batch_size, weights, team = state.shape[2], self._packed_weights(), new_team(1)
        activations = empty_activations(self._spec, state, 1, 1)
        logits = empty_rows(1, batch_size, self.vocab_size)

        def step(ids: Ids) -> Logits:
            tokens = to_tokens(ids[:, None], self.vocab_size)
            run_network(weights, tokens, activations, logits, BatchRows(0, batch_size), team[0])
            for steps in (activations.states, activations.cell_states):
                steps[:, :1] = steps[:, 1:]
            return logits[0, :, : self.vocab_size]

        return step

    def compute_gradients(
        self,
        inputs: Ids,
        targets: Ids,
        state: State,
        draw_mask: DropoutMask | None = None,
        gradient_mask: Factors | None = None,
    ) -> tuple[Nll, State]:
        """Compute gradients in this thread alone, or with those of the team."""
        dropout = 0.0 if draw_mask is None else self.settings.dropout
        is_small = 6 * self.flat.size * inputs.size < _MIN_FLOPS_OF_A_TEAM
        shape = (state.shape, inputs.shape[1], dropout, 1 if is_small else self._team_size)
        if self._gradient_loops is None or self._gradient_loops[0] != shape:
            self._stop_threads()
            loops = CompiledGradients(self._spec, self.flat, self.gradient, *shape)
            self._gradient_loops = (shape, loops)
        return self._gradient_loops[1].compute(inputs, targets, state, draw_mask, gradient_mask)

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

    def start_training(self, optimizer: OptimizerName = "sgd", weight_decay: float = 0.0) -> None:
        self._optimizer = FlatOptimizer(optimizer, self.flat, self.gradient, weight_decay)

    def clip_gradients(self, max_norm: float) -> float:
        return clip(self.gradient, max_norm)

    def named_weights(self) -> dict[str, Matrix]:
        return self._views

    def dynamic_step(
        self, lr: float, scales: list[Flat], trained: list[Flat], decay_rates: list[Flat]
    ) -> None:
        """Change the weights by their gradients: w -= lr g / scale, then w += decay_rate (trained
        - w)."""
        _step_and_pull(
            self.flat, self.gradient, scales[0], trained[0], decay_rates[0], np.float32(lr)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what makes an equal network."""
        return type(self), (self.settings, self.vocab_size, self.weight_copies(), self.num_threads)

    def copy(self) -> Self:
        return type(self)(self.settings, self.vocab_size, self._views)

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
            packed, _, packing = empty_packed(self._spec, self.flat)
            pack(packing, new_team(1)[0])
            self._packed = (self.flat.copy(), packed)
        return self._packed[1]

    def _run(self, ids: Ids, state: State, logits: Steps) -> tuple[Activations, State]:
        """Set logits, if they have panels; return what the layers computed, and the state after
        ids.

        Threads share the batch rows, or the layers if there are few rows.
        """
        (batch_size, num_steps), weights = ids.shape, self._packed_weights()
        tokens = to_tokens(ids, self.vocab_size)
        at_once = max(min(_ROWS_AT_ONCE // batch_size, num_steps), 1)
        activations = empty_activations(self._spec, state, num_steps, at_once)
        parts = split_rows(batch_size, self.num_threads)
        team = new_team(min(self.num_threads, len(self._spec.layers)) if len(parts) == 1 else 1)

        def work(rows: tuple[int, int], member: Member) -> None:
            run_network(weights, tokens, activations, logits, BatchRows(*rows), member)

        for_each(work, list(product(parts, team)), len(parts) * len(team))
        return activations, last_state(self._spec, activations)


@jit_entry
def _step_and_pull(
    weights: Flat, gradients: Flat, scales: Flat, trained: Flat, decay_rates: Flat, lr: np.float32
) -> None:
    """Set w to w - lr g / scale, then to w + decay_rate (trained - w)."""
    for index in range(len(weights)):
        moved = weights[index] - lr * (gradients[index] / scales[index])
        weights[index] = moved + decay_rates[index] * (trained[index] - moved)


@intrinsic
def _exchange(_typing: Any, _value: Any) -> Any:
    """Set the control register of this thread's vector arithmetic and return what it was."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer])
        before = cgutils.alloca_once(builder, ir.IntType(32))
        after = cgutils.alloca_once_value(builder, values[0])
        for name, place in (("stmxcsr", before), ("ldmxcsr", after)):
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            builder.call(function, [builder.bitcast(place, pointer)])
        return builder.load(before)

    return types.uint32(types.uint32), generate


@jit_entry
def _exchange_control(value: np.uint32) -> np.uint32:
    return _exchange(value)
