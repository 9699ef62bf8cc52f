"""What a network carries from minibatch to minibatch, taken apart into tensors and put together again."""

from collections.abc import Iterator

from torch import Tensor

from seqlm.rnn.network import State


def flatten_state(state: State) -> list[Tensor]:
    """Return the tensors of a state: of a tensor itself, of lists and tuples those of their entries, in order."""
    if isinstance(state, Tensor):
        return [state]
    return [tensor for part in state for tensor in flatten_state(part)]


def unflatten_state(state: State, tensors: Iterator[Tensor]) -> State:
    """Return a state of the form and on the device of ``state`` with the next of ``tensors`` in it."""
    if isinstance(state, Tensor):
        return next(tensors).to(state.device)
    return type(state)(unflatten_state(part, tensors) for part in state)
