"""Matrices in panels, and their products as vector instructions.

A matrix is kept in *panels*: an array of shape ``(panels, rows, WIDTH)`` whose panel p holds the
columns from ``p * WIDTH`` on; zeros fill up the last panel. A *tile* is the part of a product that
fits into the processor's vector registers: some rows of one panel. Its sums stay in registers from
the first term to the last.

Every element of a product is summed up in the same order, with one rounding per term (fused
multiply-add). So the result depends neither on the size of a tile nor on how rows are distributed
among threads. Numba turns plain loops into vector instructions but does not keep a tile in
registers; that is why the tiles are written as LLVM code.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from seqlm.core.compiling import cpu_features, jit_internal

_IS_WIDE = "+avx512f" in cpu_features()
"""Whether this processor has the 32 registers of 16 numbers of AVX-512."""
_LANES = 16 if _IS_WIDE else 8
"""Numbers of a vector register."""
WIDTH = 2 * _LANES
"""Columns of a panel, a power of two."""
ROWS = 8 if _IS_WIDE else 4
"""Rows of a tile; divides WIDTH."""
PANELS_OF_ROW = 4
"""Panels that a product of one row computes at once, to keep the processor busy."""
_TERMS_PER_TURN = 4
"""Terms in the body of a loop; divides WIDTH."""
ROWS_AT_ONCE = 256
"""Rows of an outer product that are summed up together, a multiple of ROWS."""
_TERMS_AT_ONCE = 128

Panels = NDArray[np.float32]
"""A matrix in panels: ``(panels, rows, WIDTH)``."""
Matrix = NDArray[np.float32]
Tokens = NDArray[np.int64]

_INT = ir.IntType(64)
_VECTOR = ir.VectorType(ir.FloatType(), _LANES)


class _PanelPointers:
    """Addresses in an array of panels, for code that is being written."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self._builder, self._data = builder, array.data
        self.num_panels, self._num_rows, _ = cgutils.unpack_tuple(builder, array.shape, 3)

    def at(self, panel: Any, row: Any, column: Any = 0) -> Any:
        """Return a pointer to an element."""
        b = self._builder
        start = b.mul(b.add(b.mul(panel, self._num_rows), row), _INT(WIDTH))
        return b.gep(self._data, [b.add(start, column if column else _INT(0))])

    def vectors(self, panel: Any, row: Any, num_panels: int = 1) -> list[Any]:
        """Return pointers to the vectors of one row in ``num_panels`` panels from ``panel`` on."""
        places = [(p, column) for p in range(num_panels) for column in range(0, WIDTH, _LANES)]
        return [
            self.at(self._builder.add(panel, _INT(p)), row, _INT(column)) for p, column in places
        ]

    def tile(self, panel: Any, row: Any, num_rows: int, num_panels: int = 1) -> list[Any]:
        """Return pointers to the vectors of ``num_rows`` rows from ``row`` on, row after row."""
        rows = (self._builder.add(row, _INT(r)) for r in range(num_rows))
        return [pointer for r in rows for pointer in self.vectors(panel, r, num_panels)]


def _load(builder: Any, pointer: Any) -> Any:
    vector = builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()))
    vector.align = 4
    return vector


def _broadcast(builder: Any, pointer: Any) -> Any:
    """Return a vector that holds one number in every place."""
    undefined, index = ir.Constant(_VECTOR, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, builder.load(pointer), index(0))
    return builder.shuffle_vector(
        first, undefined, ir.Constant(ir.VectorType(index, _LANES), [0] * _LANES)
    )


def _repeat(
    builder: Any, count: Any, sums: list[Any], step: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Write a loop of ``count`` turns, at least one, over vectors: ``step(turn, sums)`` returns the
    new sums."""
    before, loop, after = (
        builder.block,
        builder.append_basic_block("turn"),
        builder.append_basic_block("done"),
    )
    builder.branch(loop)
    builder.position_at_end(loop)
    turn = builder.phi(_INT)
    turn.add_incoming(_INT(0), before)
    totals = [builder.phi(_VECTOR) for _ in sums]
    for total, start in zip(totals, sums, strict=True):
        total.add_incoming(start, before)
    new_sums, last = step(turn, totals), builder.block
    following = builder.add(turn, _INT(1))
    turn.add_incoming(following, builder.block)
    for total, new in zip(totals, new_sums, strict=True):
        total.add_incoming(new, last)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
    builder.position_at_end(after)
    return new_sums


def _add_loop(
    builder: Any, targets: list[Any], count: Any, step: Callable[[Any, list[Any]], list[Any]]
) -> None:
    """Write a loop (:func:`_repeat`) over sums that are loaded from ``targets`` and stored there at
    last."""
    sums = _repeat(builder, count, [_load(builder, target) for target in targets], step)
    for target, total in zip(targets, sums, strict=True):
        builder.store(total, builder.bitcast(target, _VECTOR.as_pointer())).align = 4


def _add_term(builder: Any, sums: list[Any], left: list[Any], right: list[Any]) -> list[Any]:
    """Add one term: the numbers at ``left``, one per row, times the vectors at ``right``; sums come
    row after row."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{_LANES}f32")
    factors, totals = [_load(builder, pointer) for pointer in right], iter(sums)
    return [
        builder.call(fma, [scale, factor, next(totals)])
        for scale in (_broadcast(builder, pointer) for pointer in left)
        for factor in factors
    ]


def _make_tile(rows: int, panels: int) -> Any:
    """Return ``tile(c, p, i, a, j, b)``: add rows j.. of a times b to rows i.. of panels p.. of
    c."""

    @intrinsic
    def tile(_typing: Any, c: Any, p: Any, i: Any, a: Any, j: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            result, left, right = (
                _PanelPointers(context, builder, signature.args[n], values[n]) for n in (0, 3, 5)
            )
            panel, row, left_row = values[1], values[2], values[4]

            def add_panel(left_panel: Any, sums: list[Any]) -> list[Any]:
                def add_some(turn: Any, sums: list[Any]) -> list[Any]:
                    for n in range(_TERMS_PER_TURN):
                        column = builder.add(builder.mul(turn, _INT(_TERMS_PER_TURN)), _INT(n))
                        term = builder.add(builder.mul(left_panel, _INT(WIDTH)), column)
                        scales = [
                            left.at(left_panel, builder.add(left_row, _INT(r)), column)
                            for r in range(rows)
                        ]
                        sums = _add_term(builder, sums, scales, right.vectors(panel, term, panels))
                    return sums

                return _repeat(builder, _INT(WIDTH // _TERMS_PER_TURN), sums, add_some)

            _add_loop(builder, result.tile(panel, row, rows, panels), left.num_panels, add_panel)
            return context.get_dummy_value()

        return types.void(c, types.int64, types.int64, a, types.int64, b), generate

    return tile


@intrinsic
def _outer_tile(
    _typing: Any, c: Any, q: Any, i: Any, a: Any, j: Any, k: Any, b: Any, m: Any, p: Any, n: Any
) -> Any:
    """Add a product of n terms to rows i.. of panel q of c.

    A term is a row of a, as a column, times a row of b: rows j.. and columns k.. of a, rows l.. of
    panel p of b.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        result, left, right = (
            _PanelPointers(context, builder, signature.args[n], values[n]) for n in (0, 3, 6)
        )
        result_panel, row, left_row, column, right_row, panel, num_terms = (
            values[n] for n in (1, 2, 4, 5, 7, 8, 9)
        )
        left_panel = builder.lshr(column, _INT(WIDTH.bit_length() - 1))
        inside = builder.and_(column, _INT(WIDTH - 1))

        def add_one(term: Any, sums: list[Any]) -> list[Any]:
            term_row = builder.add(left_row, term)
            scales = [
                left.at(left_panel, term_row, builder.add(inside, _INT(r))) for r in range(ROWS)
            ]
            return _add_term(
                builder, sums, scales, right.vectors(panel, builder.add(right_row, term))
            )

        _add_loop(builder, result.tile(result_panel, row, ROWS), num_terms, add_one)
        return context.get_dummy_value()

    integers = [types.int64] * 3
    return types.void(
        c, types.int64, types.int64, a, types.int64, types.int64, b, *integers
    ), generate


_tile_of_rows = _make_tile(ROWS, 1)
_tile_of_row = _make_tile(1, 1)
_wide_tile_of_row = _make_tile(1, PANELS_OF_ROW)


def padded(columns: int) -> int:
    """Return how many columns the panels have that hold ``columns``."""
    return WIDTH * -(-columns // WIDTH)


def empty_panels(rows: int, columns: int, layers: int | None = None) -> Panels:
    """Return a matrix of zeros in panels; with ``layers`` one for each layer, ``(layers, panels,
    rows, WIDTH)``."""
    shape = (padded(columns) // WIDTH, rows, WIDTH)
    return np.zeros(shape if layers is None else (layers, *shape), np.float32)


def to_panels(matrix: Matrix) -> Panels:
    """Return rows and columns in panels."""
    rows, columns = matrix.shape
    filled = np.zeros((rows, padded(columns)), np.float32)
    filled[:, :columns] = matrix
    return filled.reshape(rows, -1, WIDTH).transpose(1, 0, 2)


def from_panels(panels: Panels, columns: int) -> Matrix:
    """Return a matrix in panels as rows and columns, a view of rows of whole panels."""
    count, rows, _ = panels.shape
    return panels.transpose(1, 0, 2).reshape(rows, count * WIDTH)[:, :columns]


def to_tokens(ids: Tokens, vocab_size: int) -> Tokens:
    """Return ids (B, T) as the loops read them, (T, B). Raises IndexError for one outside the
    vocabulary."""
    if ids.astype(np.uint64).max(initial=0) >= vocab_size:  # negative numbers become large ones
        raise IndexError(f"a token is outside the vocabulary of {vocab_size}")
    return np.ascontiguousarray(ids.T)


@jit_internal
def copy(
    matrix: Matrix,
    is_transposed: bool,
    panels: Panels,
    row: int,
    first: int,
    last: int,
    is_out: bool,
) -> None:
    """Copy a matrix, or its transpose, into the panels ``first`` to ``last``, from their row
    ``row`` on.

    With ``is_out``, copy the panels into the matrix. What is outside the matrix stays as it is.
    """
    # One loop for all, with strides through the numbers of the matrix: others would multiply the
    # compile time.
    numbers, row_step, column_step = matrix.reshape(matrix.size), matrix.shape[1], 1
    rows, columns = matrix.shape
    if is_transposed:
        rows, columns, row_step, column_step = columns, rows, 1, row_step
    for p in range(first, last):
        start = p * WIDTH
        width = min(WIDTH, columns - start)
        for r in range(rows):
            part, place = panels[p, row + r], r * row_step + start * column_step
            if is_out:
                for column in range(width):
                    numbers[place + column * column_step] = part[column]
            else:
                for column in range(width):
                    part[column] = numbers[place + column * column_step]


@jit_internal
def add_product(
    c: Panels,
    row: int,
    a: Panels,
    left_row: int,
    num_rows: int,
    count: int,
    stride: int,
    b: Panels,
    turn: int,
) -> None:
    """Add rows of a times b to rows of c: ``num_rows`` rows, of c from ``row`` and of a from
    ``left_row`` on.

    The same for ``count`` such groups of rows, each ``stride`` rows after the one before. Odd turns
    take the panels of b from the last to the first: a caller that counts its turns finds in the
    cache the panels that it used last. The result is the same.
    """
    panels, is_backwards = b.shape[0], turn % 2 == 1
    for q in range(panels):
        p = panels - 1 - q if is_backwards else q
        for start in range(0, count * stride, stride):
            for i in range(start, start + num_rows - ROWS + 1, ROWS):
                _tile_of_rows(c, p, row + i, a, left_row + i, b)
    in_groups = panels - panels % PANELS_OF_ROW
    for start in range(0, count * stride, stride):
        for i in range(start + num_rows - num_rows % ROWS, start + num_rows):
            for q in range(0, in_groups, PANELS_OF_ROW):
                p = in_groups - PANELS_OF_ROW - q if is_backwards else q
                _wide_tile_of_row(c, p, row + i, a, left_row + i, b)
            for p in range(in_groups, panels):
                _tile_of_row(c, p, row + i, a, left_row + i, b)


@jit_internal
def outer_product(
    out: Matrix,
    first: int,
    last: int,
    a: Panels,
    a_row: int,
    b: Panels,
    b_row: int,
    num_terms: int,
    sums: Panels,
) -> None:
    """Write rows ``first`` to ``last`` of the sum over ``num_terms`` rows of a, as columns, times
    rows of b.

    The rows of a are those from ``a_row`` on, the rows of b those from ``b_row`` on. ``first`` is a
    multiple of ROWS; ``sums`` has space for ROWS_AT_ONCE rows of the result.
    """
    for group in range(first, last, ROWS_AT_ONCE):
        until = min(group + ROWS_AT_ONCE, last)
        sums[: b.shape[0]] = 0
        # As many terms at a time as stay in the cache while all tiles use them.
        for term in range(0, num_terms, _TERMS_AT_ONCE):
            count = min(_TERMS_AT_ONCE, num_terms - term)
            for p in range(b.shape[0]):
                for i in range(group, until, ROWS):
                    _outer_tile(sums, p, i - group, a, a_row + term, i, b, b_row + term, p, count)
        for row in range(group, until):
            for p in range(b.shape[0]):
                start = p * WIDTH
                for column in range(min(WIDTH, out.shape[1] - start)):
                    out[row, start + column] = sums[p, row - group, column]
