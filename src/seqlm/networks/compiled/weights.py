"""A network's parameters: their names and places in one flat array, and in panels, as the loops
read them."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import jit_entry, jit_inline, jit_internal
from seqlm.networks.compiled.cells import LAYOUTS, CellLayout
from seqlm.networks.compiled.team import Member, share
from seqlm.networks.compiled.tiles import (
    WIDTH,
    Matrix,
    Panels,
    Stack,
    empty_panels,
    empty_rows,
    padded,
    to_panels,
)
from seqlm.networks.settings import NetworkSettings

Flat = NDArray[np.float32]
"""All parameters of a network, or their gradients, one after the other."""
Shapes = dict[str, tuple[int, ...]]
"""Of the parameters, by name, in the order in which they follow one another in the flat array."""

COMPILED_MODELS = ("scratch", "rnn", "gru", "lstm")
_EMBEDDING, _OUTPUT, _OUTPUT_BIAS = "embedding.weight", "output.weight", "output.bias"
_OF_LAYER = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_ABSENT = -1
"""The place of a parameter that a network does not have."""


class NetworkSpec(NamedTuple):
    """The shape of a network, and where its parameters begin in the flat array."""

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
    is_input_major: bool
    """Whether a matrix has a row for each of its inputs, as in the book, or for each output, as in
    the framework."""


def shapes_of(settings: NetworkSettings, vocab_size: int) -> Shapes:
    """Return the parameters of a network, named as in section 8.5, or as the framework's layers
    name them."""
    num_hiddens, embedding_size = settings.num_hiddens, settings.size_of_embedding
    if settings.model == "scratch":
        return {
            "W_xh": (vocab_size, num_hiddens),
            "W_hh": (num_hiddens, num_hiddens),
            "b_h": (num_hiddens,),
            "W_hq": (num_hiddens, vocab_size),
            "b_q": (vocab_size,),
        }
    shapes: Shapes = {_EMBEDDING: (vocab_size, embedding_size)} if embedding_size else {}
    rows = len(_cell(settings).input_blocks) * num_hiddens
    for layer, names in enumerate(_layers(settings)):
        num_inputs = num_hiddens if layer else embedding_size or vocab_size
        shapes |= dict(
            zip(names, [(rows, num_inputs), (rows, num_hiddens), (rows,), (rows,)], strict=True)
        )
    if not settings.tie_weights:
        shapes[_OUTPUT] = (vocab_size, num_hiddens)
    return shapes | {_OUTPUT_BIAS: (vocab_size,)}


def views(shapes: Shapes, flat: Flat) -> dict[str, Matrix]:
    """Return the parameters that follow one another in the flat array, by name."""
    starts = _starts(shapes)
    return {
        name: flat[starts[name] :][: math.prod(shape)].reshape(shape)
        for name, shape in shapes.items()
    }


def _starts(shapes: Shapes) -> dict[str, int]:
    sizes = itertools.accumulate((math.prod(shape) for shape in shapes.values()), initial=0)
    return dict(zip(shapes, sizes, strict=False))


def spec_of(settings: NetworkSettings, vocab_size: int) -> NetworkSpec:
    """Return a network as the loops see it."""
    start, is_scratch = _starts(shapes_of(settings, vocab_size)), settings.model == "scratch"
    outputs = _EMBEDDING if settings.tie_weights else _OUTPUT
    return NetworkSpec(
        vocab_size=vocab_size,
        num_hiddens=settings.num_hiddens,
        embedding_size=settings.size_of_embedding or 0,
        cell=_cell(settings),
        layers=np.array(
            [[start.get(name, _ABSENT) for name in names] for names in _layers(settings)]
        ),
        embedding=start.get(_EMBEDDING, _ABSENT),
        outputs=start["W_hq" if is_scratch else outputs],
        output_bias=start["b_q" if is_scratch else _OUTPUT_BIAS],
        is_input_major=is_scratch,
    )


def _cell(settings: NetworkSettings) -> CellLayout:
    return LAYOUTS[settings.activation if settings.model in ("scratch", "rnn") else settings.model]


def _layers(settings: NetworkSettings) -> list[list[str]]:
    """Return the names of each layer's parameters, in the order of :attr:`NetworkSpec.layers`."""
    if settings.model == "scratch":
        return [["W_xh", "W_hh", "b_h", "no second bias"]]
    return [
        [f"layers.{layer}.{name}_l0" for name in _OF_LAYER] for layer in range(settings.num_layers)
    ]


class PackedWeights(NamedTuple):
    """The parameters as the loops read them: matrices in panels, from inputs to outputs, and for
    training from outputs to inputs, as gradients go."""

    spec: NetworkSpec
    embedding: Matrix
    """(V, E), a view of the flat array."""
    table: Stack
    """(gates, V, h): what a one-hot token adds to the first layer's sums, bias included."""
    bias: Stack
    """(L, blocks, h)."""
    output_bias: Flat
    """(V,)."""
    inputs: Stack
    """(L, gates, panels of h, inputs, WIDTH), the gates in the order of the blocks, as below."""
    recurrent: Stack
    """(L, gates, panels of h, h, WIDTH)."""
    outputs: Panels
    """(panels of V, h, WIDTH)."""
    inputs_back: Stack
    """(L, gates, panels of inputs, h, WIDTH)."""
    recurrent_back: Stack
    """(L, gates, panels of h, h, WIDTH)."""
    outputs_back: Panels
    """(panels of h, V, WIDTH)."""


def empty_packed(spec: NetworkSpec, flat: Flat, *, for_training: bool = False) -> PackedWeights:
    """Return space for the parameters of ``flat``; without ``for_training`` the way back has no
    panels."""
    layers, gates, blocks = len(spec.layers), len(spec.cell.input_blocks), spec.cell.num_blocks
    vocab_size, embedding_size = spec.vocab_size, spec.embedding_size
    units, inputs = padded(spec.num_hiddens), max_inputs(spec)
    size = vocab_size * embedding_size
    return PackedWeights(
        spec=spec,
        embedding=flat[spec.embedding :][:size].reshape(vocab_size, embedding_size),
        table=empty_rows(gates, vocab_size, 0 if embedding_size else units),
        bias=empty_rows(layers, blocks, units),
        output_bias=empty_rows(vocab_size),
        inputs=empty_panels(layers, gates, inputs, units),
        recurrent=empty_panels(layers, gates, units, units),
        outputs=empty_panels(units, vocab_size),
        inputs_back=empty_panels(layers, gates, units, inputs * for_training),
        recurrent_back=empty_panels(layers, gates, units, units * for_training),
        outputs_back=empty_panels(padded(vocab_size), units * for_training),
    )


def max_inputs(spec: NetworkSpec) -> int:
    """Return the largest number of inputs that a layer multiplies, padded."""
    return padded(max(spec.embedding_size, spec.num_hiddens if len(spec.layers) > 1 else 0))


@jit_inline
def matrix_of(
    spec: NetworkSpec, flat: Flat, start: int, num_inputs: int, num_outputs: int
) -> Matrix:
    """Return the part of the flat array from ``start`` on as a matrix (inputs, outputs)."""
    part = flat[start : start + num_inputs * num_outputs]
    if spec.is_input_major:
        return part.reshape(num_inputs, num_outputs)
    return part.reshape(num_outputs, num_inputs).T


@jit_inline
def is_one_hot(spec: NetworkSpec, layer: int) -> bool:
    """Whether a layer looks its inputs up in the table."""
    return layer == 0 and spec.embedding_size == 0


@jit_inline
def gate_matrix(spec: NetworkSpec, flat: Flat, layer: int, operand: int, gate: int) -> Matrix:
    """Return the matrix of a gate: ``operand`` 0 is the layer's input, 1 the state before."""
    size = units = spec.num_hiddens
    if layer == 0 and operand == 0:
        size = spec.embedding_size or spec.vocab_size
    return matrix_of(spec, flat, spec.layers[layer, operand] + gate * size * units, size, units)


@jit_internal
def _pack_matrix(matrix: Matrix, panels: Panels, panels_back: Panels, member: Member) -> None:
    """Copy a thread's part of a matrix (inputs, outputs) into panels, and of its transpose."""
    first, last = share(len(panels), 1, member)
    to_panels(matrix, panels, first, last)
    first, last = share(len(panels_back), 1, member)
    to_panels(matrix.T, panels_back, first, last)


@jit_entry
def pack(flat: Flat, packed: PackedWeights, member: Member) -> None:
    """Copy a thread's part of the parameters."""
    spec = packed.spec
    first, last = share(packed.bias.shape[2], WIDTH, member)
    for layer in range(len(spec.layers)):
        _pack_bias(flat, layer, packed, first, last)
        for gate in range(len(spec.cell.input_blocks)):
            block = spec.cell.input_blocks[gate]
            for operand in range(2):
                matrix = gate_matrix(spec, flat, layer, operand, gate)
                if operand == 1:
                    back = packed.recurrent_back[layer, gate]
                    _pack_matrix(matrix, packed.recurrent[layer, gate], back, member)
                elif is_one_hot(spec, layer):
                    _pack_table(matrix, packed.bias[0, block], packed.table[block], first, last)
                else:
                    back = packed.inputs_back[layer, block]
                    _pack_matrix(matrix, packed.inputs[layer, block], back, member)
    matrix = matrix_of(spec, flat, spec.outputs, spec.num_hiddens, spec.vocab_size)
    _pack_matrix(matrix, packed.outputs, packed.outputs_back, member)
    for token in range(spec.vocab_size):
        packed.output_bias[token] = flat[spec.output_bias + token]


@jit_internal
def _pack_bias(flat: Flat, layer: int, packed: PackedWeights, first: int, last: int) -> None:
    """Add up the biases of the units ``first`` to ``last``."""
    spec, bias = packed.spec, packed.bias[layer]
    _, _, input_start, state_start = spec.layers[layer]
    bias[:, first:last] = 0
    for gate in range(len(spec.cell.input_blocks)):
        input_block, state_block = spec.cell.input_blocks[gate], spec.cell.first_state_block + gate
        for unit in range(first, min(last, spec.num_hiddens)):
            place = gate * spec.num_hiddens + unit
            bias[input_block, unit] += flat[input_start + place]
            if state_start >= 0:
                bias[state_block, unit] += flat[state_start + place]


@jit_internal
def _pack_table(matrix: Matrix, bias: Flat, table: Matrix, first: int, last: int) -> None:
    """Set columns ``first`` to ``last`` of a table (V, h) to those of a matrix plus the bias."""
    for token in range(len(table)):
        for unit in range(first, min(last, matrix.shape[1])):
            table[token, unit] = matrix[token, unit] + bias[unit]
