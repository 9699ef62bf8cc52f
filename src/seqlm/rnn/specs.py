"""The parameters of the networks that have compiled loops: names, shapes, and places in one flat array."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from seqlm.rnn.compiled.cells import LAYOUTS
from seqlm.rnn.compiled.parameters import ABSENT, NetworkSpec
from seqlm.rnn.settings import NetworkSettings

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


def scratch_parameters(vocab_size: int, num_hiddens: int, activation: str) -> Parameters:
    """Return the parameters of the network of section 8.5, whose matrices have a row for each input."""
    shapes: Shapes = {
        "W_xh": (vocab_size, num_hiddens),
        "W_hh": (num_hiddens, num_hiddens),
        "b_h": (num_hiddens,),
        "W_hq": (num_hiddens, vocab_size),
        "b_q": (vocab_size,),
    }
    start = places(shapes)
    spec = NetworkSpec(
        vocab_size=vocab_size,
        num_hiddens=num_hiddens,
        embedding_size=0,
        cell=LAYOUTS[activation],
        layers=np.array([[start["W_xh"], start["W_hh"], start["b_h"], ABSENT]]),
        embedding=ABSENT,
        outputs=start["W_hq"],
        output_bias=start["b_q"],
        has_input_rows=True,
    )
    return Parameters(shapes, spec)


def parameters_of_scratch(settings: NetworkSettings, vocab_size: int) -> Parameters:
    """Return what :func:`scratch_parameters` does, by the settings of a run."""
    return scratch_parameters(vocab_size, settings.num_hiddens, settings.activation)


def layers_parameters(settings: NetworkSettings, vocab_size: int) -> Parameters:
    """Return the parameters of layers of ``rnn``, ``gru`` or ``lstm`` cells, as the framework's layers name them."""
    num_hiddens, embedding_size = settings.num_hiddens, settings.size_of_embedding or 0
    cell = LAYOUTS[settings.activation if settings.model == "rnn" else settings.model]
    rows = len(cell.input_blocks) * num_hiddens
    shapes: Shapes = {_EMBEDDING: (vocab_size, embedding_size)} if embedding_size else {}
    names = [[f"layers.{layer}.{name}_l0" for name in _OF_LAYER] for layer in range(settings.num_layers)]
    for layer, of_layer in enumerate(names):
        num_inputs = num_hiddens if layer else embedding_size or vocab_size
        shapes |= dict(zip(of_layer, [(rows, num_inputs), (rows, num_hiddens), (rows,), (rows,)], strict=True))
    if not settings.tie_weights:
        shapes[_OUTPUT] = (vocab_size, num_hiddens)
    shapes[_OUTPUT_BIAS] = (vocab_size,)
    start = places(shapes)
    spec = NetworkSpec(
        vocab_size=vocab_size,
        num_hiddens=num_hiddens,
        embedding_size=embedding_size,
        cell=cell,
        layers=np.array([[start[name] for name in of_layer] for of_layer in names]),
        embedding=start.get(_EMBEDDING, ABSENT),
        outputs=start[_EMBEDDING if settings.tie_weights else _OUTPUT],
        output_bias=start[_OUTPUT_BIAS],
        has_input_rows=False,
    )
    return Parameters(shapes, spec)
