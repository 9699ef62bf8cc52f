"""A network's parameters: their names and places in one flat array, and in panels, as the loops
read them."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import jit_inline
from seqlm.networks.compiled.cells import LAYOUTS, CellLayout
from seqlm.networks.compiled.tiles import (
    WIDTH,
    Matrix,
    Panels,
    Stack,
    empty_panels,
    empty_rows,
    padded,
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


def empty_packed(spec: NetworkSpec, flat: Flat) -> PackedWeights:
    """Return space for the parameters of ``flat``."""
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
        inputs_back=empty_panels(layers, gates, units, inputs),
        recurrent_back=empty_panels(layers, gates, units, units),
        outputs_back=empty_panels(padded(vocab_size), units),
    )


def max_inputs(spec: NetworkSpec) -> int:
    """Return the largest number of inputs that a layer multiplies, padded."""
    return padded(max(spec.embedding_size, spec.num_hiddens if len(spec.layers) > 1 else 0))


@jit_inline
def is_one_hot(spec: NetworkSpec, layer: int) -> bool:
    """Whether a layer looks its inputs up in the table."""
    return layer == 0 and spec.embedding_size == 0


def pack(flat: Flat, packed: PackedWeights) -> None:
    """Copy the parameters."""
    spec, units, blocks = packed.spec, packed.spec.num_hiddens, packed.spec.cell.input_blocks
    num_gates, size = len(blocks), spec.embedding_size or spec.vocab_size
    state_blocks = spec.cell.first_state_block + np.arange(num_gates)
    packed.bias[:] = 0
    for layer, starts in enumerate(spec.layers.tolist()):
        bias = packed.bias[layer, :, :units]
        for start, places in zip(starts[2:], (blocks, state_blocks), strict=True):
            if start != _ABSENT:
                bias[places] += flat[start:][: num_gates * units].reshape(num_gates, units)
        matrices = _matrices(spec, flat, starts[0], num_gates, size, units)
        for block, matrix in zip(blocks.tolist(), matrices, strict=True):
            if layer == 0 and not spec.embedding_size:
                packed.table[block, :, :units] = matrix + bias[block]
            else:
                _to_panels(matrix, packed.inputs[layer, block], packed.inputs_back[layer, block])
        size = units
        for gate, matrix in enumerate(_matrices(spec, flat, starts[1], num_gates, units, units)):
            _to_panels(matrix, packed.recurrent[layer, gate], packed.recurrent_back[layer, gate])
    (matrix,) = _matrices(spec, flat, spec.outputs, 1, units, spec.vocab_size)
    _to_panels(matrix, packed.outputs, packed.outputs_back)
    packed.output_bias[: spec.vocab_size] = flat[spec.output_bias :][: spec.vocab_size]


def _matrices(
    spec: NetworkSpec, flat: Flat, start: int, number: int, num_inputs: int, num_outputs: int
) -> Stack:
    """Return the part of the flat array from ``start`` on as matrices (inputs, outputs)."""
    part = flat[start:][: number * num_inputs * num_outputs]
    if spec.is_input_major:
        return part.reshape(number, num_inputs, num_outputs)
    return part.reshape(number, num_outputs, num_inputs).swapaxes(1, 2)


def _to_panels(matrix: Matrix, panels: Panels, panels_back: Panels) -> None:
    """Copy a matrix (inputs, outputs) and its transpose into panels."""
    for source, target in ((matrix, panels), (matrix.T, panels_back)):
        rows, (whole, rest) = len(source), divmod(source.shape[1], WIDTH)
        parts = source[:, : whole * WIDTH].reshape(rows, whole, WIDTH)
        target[:whole, :rows] = parts.swapaxes(0, 1)
        target[whole : whole + 1, :rows, :rest] = source[:, whole * WIDTH :]
