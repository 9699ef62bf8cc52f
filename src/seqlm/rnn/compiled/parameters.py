"""A network's parameters: where they lie in one flat tensor, and in panels, as the loops read them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.cells import Cell
from seqlm.rnn.compiled.compiling import START, entry, inner, spliced
from seqlm.rnn.compiled.products import Matrix, Panels, copy_in, empty_panels, num_panels, padded
from seqlm.rnn.compiled.team import share
from seqlm.rnn.compiled.tiles import WIDTH

Flat = NDArray[np.float32]
"""All parameters of a network, or their gradients, one after the other."""
NOWHERE = -1
"""The place of a parameter that a network lacks."""


class NetworkSpec(NamedTuple):
    """The shape of a network, and where its parameters begin in the flat tensor."""

    vocab_size: int
    num_hiddens: int
    embedding_size: int
    """0: tokens enter as one-hot vectors."""
    cell: int
    """The cell's number (:class:`seqlm.rnn.compiled.cells.Cell`); its blocks are the next three."""
    input_blocks: NDArray[np.int64]
    state_blocks: NDArray[np.int64]
    first_state_block: int
    layers: NDArray[np.int64]
    """(L, 4): the input's matrix, the state's matrix, the input's bias, the state's bias."""
    embedding: int
    outputs: int
    output_bias: int
    has_input_rows: bool
    """Whether a matrix has a row for each of its inputs, as in the book, or for each output, as in the framework."""


class Packed(NamedTuple):
    """The parameters in panels, from inputs to outputs."""

    table: Panels
    """What a one-hot token gives the first layer's sums, bias included: (panels of all blocks, V, WIDTH)."""
    inputs: NDArray[np.float32]
    """(L, panels of the input blocks, inputs, WIDTH)."""
    recurrent: NDArray[np.float32]
    """(L, panels of the state blocks, hidden units, WIDTH)."""
    bias: NDArray[np.float32]
    """(L, panels of all blocks, 1, WIDTH)."""
    outputs: Panels
    output_bias: Panels


class Back(NamedTuple):
    """The parameters in panels, from outputs to inputs: gradients go back by them."""

    inputs: NDArray[np.float32]
    """(L, panels of inputs, input blocks, WIDTH)."""
    recurrent: NDArray[np.float32]
    """(L, panels of hidden units, state blocks, WIDTH)."""
    outputs: Panels


def empty_packed(form: NetworkSpec, cell: Cell) -> Packed:
    """Return room for the parameters in panels."""
    hiddens, layers = padded(form.num_hiddens), len(form.layers)
    return Packed(
        table=empty_panels(form.vocab_size, 0 if form.embedding_size else cell.num_blocks * hiddens),
        inputs=np.stack([empty_panels(most_inputs(form), len(cell.input_blocks) * hiddens)] * layers),
        recurrent=np.stack([empty_panels(hiddens, len(cell.state_blocks) * hiddens)] * layers),
        bias=np.stack([empty_panels(1, cell.num_blocks * hiddens)] * layers),
        outputs=empty_panels(hiddens, form.vocab_size),
        output_bias=empty_panels(1, form.vocab_size),
    )


def empty_back(form: NetworkSpec, cell: Cell) -> Back:
    """Return room for the parameters in panels, from outputs to inputs."""
    hiddens, layers = padded(form.num_hiddens), len(form.layers)
    return Back(
        inputs=np.stack([empty_panels(len(cell.input_blocks) * hiddens, most_inputs(form))] * layers),
        recurrent=np.stack([empty_panels(len(cell.state_blocks) * hiddens, hiddens)] * layers),
        outputs=empty_panels(padded(form.vocab_size), hiddens),
    )


def most_inputs(form: NetworkSpec) -> int:
    """Return the largest number of inputs that a layer takes by a product, in whole panels."""
    return padded(max(form.embedding_size, form.num_hiddens if len(form.layers) > 1 else 0))


@spliced
def matrix_at(flat: Flat, start: int, rows: int, columns: int) -> Matrix:
    """Return a part of the flat tensor as a matrix."""
    return flat[start : start + rows * columns].reshape(rows, columns)


@spliced
def matrix_of_gate(form: NetworkSpec, flat: Flat, start: int, num_inputs: int, gate: int) -> Matrix:
    """Return a gate's part of the matrix that begins at ``start``. Where a row is an input, there is one gate."""
    if form.has_input_rows:
        return matrix_at(flat, start, num_inputs, form.num_hiddens)
    return matrix_at(flat, start + gate * form.num_hiddens * num_inputs, form.num_hiddens, num_inputs)


@spliced
def output_matrix(form: NetworkSpec, flat: Flat) -> Matrix:
    """Return the output layer's matrix."""
    if form.has_input_rows:
        return matrix_at(flat, form.outputs, form.num_hiddens, form.vocab_size)
    return matrix_at(flat, form.outputs, form.vocab_size, form.num_hiddens)


@spliced
def is_one_hot(form: NetworkSpec, layer: int) -> bool:
    """Whether a layer looks rows up in the table."""
    return layer == 0 and form.embedding_size == 0


@spliced
def num_inputs_of(form: NetworkSpec, layer: int) -> int:
    """Return how many inputs a layer has."""
    if layer > 0:
        return form.num_hiddens
    return form.vocab_size if form.embedding_size == 0 else form.embedding_size


@inner
def pack(form: NetworkSpec, flat: Flat, packed: Packed, member: int, size: int) -> None:
    """Copy a member's share of the parameters into panels, from inputs to outputs."""
    is_transposed = not form.has_input_rows
    panels = packed.recurrent.shape[1] // len(form.state_blocks)
    first, last = share(panels, 1, member, size)
    for layer in range(len(form.layers)):
        starts, num_inputs = form.layers[layer], num_inputs_of(form, layer)
        inputs = packed.table if is_one_hot(form, layer) else packed.inputs[layer]
        for gate in range(len(form.input_blocks)):
            place = form.input_blocks[gate] * panels
            matrix = matrix_of_gate(form, flat, starts[0], num_inputs, gate)
            copy_in(matrix, is_transposed, inputs[place : place + panels], START, first, last)
            place = form.state_blocks[gate] * panels
            matrix = matrix_of_gate(form, flat, starts[1], form.num_hiddens, gate)
            copy_in(matrix, is_transposed, packed.recurrent[layer][place : place + panels], START, first, last)
        _pack_bias(form, flat, layer, packed, first, last)
    first, last = share(packed.outputs.shape[0], 1, member, size)
    copy_in(output_matrix(form, flat), is_transposed, packed.outputs, START, first, last)
    for token in range(first * WIDTH, min(last * WIDTH, form.vocab_size)):
        packed.output_bias[token // WIDTH, 0, token % WIDTH] = flat[form.output_bias + token]


@entry
def pack_weights(form: NetworkSpec, flat: Flat, packed: Packed) -> None:
    """Copy all parameters into panels, from inputs to outputs."""
    pack(form, flat, packed, START, START + 1)


@spliced
def _pack_bias(form: NetworkSpec, flat: Flat, layer: int, packed: Packed, first: int, last: int) -> None:
    """Add up the biases in panels ``first`` to ``last`` of every block, and into the table where there is one."""
    bias, (_, _, input_bias, state_bias) = packed.bias[layer], form.layers[layer]
    panels = packed.recurrent.shape[1] // len(form.state_blocks)
    num_input_panels = packed.inputs.shape[1]
    for block in range(0, bias.shape[0], panels):
        bias[block + first : block + last] = 0
    for gate in range(len(form.input_blocks)):
        for unit in range(first * WIDTH, min(last * WIDTH, form.num_hiddens)):
            p, k, place = unit // WIDTH, unit % WIDTH, gate * form.num_hiddens + unit
            bias[form.input_blocks[gate] * panels + p, 0, k] += flat[input_bias + place]
            if state_bias >= 0:
                bias[(form.first_state_block + form.state_blocks[gate]) * panels + p, 0, k] += flat[state_bias + place]
    if is_one_hot(form, layer):
        for block in range(0, bias.shape[0], panels):
            for p in range(block + first, block + last):
                for token in range(form.vocab_size):
                    for k in range(WIDTH):
                        product = packed.table[p, token, k] if p < num_input_panels else np.float32(0)
                        packed.table[p, token, k] = product + bias[p, 0, k]


@inner
def pack_back(form: NetworkSpec, flat: Flat, back: Back, member: int, size: int) -> None:
    """Copy a member's share of the parameters into panels, from outputs to inputs."""
    is_transposed = form.has_input_rows
    rows = back.recurrent.shape[2] // len(form.state_blocks)
    for layer in range(len(form.layers)):
        starts, num_inputs = form.layers[layer], num_inputs_of(form, layer)
        for gate in range(len(form.input_blocks)):
            if not is_one_hot(form, layer):
                matrix = matrix_of_gate(form, flat, starts[0], num_inputs, gate)
                first, last = share(num_panels(num_inputs), 1, member, size)
                copy_in(matrix, is_transposed, back.inputs[layer], form.input_blocks[gate] * rows, first, last)
            matrix = matrix_of_gate(form, flat, starts[1], form.num_hiddens, gate)
            first, last = share(back.recurrent.shape[1], 1, member, size)
            copy_in(matrix, is_transposed, back.recurrent[layer], form.state_blocks[gate] * rows, first, last)
    first, last = share(back.outputs.shape[0], 1, member, size)
    copy_in(output_matrix(form, flat), is_transposed, back.outputs, START, first, last)
