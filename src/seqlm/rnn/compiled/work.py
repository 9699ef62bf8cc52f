"""The arrays that a team of threads reads and fills to find the gradients of a minibatch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.forward import Tokens
from seqlm.rnn.compiled.parameters import Back, Flat, NetworkSpec, Packed
from seqlm.rnn.compiled.products import Matrix, Panels


class Work(NamedTuple):
    """All that a team needs for the gradients of a minibatch of T steps of B lanes."""

    form: NetworkSpec
    weights: Flat
    gradients: Flat
    packed: Packed
    back: Back
    inputs: Tokens
    """(T, B)."""
    targets: Tokens
    """(T, B)."""
    is_dropped: bool
    """Whether there are masks; otherwise ``outputs`` are ``states``."""
    input_mask: Panels
    """(B, E): dropout's factors of the embeddings."""
    masks: NDArray[np.float32]
    """(L, panels, B, WIDTH): dropout's factors of what each layer gives."""
    is_kept: NDArray[np.bool_]
    """One value: whether there are factors of what steps send back."""
    keep: Matrix
    """(T, B): factors of the gradient that goes back from a step (8.7.8)."""
    embedded: Panels
    """(T B, E)."""
    embedding_slopes: Panels
    """(T B, E): the loss's gradients by the embeddings."""
    gates: NDArray[np.float32]
    """(L, panels of all blocks, T B, WIDTH): activations, then gradients by the sums."""
    states: NDArray[np.float32]
    """(L, panels, (T + 1) B, WIDTH): the first B rows are those before the minibatch."""
    memories: NDArray[np.float32]
    """The same, of an LSTM."""
    outputs: NDArray[np.float32]
    """The same as the states, but for dropout."""
    scores: Panels
    """(T B, V): logits, then the loss's gradients by them."""
    nats: NDArray[np.float64]
    """(T, B): -log p of every target."""
    slopes: Panels
    """(S B, h): the loss's gradients by the states of S steps."""
    carry: Panels
    """(B, h): what a step leaves to the one before it (:class:`seqlm.rnn.compiled.cells.Slopes`)."""
    sent: Panels
    """(B, state blocks): room for gradients times ``keep``."""
    sums: NDArray[np.float32]
    """(members, panels, ROWS_AT_ONCE, WIDTH): room for a part of an outer product each."""
