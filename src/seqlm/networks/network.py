"""Networks: what training, scoring and generation need of them, in arrays, and scoring and
generation with them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp
from seqlm.core.metrics import Nll
from seqlm.core.threads import R, T, imap
from seqlm.networks.settings import NetworkSettings

Ids = NDArray[np.int64]
Logits = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
OptimizerName = Literal["sgd", "adamw"]
State = Any
"""What a network carries from step to step, such as hidden states or the tokens of a window. Only
the network itself looks inside."""
Weights = list[Any]
"""Parameters, or numbers of the same shapes: arrays, or PyTorch's tensors. Both add, multiply and
divide in the same way."""

Factors = NDArray[np.float32]
DropoutMask = Callable[[int, float], Factors]
"""Draws factors of shape ``(B, 1, size)`` for a tensor ``(B, T, size)``, given the size and the
dropout: 0 or 1 / (1 - dropout)."""


class Network(ABC):
    """A model of the next token over a vocabulary of V tokens, for B rows of text at once.

    It is computed by PyTorch (:class:`seqlm.networks.torch_network.TorchNetwork`), or as compiled
    loops (:class:`seqlm.networks.compiled.network.CompiledNetwork`), which need no PyTorch. All
    methods raise IndexError for a token outside the vocabulary.
    """

    settings: NetworkSettings
    vocab_size: int
    num_threads = 1
    engine: str
    """What computes the network: ``framework``, or ``compiled`` for compiled loops."""
    _optimizer: Any

    @abstractmethod
    def initial_state(self, batch_size: int) -> State:
        """Return the zero state of ``batch_size`` rows."""

    @abstractmethod
    def logits(self, ids: Ids, state: State) -> tuple[Logits, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""

    @abstractmethod
    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``.

        A long text is read in parts: states and logits are never in memory for all tokens at once.
        """

    def advance_state(self, ids: Ids, state: State) -> State:
        """Return the state after ids ``(B, T)``."""
        return self.logits(ids, state)[1]

    def step_fn(self, state: State) -> Callable[[Ids], Logits]:
        """Return a function from one token per row, ``(B,)``, to logits ``(B, V)``; it keeps the
        state.

        Its next call may overwrite the logits.
        """

        def step(ids: Ids) -> Logits:
            nonlocal state
            logits, state = self.logits(ids[:, None], state)
            return logits[:, 0]

        return step

    @abstractmethod
    def compute_gradients(
        self,
        inputs: Ids,
        targets: Ids,
        state: State,
        draw_mask: DropoutMask | None = None,
        gradient_mask: Factors | None = None,
    ) -> tuple[Any, State]:
        """Set the gradients to those of the mean loss; return each target's -log p and the new
        state.

        ``inputs``, ``targets`` and -log p are ``(B, T)``; the latter is an array, or a tensor on
        the device (:func:`nll_array` reads both), so that training need not wait for it. The given
        state is a constant: truncated backpropagation through time. Without ``draw_mask`` nothing
        is dropped; ``gradient_mask`` ``(T, B)`` has factors on the gradient that each step sends
        back (8.7.8), which only an RNN from scratch has.
        """

    @property
    @abstractmethod
    def weights(self) -> Weights:
        """The parameters, not as copies."""

    @property
    @abstractmethod
    def gradients(self) -> Weights:
        """Their gradients."""

    @abstractmethod
    def dynamic_step(
        self, lr: float, scales: Weights, trained: Weights, decay_rates: Weights
    ) -> None:
        """Change the weights by their gradients: w -= lr g / scale, then w += decay_rate (trained -
        w)."""

    @abstractmethod
    def copy(self) -> Self:
        """Return a copy with weights of its own, which one thread computes."""

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item, in order: as many at once as the network has
        threads."""
        return imap(function, items, self.num_threads)

    @abstractmethod
    def flush_denormals(self) -> AbstractContextManager[None]:
        """Treat numbers below 1.2e-38 as zero in this thread, if the processor can.

        They change no weight, and a processor may take a hundred times as long for them. They arise
        from the tiny probabilities of most tokens of a large vocabulary, and from states of a
        network that keeps learning.
        """

    # For training.

    @abstractmethod
    def start_training(self, optimizer: OptimizerName = "sgd", weight_decay: float = 0.0) -> None:
        """Prepare the optimizer whose steps :meth:`step` takes; only AdamW uses the decay."""

    @abstractmethod
    def clip_gradients(self, max_norm: float) -> Any:
        """Scale the gradients if their norm exceeds ``max_norm`` (8.5.3).

        Returns the norm before: a number, or a tensor on the device without waiting for it.
        """

    def step(self, lr: float) -> None:
        """Change the weights by their gradients: one step of the optimizer."""
        self._optimizer.step(lr)

    @property
    def optimizer_state(self) -> Arrays:
        """What the optimizer remembers, as arrays by name; :meth:`load_optimizer` reads it."""
        return {name: to_array(value) for name, value in self._optimizer.state().items()}

    def load_optimizer(self, state: Arrays) -> None:
        """Continue from what :attr:`optimizer_state` was."""
        _assign(self._optimizer.state(), state)

    @abstractmethod
    def named_weights(self) -> dict[str, Any]:
        """Return the weights by name, not as copies; tied weights come once."""

    @property
    def num_parameters(self) -> int:
        """The number of weights, tied ones counted once."""
        return sum(math.prod(weight.shape) for weight in self.named_weights().values())

    def weight_copies(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the weights by name, as arrays."""
        return {name: to_array(weight).copy() for name, weight in self.named_weights().items()}

    def load_weights(self, weights: Arrays) -> None:
        """Copy weights in, as :meth:`weight_copies` returns them. Raises KeyError for a missing
        one."""
        _assign(self.named_weights(), weights)

    def state_arrays(self, state: State) -> list[NDArray[np.generic]]:
        """Return copies of the arrays of a state, in one order."""
        arrays: list[NDArray[np.generic]] = []
        map_state(lambda part: arrays.append(to_array(part).copy()), state)
        return arrays

    def state_of_arrays(self, arrays: Sequence[NDArray[np.generic]]) -> State:
        """Return the state that :meth:`state_arrays` took apart."""
        remaining = iter(arrays)
        return map_state(lambda part: _as_if(part, next(remaining)), self.initial_state(1))

    def thread_team(self) -> AbstractContextManager[None]:
        """Keep the threads of a training run ready inside this context. PyTorch's own need no such
        care."""
        return nullcontext()


def map_state(function: Callable[[Any], Any], state: State) -> State:
    """Return a state, or None, with a function applied to each of its tensors or arrays."""
    if isinstance(state, list | tuple):
        return type(state)(map_state(function, part) for part in state)
    return None if state is None else function(state)


def to_array(value: Any) -> NDArray[Any]:
    """Return an array, or a tensor as an array."""
    return value if isinstance(value, np.ndarray) else value.cpu().numpy()


def _as_if(value: Any, array: NDArray[Any]) -> Any:
    """Return an array as what a value is: an array, or a tensor of its type and on its device."""
    return array if isinstance(value, np.ndarray) else value.new_tensor(array)


def _assign(values: Mapping[str, Any], arrays: Arrays) -> None:
    """Copy arrays into arrays or tensors of the same names."""
    for name, value in values.items():
        value[...] = _as_if(value, arrays[name])


def nll_array(nll: Any) -> Nll:
    """Return as an array what :meth:`Network.compute_gradients` returns."""
    return to_array(nll).astype(np.float64)


def probabilities(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the probabilities of all tokens under ``logits`` (N, V)."""
    wide = np.asarray(logits, np.float64)
    powers = exp(wide - wide.max(1, keepdims=True))
    powers /= powers.sum(1, keepdims=True)
    return powers


def stream_nll(network: Network, ids: NDArray[np.integer]) -> Nll:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``."""
    return rows_nll(network, np.asarray(ids, np.int64)[None]).reshape(-1)


def rows_nll(network: Network, rows: Ids) -> Nll:
    """Return -log p of tokens 2..T of ``rows`` (B, T), each from the zero state; shape ``(B, T -
    1)``."""
    if rows.shape[1] < 2:
        return np.empty((len(rows), 0))
    return network.token_nll(rows[:, :-1], rows[:, 1:], network.initial_state(len(rows)))[0]


def continue_prefixes(network: Network, prefixes: Ids, num_preds: int) -> Ids:
    """Return the ``num_preds`` most likely tokens after each of some prefixes ``(B, T)``, as in
    section 8.5.

    Their shape is ``(B, num_preds)``. The state warms up on the prefixes. ``<unk>``, token 0, is
    never chosen.
    """
    state = network.initial_state(len(prefixes))
    if prefixes.shape[1] > 1:
        state = network.advance_state(prefixes[:, :-1], state)
    step, last = network.step_fn(state), prefixes[:, -1]
    tokens = np.empty((len(prefixes), num_preds), np.int64)
    for index in range(num_preds):
        last = tokens[:, index] = step(last)[:, 1:].argmax(1) + 1
    return tokens
