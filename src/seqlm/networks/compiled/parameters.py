"""The parameters of the networks that have compiled loops: names, shapes, and places in one flat array."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from seqlm.networks.compiled.cells import LAYOUTS, CellLayout
from seqlm.networks.compiled.weights import ABSENT, NetworkSpec
from seqlm.networks.settings import NetworkSettings

Shapes = dict[str, tuple[int, ...]]

_EMBEDDING, _OUTPUT, _OUTPUT_BIAS = "embedding.weight", "output.weight", "output.bias"
_OF_LAYER = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class Parameters(NamedTuple):
    """The parameters of a network."""

    shapes: Shapes
    """By name, in the order in which they follow one another in the flat array."""
    spec: NetworkSpec


def places(shapes: Shapes) -> dict[str, int]:
    """Return where each parameter begins in the flat array."""
    sizes = itertools.accumulate((math.prod(shape) for shape in shapes.values()), initial=0)
    return dict(zip(shapes, sizes, strict=False))


def scratch_parameters(settings: NetworkSettings, vocab_size: int) -> Parameters:
    """Return the parameters of the network of section 8.5, whose matrices have a row for each input."""
    num_hiddens = settings.num_hiddens
    shapes: Shapes = {
        "W_xh": (vocab_size, num_hiddens),
        "W_hh": (num_hiddens, num_hiddens),
        "b_h": (num_hiddens,),
        "W_hq": (num_hiddens, vocab_size),
        "b_q": (vocab_size,),
    }
    layers = [["W_xh", "W_hh", "b_h", "no second bias"]]
    return _parameters(shapes, LAYOUTS[settings.activation], layers, ("W_hq", "b_q"), has_input_rows=True)


def layers_parameters(settings: NetworkSettings, vocab_size: int) -> Parameters:
    """Return the parameters of layers of ``rnn``, ``gru`` or ``lstm`` cells, as the framework's layers name them."""
    num_hiddens, embedding_size = settings.num_hiddens, settings.size_of_embedding or 0
    cell = LAYOUTS[settings.activation if settings.model == "rnn" else settings.model]
    rows = len(cell.input_blocks) * num_hiddens
    shapes: Shapes = {_EMBEDDING: (vocab_size, embedding_size)} if embedding_size else {}
    layers = [[f"layers.{layer}.{name}_l0" for name in _OF_LAYER] for layer in range(settings.num_layers)]
    for layer, names in enumerate(layers):
        num_inputs = num_hiddens if layer else embedding_size or vocab_size
        shapes |= dict(zip(names, [(rows, num_inputs), (rows, num_hiddens), (rows,), (rows,)], strict=True))
    if not settings.tie_weights:
        shapes[_OUTPUT] = (vocab_size, num_hiddens)
    shapes[_OUTPUT_BIAS] = (vocab_size,)
    outputs = _EMBEDDING if settings.tie_weights else _OUTPUT
    return _parameters(shapes, cell, layers, (outputs, _OUTPUT_BIAS), has_input_rows=False)


PARAMETERS = {
    "scratch": scratch_parameters, "rnn": layers_parameters, "gru": layers_parameters, "lstm": layers_parameters,
}  # fmt: skip
"""The parameters of each kind of network that has compiled loops, from its settings and the size of its vocabulary."""


def _parameters(
    shapes: Shapes, cell: CellLayout, layers: list[list[str]], outputs: tuple[str, str], *, has_input_rows: bool
) -> Parameters:
    """Return parameters, given the names of each layer's and of the output layer's, in the order of their spec."""
    start, (output, output_bias) = places(shapes), outputs
    num_hiddens, (vocab_size,) = shapes[layers[0][1]][1], shapes[output_bias]
    spec = NetworkSpec(
        vocab_size=vocab_size,
        num_hiddens=num_hiddens,
        embedding_size=shapes[_EMBEDDING][1] if _EMBEDDING in shapes else 0,
        cell=cell,
        layers=np.array([[start.get(name, ABSENT) for name in names] for names in layers]),
        embedding=start.get(_EMBEDDING, ABSENT),
        outputs=start[output],
        output_bias=start[output_bias],
        has_input_rows=has_input_rows,
    )
    return Parameters(shapes, spec)
