"""A network's parameters: their names and places in one flat array, and in panels, as the loops
read them."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import jit_entry, jit_inline
from seqlm.networks.compiled.cells import LAYOUTS, CellLayout
from seqlm.networks.compiled.team import Member, share
from seqlm.networks.compiled.tiles import (
    WIDTH,
    Matrix,
    Panels,
    Stack,
    padded,
    panels_shape,
    rows_shape,
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


class Copy(NamedTuple):
    """A matrix of the flat array that gets into panels. All but the last are numbers of elements:
    where the matrix and the panels begin, and how far it is from there to the next row, column or
    panel."""

    source: int
    source_row: int
    source_column: int
    rows: int
    columns: int
    target: int
    target_row: int
    target_panel: int
    adds: bool
    """Whether the matrix is added to what is there."""

    @classmethod
    def of(cls, matrix: Matrix, flat: Flat, panels: Panels, space: Flat, *, adds: bool) -> "Copy":
        """Describe a view of ``flat`` that gets into panels, a view of ``space``."""
        row, column = matrix.strides
        panel, panel_row, item = panels.strides
        return cls(
            source=(matrix.ctypes.data - flat.ctypes.data) // item,
            source_row=row // item,
            source_column=column // item,
            rows=matrix.shape[0],
            columns=matrix.shape[1],
            target=(panels.ctypes.data - space.ctypes.data) // item,
            target_row=panel_row // item,
            target_panel=panel // item,
            adds=adds,
        )


_COPY = np.dtype([(name, np.uint64) for name in Copy._fields])


class Packing(NamedTuple):
    """How parameters get into panels."""

    flat: Flat
    space: Flat
    """All arrays of :class:`PackedWeights`, but for the embedding, and of :class:`BackWeights`, one
    after another."""
    copies: NDArray[np.void]
    """What is copied, in this order (:class:`Copy`)."""


class PackedWeights(NamedTuple):
    """The parameters as the loops read them: matrices in panels, from inputs to outputs."""

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


class BackWeights(NamedTuple):
    """The same matrices from outputs to inputs, as gradients go."""

    inputs: Stack
    """(L, gates, panels of inputs, h, WIDTH)."""
    recurrent: Stack
    """(L, gates, panels of h, h, WIDTH)."""
    outputs: Panels
    """(panels of h, V, WIDTH)."""


def empty_packed(
    spec: NetworkSpec, flat: Flat, *, for_training: bool = False
) -> tuple[PackedWeights, BackWeights, Packing]:
    """Return space for the parameters of ``flat``, and how they get there; without
    ``for_training`` the way back has no panels."""
    layers, gates, blocks = len(spec.layers), len(spec.cell.input_blocks), spec.cell.num_blocks
    vocab_size, embedding_size = spec.vocab_size, spec.embedding_size
    units, inputs = padded(spec.num_hiddens), max_inputs(spec)
    size = vocab_size * embedding_size
    shapes = {
        "table": rows_shape(gates, vocab_size, 0 if embedding_size else units),
        "bias": rows_shape(layers, blocks, units),
        "output_bias": rows_shape(vocab_size),
        "inputs": panels_shape(layers, gates, inputs, units),
        "recurrent": panels_shape(layers, gates, units, units),
        "outputs": panels_shape(units, vocab_size),
    }
    back_shapes = {
        "inputs": panels_shape(layers, gates, units, inputs * for_training),
        "recurrent": panels_shape(layers, gates, units, units * for_training),
        "outputs": panels_shape(padded(vocab_size), units * for_training),
    }
    forward_size, back_size = (sum(map(math.prod, each.values())) for each in (shapes, back_shapes))
    space = np.zeros(forward_size + back_size, np.float32)
    embedding = flat[spec.embedding :][:size].reshape(vocab_size, embedding_size)
    packed = PackedWeights(spec, embedding, **views(shapes, space))
    back = BackWeights(**views(back_shapes, space[forward_size:]))
    copies = [
        Copy.of(matrix, flat, panels, space, adds=adds)
        for matrix, panels, adds in _pairs(flat, packed, back)
        if panels.size
    ]
    return packed, back, Packing(flat, space, np.array(copies, _COPY))


def max_inputs(spec: NetworkSpec) -> int:
    """Return the largest number of inputs that a layer multiplies, padded."""
    return padded(max(spec.embedding_size, spec.num_hiddens if len(spec.layers) > 1 else 0))


@jit_inline
def is_one_hot(spec: NetworkSpec, layer: int) -> bool:
    """Whether a layer looks its inputs up in the table."""
    return layer == 0 and spec.embedding_size == 0


def _pairs(
    flat: Flat, packed: PackedWeights, back: BackWeights
) -> Iterator[tuple[Matrix, Panels, bool]]:
    """Yield each matrix of the flat array with its panels, and whether it is added to what an
    earlier one has left there."""
    spec, units, blocks = packed.spec, packed.spec.num_hiddens, packed.spec.cell.input_blocks
    num_gates, size = len(blocks), spec.embedding_size or spec.vocab_size
    state_blocks = spec.cell.first_state_block + np.arange(num_gates)
    for layer, starts in enumerate(spec.layers.tolist()):
        has_table = layer == 0 and spec.embedding_size == 0
        for start, bias_blocks in ((starts[2], blocks), (starts[3], state_blocks)):
            if start == _ABSENT:
                continue
            biases = _matrices(spec, flat, start, num_gates, 1, units)
            for bias, block in zip(biases, bias_blocks, strict=True):
                adds = bias_blocks is state_blocks and block in blocks
                yield bias, _in_panels(packed.bias[layer, block : block + 1]), adds
                if has_table and block in blocks:
                    table = packed.table[block]
                    yield np.broadcast_to(bias, (len(table), units)), _in_panels(table), adds
        matrices = _matrices(spec, flat, starts[0], num_gates, size, units)
        for matrix, block in zip(matrices, blocks, strict=True):
            if has_table:
                yield matrix, _in_panels(packed.table[block]), True
            else:
                yield matrix, packed.inputs[layer, block], False
                yield matrix.T, back.inputs[layer, block], False
        for gate, matrix in enumerate(_matrices(spec, flat, starts[1], num_gates, units, units)):
            yield matrix, packed.recurrent[layer, gate], False
            yield matrix.T, back.recurrent[layer, gate], False
        size = units
    (matrix,) = _matrices(spec, flat, spec.outputs, 1, units, spec.vocab_size)
    yield matrix, packed.outputs, False
    yield matrix.T, back.outputs, False
    (bias,) = _matrices(spec, flat, spec.output_bias, 1, 1, spec.vocab_size)
    yield bias, _in_panels(packed.output_bias[np.newaxis]), False


def _matrices(
    spec: NetworkSpec, flat: Flat, start: int, number: int, num_inputs: int, num_outputs: int
) -> Stack:
    """Return the part of the flat array from ``start`` on as matrices (inputs, outputs)."""
    part = flat[start:][: number * num_inputs * num_outputs]
    if spec.is_input_major:
        return part.reshape(number, num_inputs, num_outputs)
    return part.reshape(number, num_outputs, num_inputs).swapaxes(1, 2)


def _in_panels(rows: Matrix) -> Panels:
    return rows.reshape(len(rows), -1, WIDTH).swapaxes(0, 1)


@jit_entry
def pack(packing: Packing, member: Member) -> None:
    """Copy a thread's part of the parameters: the same columns of every matrix."""
    flat, space = packing.flat, packing.space
    for copy in packing.copies:
        # Read before the loops: a compiler cannot know that writing a weight does not change them.
        # Places are unsigned, because a negative one would count from the end of an array, and the
        # check for it takes longer than the copying.
        rows, next_row, next_column = copy.rows, copy.source_row, copy.source_column
        first, last = share(np.int64(copy.columns), WIDTH, member)
        for column in range(first, last, WIDTH):
            source = copy.source + np.uint64(column) * next_column
            target = copy.target + np.uint64(column // WIDTH) * copy.target_panel
            for _ in range(rows):
                if copy.adds:
                    for k in range(np.uint64(min(WIDTH, last - column))):
                        space[target + k] += flat[source + k * next_column]
                else:
                    for k in range(np.uint64(min(WIDTH, last - column))):
                        space[target + k] = flat[source + k * next_column]
                source += next_row
                target += copy.target_row
