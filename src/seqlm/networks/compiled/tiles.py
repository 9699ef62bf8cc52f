"""Products of matrices as vector instructions.

A matrix of states, gates or logits is a plain array whose rows are filled up with zeros to whole
vectors (:func:`padded`). Only weights, on the right of a product, are kept in *panels*: an array of
shape ``(panels, rows, WIDTH)`` whose panel p holds the columns from ``p * WIDTH`` on. A *tile* is
the part of a product that fits into the processor's vector registers: some rows of one panel. Its
sums stay in registers from the first term to the last.

Every element of a product is summed up in the same order, with one rounding per term (fused
multiply-add). So the result depends neither on the size of a tile nor on how rows are distributed
among threads. Numba turns plain loops into vector instructions but does not keep a tile in
registers; that is why the tile is written as LLVM code.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from seqlm.core.compiling import cpu_features, jit_internal

_LANES, ROWS = (16, 8) if "+avx512f" in cpu_features() else (8, 4)
"""Numbers of a vector register, and rows of a tile: AVX-512 has registers twice as wide, and twice
as many. ``ROWS`` divides ``WIDTH``."""
WIDTH = 2 * _LANES
"""Columns of a panel."""
_PANELS_OF_ROW = 4
"""Panels that a product of one row computes at once, to keep the processor busy."""
MAX_SUMS = 256
"""Rows of a product of columns that are summed up together, a multiple of ROWS."""
_TERMS_AT_ONCE = 128

Matrix = NDArray[np.float32]
Panels = NDArray[np.float32]
"""Weights in panels: ``(panels, rows, WIDTH)``."""
Steps = NDArray[np.float32]
"""``(T, B, columns)``: a row for each of T steps and B batch rows."""
Stack = NDArray[np.float32]
"""Several of these arrays: one for each layer, block of gates or thread."""
Vector = NDArray[np.float32]
Tokens = NDArray[np.int64]

_VECTOR = ir.VectorType(ir.FloatType(), _LANES)


class BatchRows(NamedTuple):
    """The rows of a minibatch that one thread computes."""

    first: int
    last: int


@intrinsic(prefer_literal=True)
def _add_tile(
    _typing: Any, rows: Any, panels: Any, c: Any, g: Any, i: Any, a: Any, b: Any, p: Any, n: Any
) -> Any:
    """Add rows i.. of a[g], times panels p.. of b, to rows i.. of c[g]: n terms.

    ``rows`` and ``panels`` are literals, and say how many. b is in panels, or a matrix. The arrays
    may have any strides.
    """
    num_rows, num_panels = rows.literal_value, panels.literal_value

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def pointer(argument: int, *index: Any) -> Any:
            """Return a pointer to an element of an array."""
            kind = signature.args[argument]
            array = context.make_array(kind)(context, builder, values[argument])
            return cgutils.get_item_pointer(context, builder, kind, array, index)

        def vector(argument: int, *index: Any) -> Any:
            return builder.bitcast(pointer(argument, *index), _VECTOR.as_pointer())

        def plus(index: Any, offset: int) -> Any:
            return builder.add(index, index.type(offset))

        _, _, _, group, row, _, _, panel, num_terms = values
        start = builder.mul(panel, panel.type(WIDTH))
        columns = range(0, num_panels * WIDTH, _LANES)
        targets = [
            vector(2, group, plus(row, r), plus(start, k)) for r in range(num_rows) for k in columns
        ]
        sums = [
            cgutils.alloca_once_value(builder, builder.load(target, align=4)) for target in targets
        ]
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{_LANES}f32")
        with cgutils.for_range(builder, num_terms) as loop:
            term = loop.index
            factors = [
                vector(6, plus(panel, k // WIDTH), term, term.type(k % WIDTH))
                if b.ndim == 3
                else vector(6, term, plus(start, k))
                for k in columns
            ]
            factors, totals = [builder.load(factor, align=4) for factor in factors], iter(sums)
            for r in range(num_rows):
                scale = _broadcast(builder, pointer(5, group, plus(row, r), term))
                for factor in factors:
                    total = next(totals)
                    builder.store(builder.call(fma, [scale, factor, builder.load(total)]), total)
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(total), target, align=4)
        return context.get_dummy_value()

    return types.void(rows, panels, c, g, i, a, b, p, n), generate


def _broadcast(builder: Any, pointer: Any) -> Any:
    """Return a vector that holds one number in every place."""
    undefined, index = ir.Constant(_VECTOR, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, builder.load(pointer), index(0))
    return builder.shuffle_vector(
        first, undefined, ir.Constant(ir.VectorType(index, _LANES), [0] * _LANES)
    )


def padded(columns: int) -> int:
    """Return the columns of an array that holds ``columns``: whole panels."""
    return WIDTH * -(-columns // WIDTH)


def rows_shape(*shape: int) -> tuple[int, ...]:
    """Return a shape with its last number, the columns, padded.

    Rows that are a multiple of 1 KiB apart would have the same few places in the cache.
    """
    columns = padded(shape[-1])
    if columns and columns % 256 == 0:
        columns += WIDTH
    return *shape[:-1], columns


def empty_rows(*shape: int) -> Matrix:
    """Return zeros of a shape whose last number, the columns, is padded."""
    return np.zeros(rows_shape(*shape), np.float32)


def panels_shape(*shape: int) -> tuple[int, ...]:
    """Return the shape of a matrix in panels, given its rows and columns, which may follow other
    numbers: of layers, of gates."""
    *others, rows, columns = shape
    return *others, padded(columns) // WIDTH, rows, WIDTH


def to_tokens(ids: Tokens, vocab_size: int) -> Tokens:
    """Return ids (B, T) as the loops read them, (T, B). Raises IndexError for one outside the
    vocabulary."""
    if ids.astype(np.uint64).max(initial=0) >= vocab_size:  # negative numbers become large ones
        raise IndexError(f"a token is outside the vocabulary of {vocab_size}")
    return np.ascontiguousarray(ids.T)


@jit_internal
def add_product(c: Steps, a: Steps, b: Panels, rows: BatchRows, turn: int) -> None:
    """Add a (T, B, K) times b to c (T, B, N), for some batch rows of all steps.

    Odd turns take the panels of b from the last to the first: a caller that counts its turns finds
    in the cache the panels that it used last. The result is the same.
    """
    first, last, is_backwards = rows.first, rows.last, turn % 2 == 1
    if last - first == c.shape[1]:  # the rows of all steps are one group, in whole tiles
        last *= c.shape[0]
        c, a = c.reshape(1, last, c.shape[2]), a.reshape(1, last, a.shape[2])
    num_panels, num_terms = min(c.shape[2] // WIDTH, len(b)), min(a.shape[2], b.shape[1])
    end_of_tiles = last - (last - first) % ROWS
    for q in range(num_panels):
        p = num_panels - 1 - q if is_backwards else q
        for g in range(len(c)):
            for i in range(first, end_of_tiles, ROWS):
                _add_tile(ROWS, 1, c, g, i, a, b, p, num_terms)
    in_fours = num_panels - num_panels % _PANELS_OF_ROW
    for g in range(len(c)):
        for i in range(end_of_tiles, last):
            for q in range(0, in_fours, _PANELS_OF_ROW):
                p = in_fours - _PANELS_OF_ROW - q if is_backwards else q
                _add_tile(1, _PANELS_OF_ROW, c, g, i, a, b, p, num_terms)
            for p in range(in_fours, num_panels):
                _add_tile(1, 1, c, g, i, a, b, p, num_terms)


@jit_internal
def product_of_columns(
    out: Matrix, first: int, last: int, a: Steps, b: Steps, sums: Matrix
) -> None:
    """Set rows ``first`` to ``last`` of ``out`` (I, J): the sum over all steps and batch rows of
    those of a (T, B, I), as columns, times those of b (T, B, J).

    ``first`` is a multiple of ROWS; ``sums`` is space for (1, MAX_SUMS, J).
    """
    num_rows = a.shape[0] * a.shape[1]
    columns, matrix = a.reshape(num_rows, a.shape[2], 1).T, b.reshape(num_rows, b.shape[2])
    for start in range(first, last, MAX_SUMS):
        num_sums = min(MAX_SUMS, last - start)
        sums[:] = 0
        # As many terms at a time as stay in the cache while all tiles use them.
        for term in range(0, num_rows, _TERMS_AT_ONCE):
            num_terms = min(_TERMS_AT_ONCE, num_rows - term)
            left, right = columns[:, start:, term:], matrix[term:]
            for p in range((out.shape[1] + WIDTH - 1) // WIDTH):
                for i in range(0, num_sums, ROWS):
                    _add_tile(ROWS, 1, sums, 0, i, left, right, p, num_terms)
        for row in range(num_sums):
            for column in range(out.shape[1]):
                out[start + row, column] = sums[0, row, column]
