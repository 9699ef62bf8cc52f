"""Matrices in panels, and their products (see :mod:`seqlm.rnn.compiled.tiles`)."""

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.compiling import inner, spliced
from seqlm.rnn.compiled.tiles import PANELS_OF_ROW, ROWS, WIDTH, outer_tile, tile_of_row, tile_of_rows, wide_tile_of_row

Panels = NDArray[np.float32]
"""A matrix in panels: ``(panels, rows, WIDTH)``."""
Matrix = NDArray[np.float32]

ROWS_AT_ONCE = 256
"""Rows of an outer product that are summed up together, a multiple of ROWS."""
_TERMS_AT_ONCE = 128


@spliced
def num_panels(columns: int) -> int:
    """Return how many panels hold so many columns."""
    return -(-columns // WIDTH)


def padded(columns: int) -> int:
    """Return how many columns the panels have that hold so many."""
    return WIDTH * -(-columns // WIDTH)


def empty_panels(rows: int, columns: int) -> Panels:
    """Return a matrix of zeros in panels."""
    return np.zeros((padded(columns) // WIDTH, rows, WIDTH), np.float32)


@inner
def copy_in(matrix: Matrix, is_transposed: bool, panels: Panels, row: int, first: int, last: int) -> None:
    """Copy a matrix, or its transpose, into the panels ``first`` to ``last``, from their row ``row`` on.

    What lies outside the matrix stays.
    """
    # One loop for both, by steps through the numbers of the matrix: a second one takes as long to compile.
    numbers, row_step, column_step = matrix.reshape(matrix.size), matrix.shape[1], 1
    rows, columns = matrix.shape
    if is_transposed:
        rows, columns, row_step, column_step = columns, rows, 1, row_step
    for p in range(first, last):
        start = p * WIDTH
        width = min(WIDTH, columns - start)
        for r in range(rows):
            target, source = panels[p, row + r], r * row_step + start * column_step
            for column in range(width):
                target[column] = numbers[source + column * column_step]


@inner
def copy_out(panels: Panels, matrix: Matrix, is_transposed: bool, first: int, last: int) -> None:
    """Copy the panels ``first`` to ``last`` into a matrix, or into its transpose."""
    columns = matrix.shape[0] if is_transposed else matrix.shape[1]
    for p in range(first, last):
        start = p * WIDTH
        width = min(WIDTH, columns - start)
        if is_transposed:
            for column in range(width):
                for row in range(panels.shape[1]):
                    matrix[start + column, row] = panels[p, row, column]
        else:
            for row in range(panels.shape[1]):
                for column in range(width):
                    matrix[row, start + column] = panels[p, row, column]


@inner
def add_product(
    c: Panels, row: int, a: Panels, left_row: int, num_rows: int, count: int, stride: int, b: Panels, turn: int
) -> None:
    """Add rows of a times b to rows of c: ``num_rows`` rows, of c from ``row`` and of a from ``left_row`` on.

    The same for ``count`` such groups of rows, each ``stride`` rows after the one before.
    Odd turns take the panels of b from the last to the first: a caller that counts its turns
    finds those in the cache that it used last. The result is the same.
    """
    panels, backwards = b.shape[0], turn % 2 == 1
    for q in range(panels):
        p = panels - 1 - q if backwards else q
        for start in range(0, count * stride, stride):
            for i in range(start, start + num_rows - ROWS + 1, ROWS):
                tile_of_rows(c, p, row + i, a, left_row + i, b)
    in_groups = panels - panels % PANELS_OF_ROW
    for start in range(0, count * stride, stride):
        for i in range(start + num_rows - num_rows % ROWS, start + num_rows):
            for q in range(0, in_groups, PANELS_OF_ROW):
                p = in_groups - PANELS_OF_ROW - q if backwards else q
                wide_tile_of_row(c, p, row + i, a, left_row + i, b)
            for p in range(in_groups, panels):
                tile_of_row(c, p, row + i, a, left_row + i, b)


@inner
def outer_product(
    out: Matrix, first: int, last: int, a: Panels, a_row: int, b: Panels, b_row: int, num_terms: int, sums: Panels
) -> None:
    """Write rows ``first`` to ``last`` of the sum over ``num_terms`` rows of a, as columns, times rows of b.

    Of a, rows from ``a_row`` on are taken, of b from ``b_row`` on. ``first`` is a multiple of ROWS;
    ``sums`` is room for ROWS_AT_ONCE rows of the result.
    """
    for group in range(first, last, ROWS_AT_ONCE):
        until = min(group + ROWS_AT_ONCE, last)
        sums[: b.shape[0]] = 0
        # As many terms at a time as stay in the cache while all tiles take them in.
        for term in range(0, num_terms, _TERMS_AT_ONCE):
            count = min(_TERMS_AT_ONCE, num_terms - term)
            for p in range(b.shape[0]):
                for i in range(group, until, ROWS):
                    outer_tile(sums, p, i - group, a, a_row + term, i, b, b_row + term, p, count)
        for row in range(group, until):
            for p in range(b.shape[0]):
                start = p * WIDTH
                for column in range(min(WIDTH, out.shape[1] - start)):
                    out[row, start + column] = sums[p, row - group, column]
