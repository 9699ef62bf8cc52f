"""Matrices in panels, and their products (see :mod:`seqlm.rnn.compiled.tiles`)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlm.rnn.compiled.tiles import PANELS_OF_ROW, ROWS, WIDTH, outer_tile, tile_of_row, tile_of_rows, wide_tile_of_row

Panels = NDArray[np.float32]
"""A matrix in panels: ``(panels, rows, WIDTH)``."""
Matrix = NDArray[np.float32]

ROWS_AT_ONCE = 256
"""Rows of an outer product that are summed up together, a multiple of ROWS."""
_TERMS_AT_ONCE = 128


def num_panels(columns: int) -> int:
    """Return how many panels hold so many columns."""
    return -(-columns // WIDTH)


def empty_panels(rows: int, columns: int) -> Panels:
    """Return a matrix of zeros in panels."""
    return np.zeros((num_panels(columns), rows, WIDTH), np.float32)


@njit(nogil=True)
def pack(matrix: Matrix, panels: Panels, first: int, last: int) -> None:
    """Copy a matrix into its panels ``first`` to ``last``; what lies outside the matrix stays."""
    rows, columns = matrix.shape
    for p in range(first, last):
        start = p * WIDTH
        for row in range(rows):
            for column in range(min(WIDTH, columns - start)):
                panels[p, row, column] = matrix[row, start + column]


@njit(nogil=True)
def pack_transposed(matrix: Matrix, panels: Panels, first: int, last: int) -> None:
    """Copy the transpose of a matrix into its panels ``first`` to ``last``."""
    columns, rows = matrix.shape
    for p in range(first, last):
        start = p * WIDTH
        # In blocks, so that what is read and what is written both stay in the cache.
        for block in range(0, rows, WIDTH):
            for column in range(min(WIDTH, columns - start)):
                for row in range(block, min(block + WIDTH, rows)):
                    panels[p, row, column] = matrix[start + column, row]


@njit(nogil=True)
def add_product(c: Panels, row: int, a: Panels, left_row: int, num_rows: int, b: Panels, backwards: bool) -> None:
    """Add ``num_rows`` rows of a, from ``left_row`` on, times b to the rows of c from ``row`` on.

    ``backwards`` takes the panels of b from the last to the first: a caller that turns round with
    every call finds those in the cache that it used last. The result is the same.
    """
    panels = b.shape[0]
    for q in range(panels):
        p = panels - 1 - q if backwards else q
        for i in range(0, num_rows - ROWS + 1, ROWS):
            tile_of_rows(c, p, row + i, a, left_row + i, b)
    in_groups = panels - panels % PANELS_OF_ROW
    for i in range(num_rows - num_rows % ROWS, num_rows):
        for q in range(0, in_groups, PANELS_OF_ROW):
            p = in_groups - PANELS_OF_ROW - q if backwards else q
            wide_tile_of_row(c, p, row + i, a, left_row + i, b)
        for p in range(in_groups, panels):
            tile_of_row(c, p, row + i, a, left_row + i, b)


@njit(nogil=True)
def outer_product(
    out: Matrix, first: int, last: int, a: Panels, a_row: int, a_column: int, b: Panels, b_row: int, num_terms: int,
    sums: Panels,
) -> None:  # fmt: skip
    """Write rows ``first`` to ``last`` of the sum over ``num_terms`` rows of a, as columns, times rows of b.

    Of a, rows from ``a_row`` on and columns from ``a_column`` on are taken; of b, rows from ``b_row``
    on. ``first`` and ``a_column`` are multiples of ROWS; ``sums`` is room for ROWS_AT_ONCE rows of the result.
    """
    for group in range(first, last, ROWS_AT_ONCE):
        until = min(group + ROWS_AT_ONCE, last)
        sums[: b.shape[0]] = 0
        # As many terms at a time as stay in the cache while all tiles take them in.
        for term in range(0, num_terms, _TERMS_AT_ONCE):
            count = min(_TERMS_AT_ONCE, num_terms - term)
            for p in range(b.shape[0]):
                for i in range(group, until, ROWS):
                    outer_tile(sums, p, i - group, a, a_row + term, a_column + i, b, b_row + term, p, count)
        for row in range(group, until):
            for p in range(b.shape[0]):
                start = p * WIDTH
                for column in range(min(WIDTH, out.shape[1] - start)):
                    out[row, start + column] = sums[p, row - group, column]
