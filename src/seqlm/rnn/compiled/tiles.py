"""The inner loop of the compiled network's matrix products, in vector instructions.

A matrix is kept in *panels*: an array of shape ``(panels, rows, WIDTH)`` whose panel p holds the
columns ``p * WIDTH`` and on, the last one filled up with zeros. A *tile* is the part of a product
that fits into the processor's vector registers: some rows of one panel. Its sums stay in registers
from the first term to the last.

Every element of a product is summed up in the same order with one rounding a term (fused
multiply-add), so that the result depends neither on the size of a tile nor on how rows are shared
out among threads. Numba turns plain loops into vector instructions, but does not keep a tile in
registers; that is why these loops are written one level below it.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from seqlm.rnn.compiled.processor import features

_IS_WIDE = "+avx512f" in features()
"""Whether this processor has the 32 registers of 16 numbers that AVX-512 brings."""
_LANES = 16 if _IS_WIDE else 8
_VECTORS_OF_PANEL = 2
WIDTH = _VECTORS_OF_PANEL * _LANES
"""Columns of a panel, a power of two."""
ROWS = 8 if _IS_WIDE else 4
"""Rows of a tile; divides WIDTH."""
PANELS_OF_ROW = 4
"""Panels that a product of one row takes at once, to keep the processor busy."""
_TERMS_OF_TURN = 4
"""Terms that stand in a loop's body; divides WIDTH."""

_INT = ir.IntType(64)
_VECTOR = ir.VectorType(ir.FloatType(), _LANES)


class _Panels:
    """An array of panels, in code that is being written."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self._builder, self._data = builder, array.data
        self.num_panels, self._num_rows, _ = cgutils.unpack_tuple(builder, array.shape, 3)

    def at(self, panel: Any, row: Any, column: Any = 0) -> Any:
        """Return a pointer to an element."""
        b = self._builder
        start = b.mul(b.add(b.mul(panel, self._num_rows), row), _INT(WIDTH))
        return b.gep(self._data, [b.add(start, column if column else _INT(0))])


def _load(builder: Any, pointer: Any) -> Any:
    vector = builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()))
    vector.align = 4
    return vector


def _store(builder: Any, vector: Any, pointer: Any) -> None:
    builder.store(vector, builder.bitcast(pointer, _VECTOR.as_pointer())).align = 4


def _repeated(builder: Any, pointer: Any) -> Any:
    """Return a vector that holds one number in every place."""
    undefined, index = ir.Constant(_VECTOR, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, builder.load(pointer), index(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(index, _LANES), [0] * _LANES))


def _multiply_add(builder: Any, left: Any, right: Any, total: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    fused = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{_LANES}f32")
    return builder.call(fused, [left, right, total])


def _repeat(builder: Any, count: Any, sums: list[Any], step: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
    """Write a loop of ``count`` turns, one at least, over vectors: ``step(turn, sums)`` returns the new sums."""
    before, loop, after = builder.block, builder.append_basic_block("turn"), builder.append_basic_block("done")
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


def _add_term(builder: Any, sums: list[Any], left: list[Any], right: list[Any]) -> list[Any]:
    """Add one term: the numbers at ``left``, one a row, times the vectors at ``right``; sums come row after row."""
    factors = [_load(builder, pointer) for pointer in right]
    totals = iter(sums)
    return [
        _multiply_add(builder, scale, factor, next(totals))
        for scale in (_repeated(builder, pointer) for pointer in left)
        for factor in factors
    ]


def _vectors(panels: _Panels, builder: Any, panel: Any, row: Any, num_panels: int) -> list[Any]:
    """Return pointers to the vectors of one row in ``num_panels`` panels from ``panel`` on."""
    return [
        panels.at(builder.add(panel, _INT(vector // _VECTORS_OF_PANEL)), row, _INT(vector % _VECTORS_OF_PANEL * _LANES))
        for vector in range(num_panels * _VECTORS_OF_PANEL)
    ]


def _make_tile(rows: int, panels: int) -> Any:
    """Return ``tile(c, p, i, a, j, b)``: rows i.. of panels p.. of c grow by rows j.. of a times b."""

    @intrinsic
    def tile(_typing: Any, c: Any, p: Any, i: Any, a: Any, j: Any, b: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kinds = signature.args
            result, left, right = (_Panels(context, builder, kinds[n], values[n]) for n in (0, 3, 5))
            panel, row, left_row = values[1], values[2], values[4]
            targets = [
                pointer
                for r in range(rows)
                for pointer in _vectors(result, builder, panel, builder.add(row, _INT(r)), panels)
            ]

            def add_panel(left_panel: Any, sums: list[Any]) -> list[Any]:
                def add_some(turn: Any, sums: list[Any]) -> list[Any]:
                    for n in range(_TERMS_OF_TURN):
                        column = builder.add(builder.mul(turn, _INT(_TERMS_OF_TURN)), _INT(n))
                        term = builder.add(builder.mul(left_panel, _INT(WIDTH)), column)
                        scales = [left.at(left_panel, builder.add(left_row, _INT(r)), column) for r in range(rows)]
                        sums = _add_term(builder, sums, scales, _vectors(right, builder, panel, term, panels))
                    return sums

                return _repeat(builder, _INT(WIDTH // _TERMS_OF_TURN), sums, add_some)

            sums = _repeat(builder, left.num_panels, [_load(builder, target) for target in targets], add_panel)
            for target, total in zip(targets, sums, strict=True):
                _store(builder, total, target)
            return context.get_dummy_value()

        return types.void(c, types.int64, types.int64, a, types.int64, b), generate

    return tile


def _make_outer_tile() -> Any:
    """Return ``tile(c, q, i, a, j, k, b, l, p, n)``: rows i.. of panel q of c grow by a product of n terms.

    A term is a row of a, as a column, times a row of b. Of a, rows j.. and columns k.. are
    taken; of b, rows l.. of panel p.
    """

    @intrinsic
    def tile(_typing: Any, c: Any, q: Any, i: Any, a: Any, j: Any, k: Any, b: Any, l: Any, p: Any, n: Any) -> Any:  # noqa: ARG001, E741
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kinds = signature.args
            result, left, right = (_Panels(context, builder, kinds[n], values[n]) for n in (0, 3, 6))
            result_panel, row, left_row, column, right_row, panel, num_terms = (
                values[n] for n in (1, 2, 4, 5, 7, 8, 9)
            )
            targets = [
                pointer
                for r in range(ROWS)
                for pointer in _vectors(result, builder, result_panel, builder.add(row, _INT(r)), 1)
            ]
            left_panel = builder.lshr(column, _INT(WIDTH.bit_length() - 1))
            inside = builder.and_(column, _INT(WIDTH - 1))

            def add_one(term: Any, sums: list[Any]) -> list[Any]:
                place = builder.add(left_row, term)
                scales = [left.at(left_panel, place, builder.add(inside, _INT(r))) for r in range(ROWS)]
                factors = _vectors(right, builder, panel, builder.add(right_row, term), 1)
                return _add_term(builder, sums, scales, factors)

            sums = _repeat(builder, num_terms, [_load(builder, target) for target in targets], add_one)
            for target, total in zip(targets, sums, strict=True):
                _store(builder, total, target)
            return context.get_dummy_value()

        integers = [types.int64] * 3
        return types.void(c, types.int64, types.int64, a, types.int64, types.int64, b, *integers), generate

    return tile


tile_of_rows = _make_tile(ROWS, 1)
tile_of_row = _make_tile(1, 1)
wide_tile_of_row = _make_tile(1, PANELS_OF_ROW)
outer_tile = _make_outer_tile()
