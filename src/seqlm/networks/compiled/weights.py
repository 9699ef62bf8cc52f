"""A network's parameters: where they are in one flat tensor, and in panels, as the loops read them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import START, jit_entry, jit_inline, jit_internal
from seqlm.networks.compiled.cells import CellLayout
from seqlm.networks.compiled.team import member_range
from seqlm.networks.compiled.tiles import WIDTH, Matrix, Panels, copy_in, empty_panels, padded

Flat = NDArray[np.float32]
"""All parameters of a network, or their gradients, one after the other."""
ABSENT = -1
"""The place of a parameter that a network does not have."""


class NetworkSpec(NamedTuple):
    """The shape of a network, and where its parameters begin in the flat tensor."""

    vocab_size: int
    num_hiddens: int
    embedding_size: int
    """0: tokens enter as one-hot vectors."""
    cell: CellLayout
    layers: NDArray[np.int64]
    """(L, 4): the input's matrix, the state's matrix, the input's bias, the state's bias."""
    embedding: int
    outputs: int
    output_bias: int
    has_input_rows: bool
    """Whether a matrix has a row for each of its inputs, as in the book, or for each output, as in the framework."""


class PackedWeights(NamedTuple):
    """The parameters in panels, from inputs to outputs."""

    spec: NetworkSpec
    embedding: Matrix
    """(V, E), a view of the flat tensor."""
    table: Panels
    """What a one-hot token adds to the first layer's sums, bias included: (panels of all blocks, V, WIDTH)."""
    inputs: NDArray[np.float32]
    """(L, panels of the input blocks, inputs, WIDTH)."""
    recurrent: NDArray[np.float32]
    """(L, panels of the state blocks, hidden units, WIDTH)."""
    bias: NDArray[np.float32]
    """(L, panels of all blocks, 1, WIDTH)."""
    outputs: Panels
    output_bias: Panels


class TransposedWeights(NamedTuple):
    """The parameters in panels, from outputs to inputs: the way of the gradients."""

    inputs: NDArray[np.float32]
    """(L, panels of inputs, input blocks, WIDTH)."""
    recurrent: NDArray[np.float32]
    """(L, panels of hidden units, state blocks, WIDTH)."""
    outputs: Panels


def empty_packed(spec: NetworkSpec, flat: Flat) -> PackedWeights:
    """Return space for the parameters of ``flat`` in panels."""
    hiddens, layers = padded(spec.num_hiddens), len(spec.layers)
    vocab_size, embedding_size = spec.vocab_size, spec.embedding_size
    return PackedWeights(
        spec=spec,
        embedding=flat[spec.embedding :][: vocab_size * embedding_size].reshape(vocab_size, embedding_size),
        table=empty_panels(vocab_size, 0 if embedding_size else spec.cell.num_blocks * hiddens),
        inputs=empty_panels(max_inputs(spec), len(spec.cell.input_blocks) * hiddens, layers),
        recurrent=empty_panels(hiddens, len(spec.cell.state_blocks) * hiddens, layers),
        bias=empty_panels(1, spec.cell.num_blocks * hiddens, layers),
        outputs=empty_panels(hiddens, vocab_size),
        output_bias=empty_panels(1, vocab_size),
    )


def empty_transposed(spec: NetworkSpec) -> TransposedWeights:
    """Return space for the parameters in panels, from outputs to inputs."""
    hiddens, layers = padded(spec.num_hiddens), len(spec.layers)
    return TransposedWeights(
        inputs=empty_panels(len(spec.cell.input_blocks) * hiddens, max_inputs(spec), layers),
        recurrent=empty_panels(len(spec.cell.state_blocks) * hiddens, hiddens, layers),
        outputs=empty_panels(padded(spec.vocab_size), hiddens),
    )


def max_inputs(spec: NetworkSpec) -> int:
    """Return the largest number of inputs that a layer multiplies, in whole panels."""
    return padded(max(spec.embedding_size, spec.num_hiddens if len(spec.layers) > 1 else 0))


@jit_inline
def matrix_at(flat: Flat, start: int, rows: int, columns: int) -> Matrix:
    """Return a part of the flat tensor as a matrix."""
    return flat[start : start + rows * columns].reshape(rows, columns)


@jit_inline
def gate_matrix(spec: NetworkSpec, flat: Flat, start: int, num_inputs: int, gate: int) -> Matrix:
    """Return a gate's part of the matrix that begins at ``start``. If each input has a row, there is only one gate."""
    if spec.has_input_rows:
        return matrix_at(flat, start, num_inputs, spec.num_hiddens)
    return matrix_at(flat, start + gate * spec.num_hiddens * num_inputs, spec.num_hiddens, num_inputs)


@jit_inline
def output_matrix(spec: NetworkSpec, flat: Flat) -> Matrix:
    """Return the output layer's matrix."""
    if spec.has_input_rows:
        return matrix_at(flat, spec.outputs, spec.num_hiddens, spec.vocab_size)
    return matrix_at(flat, spec.outputs, spec.vocab_size, spec.num_hiddens)


@jit_inline
def is_one_hot(spec: NetworkSpec, layer: int) -> bool:
    """Whether a layer looks its inputs up in the table."""
    return layer == 0 and spec.embedding_size == 0


@jit_inline
def num_inputs(spec: NetworkSpec, layer: int) -> int:
    """Return how many inputs a layer has."""
    if layer > 0:
        return spec.num_hiddens
    return spec.vocab_size if spec.embedding_size == 0 else spec.embedding_size


@jit_internal
def pack(flat: Flat, packed: PackedWeights, member: int, size: int) -> None:
    """Copy a member's part of the parameters into panels, from inputs to outputs."""
    spec = packed.spec
    is_transposed = not spec.has_input_rows
    panels = packed.recurrent.shape[1] // len(spec.cell.state_blocks)
    first, last = member_range(panels, 1, member, size)
    for layer in range(len(spec.layers)):
        starts = spec.layers[layer]
        inputs = packed.table if is_one_hot(spec, layer) else packed.inputs[layer]
        for gate in range(len(spec.cell.input_blocks)):
            block = spec.cell.input_blocks[gate] * panels
            matrix = gate_matrix(spec, flat, starts[0], num_inputs(spec, layer), gate)
            copy_in(matrix, is_transposed, inputs[block : block + panels], START, first, last)
            block = spec.cell.state_blocks[gate] * panels
            matrix = gate_matrix(spec, flat, starts[1], spec.num_hiddens, gate)
            copy_in(matrix, is_transposed, packed.recurrent[layer][block : block + panels], START, first, last)
        _pack_bias(flat, layer, packed, first, last)
    first, last = member_range(packed.outputs.shape[0], 1, member, size)
    copy_in(output_matrix(spec, flat), is_transposed, packed.outputs, START, first, last)
    for token in range(first * WIDTH, min(last * WIDTH, spec.vocab_size)):
        packed.output_bias[token // WIDTH, 0, token % WIDTH] = flat[spec.output_bias + token]


@jit_entry
def pack_weights(flat: Flat, packed: PackedWeights) -> None:
    """Copy all parameters into panels, from inputs to outputs."""
    pack(flat, packed, START, START + 1)


@jit_inline
def _pack_bias(flat: Flat, layer: int, packed: PackedWeights, first: int, last: int) -> None:
    """Add up the biases in panels ``first`` to ``last`` of every block, and into the table if there is one."""
    spec, bias = packed.spec, packed.bias[layer]
    _, _, input_bias, state_bias = spec.layers[layer]
    panels = packed.recurrent.shape[1] // len(spec.cell.state_blocks)
    num_input_panels = packed.inputs.shape[1]
    for block in range(0, bias.shape[0], panels):
        bias[block + first : block + last] = 0
    for gate in range(len(spec.cell.input_blocks)):
        input_block = spec.cell.input_blocks[gate]
        state_block = spec.cell.first_state_block + spec.cell.state_blocks[gate]
        for unit in range(first * WIDTH, min(last * WIDTH, spec.num_hiddens)):
            p, k, place = unit // WIDTH, unit % WIDTH, gate * spec.num_hiddens + unit
            bias[input_block * panels + p, 0, k] += flat[input_bias + place]
            if state_bias >= 0:
                bias[state_block * panels + p, 0, k] += flat[state_bias + place]
    if is_one_hot(spec, layer):
        for block in range(0, bias.shape[0], panels):
            for p in range(block + first, block + last):
                for token in range(spec.vocab_size):
                    for k in range(WIDTH):
                        product = packed.table[p, token, k] if p < num_input_panels else np.float32(0)
                        packed.table[p, token, k] = product + bias[p, 0, k]


@jit_internal
def pack_transposed(spec: NetworkSpec, flat: Flat, transposed: TransposedWeights, member: int, size: int) -> None:
    """Copy a member's part of the parameters into panels, from outputs to inputs."""
    is_transposed = spec.has_input_rows
    rows = transposed.recurrent.shape[2] // len(spec.cell.state_blocks)
    for layer in range(len(spec.layers)):
        starts, inputs = spec.layers[layer], num_inputs(spec, layer)
        for gate in range(len(spec.cell.input_blocks)):
            if not is_one_hot(spec, layer):
                matrix = gate_matrix(spec, flat, starts[0], inputs, gate)
                row = spec.cell.input_blocks[gate] * rows
                first, last = member_range(transposed.inputs.shape[1], 1, member, size)
                copy_in(matrix, is_transposed, transposed.inputs[layer], row, first, last)
            matrix = gate_matrix(spec, flat, starts[1], spec.num_hiddens, gate)
            row = spec.cell.state_blocks[gate] * rows
            first, last = member_range(transposed.recurrent.shape[1], 1, member, size)
            copy_in(matrix, is_transposed, transposed.recurrent[layer], row, first, last)
    first, last = member_range(transposed.outputs.shape[0], 1, member, size)
    copy_in(output_matrix(spec, flat), is_transposed, transposed.outputs, START, first, last)
