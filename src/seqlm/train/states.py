"""What a network carries from minibatch to minibatch, taken apart into tensors and put together again."""

from collections.abc import Iterator

from torch import Tensor

from seqlm.rnn.network import State


def tensors_of(state: State) -> list[Tensor]:
    """Return the tensors of a state: of a tensor itself, of lists and tuples those of their entries, in order."""
    if isinstance(state, Tensor):
        return [state]
    return [tensor for part in state for tensor in tensors_of(part)]


def state_like(state: State, tensors: Iterator[Tensor]) -> State:
    """Return a state of the form and on the device of ``state`` with the next of ``tensors`` in it."""
    if isinstance(state, Tensor):
        return next(tensors).to(state.device)
    return type(state)(state_like(part, tensors) for part in state)
