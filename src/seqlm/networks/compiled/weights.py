"""A network's parameters: their names and places in one flat array, and in panels, as the loops
read them."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import ZERO, jit_entry, jit_inline
from seqlm.networks.compiled.cells import LAYOUTS, CellLayout
from seqlm.networks.compiled.team import member_range
from seqlm.networks.compiled.tiles import WIDTH, Matrix, Panels, copy, empty_panels, padded
from seqlm.networks.settings import NetworkSettings

Flat = NDArray[np.float32]
"""All parameters of a network, or their gradients, one after the other."""
Shapes = dict[str, tuple[int, ...]]
"""Of the parameters, by name, in the order in which they follow one another in the flat array."""

KINDS_WITH_LOOPS = ("scratch", "rnn", "gru", "lstm")
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
    """The parameters in panels, from inputs to outputs, and for training from outputs to inputs, as
    gradients go."""

    spec: NetworkSpec
    embedding: Matrix
    """(V, E), a view of the flat array."""
    table: Panels
    """What a one-hot token adds to the first layer's sums, bias included: (panels of all blocks, V,
    WIDTH)."""
    inputs: NDArray[np.float32]
    """(L, panels of the input blocks, inputs, WIDTH)."""
    recurrent: NDArray[np.float32]
    """(L, panels of the state blocks, hidden units, WIDTH)."""
    bias: NDArray[np.float32]
    """(L, panels of all blocks, 1, WIDTH)."""
    outputs: Panels
    output_bias: Panels
    inputs_back: NDArray[np.float32]
    """(L, panels of inputs, input blocks, WIDTH)."""
    recurrent_back: NDArray[np.float32]
    """(L, panels of hidden units, state blocks, WIDTH)."""
    outputs_back: Panels


def empty_packed(spec: NetworkSpec, flat: Flat, *, for_training: bool = False) -> PackedWeights:
    """Return space for the parameters of ``flat`` in panels; without ``for_training`` the way back
    has no panels."""
    hiddens, layers, gates = padded(spec.num_hiddens), len(spec.layers), len(spec.cell.input_blocks)
    vocab_size, embedding_size = spec.vocab_size, spec.embedding_size
    return PackedWeights(
        spec=spec,
        embedding=flat[spec.embedding :][: vocab_size * embedding_size].reshape(
            vocab_size, embedding_size
        ),
        table=empty_panels(vocab_size, 0 if embedding_size else spec.cell.num_blocks * hiddens),
        inputs=empty_panels(max_inputs(spec), gates * hiddens, layers),
        recurrent=empty_panels(hiddens, gates * hiddens, layers),
        bias=empty_panels(1, spec.cell.num_blocks * hiddens, layers),
        outputs=empty_panels(hiddens, vocab_size),
        output_bias=empty_panels(1, vocab_size),
        inputs_back=empty_panels(gates * hiddens, max_inputs(spec) * for_training, layers),
        recurrent_back=empty_panels(gates * hiddens, hiddens * for_training, layers),
        outputs_back=empty_panels(padded(vocab_size), hiddens * for_training),
    )


def max_inputs(spec: NetworkSpec) -> int:
    """Return the largest number of inputs that a layer multiplies, in whole panels."""
    return padded(max(spec.embedding_size, spec.num_hiddens if len(spec.layers) > 1 else 0))


@jit_inline
def weight_matrix(
    spec: NetworkSpec, flat: Flat, start: int, num_inputs: int, num_outputs: int
) -> Matrix:
    """Return the part of the flat array from ``start`` on as a matrix, which has a row for each
    input or output."""
    rows, columns = num_outputs, num_inputs
    if spec.is_input_major:
        rows, columns = num_inputs, num_outputs
    return flat[start : start + rows * columns].reshape(rows, columns)


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


@jit_entry
def pack(flat: Flat, packed: PackedWeights, member: int, size: int) -> None:
    """Copy a member's part of the parameters into panels."""
    spec, units, num_gates = (
        packed.spec,
        packed.spec.num_hiddens,
        len(packed.spec.cell.input_blocks),
    )
    is_transposed = not spec.is_input_major
    panels = packed.recurrent.shape[1] // num_gates
    first, last = member_range(panels, 1, member, size)
    first_input, last_input = member_range(packed.inputs_back.shape[1], 1, member, size)
    first_back, last_back = member_range(packed.recurrent_back.shape[1], 1, member, size)
    for layer in range(len(spec.layers)):
        starts, size_in = spec.layers[layer], num_inputs(spec, layer)
        inputs = packed.table if is_one_hot(spec, layer) else packed.inputs[layer]
        for gate in range(num_gates):
            block = spec.cell.input_blocks[gate] * panels
            matrix = weight_matrix(spec, flat, starts[0] + gate * units * size_in, size_in, units)
            copy(matrix, is_transposed, inputs[block : block + panels], ZERO, first, last, False)
            if not is_one_hot(spec, layer):
                back = packed.inputs_back[layer]
                copy(matrix, not is_transposed, back, block * WIDTH, first_input, last_input, False)
            block = gate * panels
            matrix = weight_matrix(spec, flat, starts[1] + gate * units * units, units, units)
            copy(
                matrix,
                is_transposed,
                packed.recurrent[layer][block : block + panels],
                ZERO,
                first,
                last,
                False,
            )
            copy(
                matrix,
                not is_transposed,
                packed.recurrent_back[layer],
                block * WIDTH,
                first_back,
                last_back,
                False,
            )
        _pack_bias(flat, layer, packed, first, last)
    matrix = weight_matrix(spec, flat, spec.outputs, units, spec.vocab_size)
    first, last = member_range(packed.outputs_back.shape[0], 1, member, size)
    copy(matrix, not is_transposed, packed.outputs_back, ZERO, first, last, False)
    first, last = member_range(packed.outputs.shape[0], 1, member, size)
    copy(matrix, is_transposed, packed.outputs, ZERO, first, last, False)
    for token in range(first * WIDTH, min(last * WIDTH, spec.vocab_size)):
        packed.output_bias[token // WIDTH, 0, token % WIDTH] = flat[spec.output_bias + token]


@jit_inline
def _pack_bias(flat: Flat, layer: int, packed: PackedWeights, first: int, last: int) -> None:
    """Add up the biases in panels ``first`` to ``last`` of every block, and into the table if there
    is one."""
    spec, bias = packed.spec, packed.bias[layer]
    _, _, input_bias, state_bias = spec.layers[layer]
    panels = packed.recurrent.shape[1] // len(spec.cell.input_blocks)
    num_input_panels = packed.inputs.shape[1]
    for block in range(0, bias.shape[0], panels):
        bias[block + first : block + last] = 0
    for gate in range(len(spec.cell.input_blocks)):
        input_block = spec.cell.input_blocks[gate]
        state_block = spec.cell.first_state_block + gate
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
                        product = (
                            packed.table[p, token, k] if p < num_input_panels else np.float32(0)
                        )
                        packed.table[p, token, k] = product + bias[p, 0, k]
