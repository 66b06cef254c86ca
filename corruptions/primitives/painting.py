"""Painting many copies of one small shape: how many cover a pixel, and which one covers it last.

A shape is a tuple of runs (row offset, leftmost, rightmost column offset; both ends included), rows
being consecutive. Centres are entered into one map by a product of one-hot matrices, which is then
spread over the shape by shifts of the whole map, first along rows, then along columns: work and
memory are those of a few images whatever the number of shapes, without scatters or loops.
"""

import jax
import jax.numpy as jnp


def covering(rows, columns, number, runs, shape):
    """Number of shapes covering each pixel.

    Args:
      rows, columns: int32 [N], centres.
      number: how many of them are painted, the first ones; may be traced.
      runs: the shape.
      shape: (H, W, ...).

    Returns:
      float32 [H, W] of whole numbers; what leaves the image is cut off.
    """
    painted = jnp.arange(rows.shape[0]) < number
    centres = _enter(rows, columns, painted.astype(jnp.float32), shape)
    return _spread(centres, runs, jnp.add)


def last_covering(rows, columns, number, runs, shape):
    """Index of the last shape covering each pixel, the one seen when later shapes are painted over
    earlier ones.

    Args:
      rows, columns, number, runs, shape: as for `covering`; N below 2**24.

    Returns:
      int32 [H, W]: the largest index i < number of a shape covering the pixel, -1 where there is
      none.
    """
    index = jnp.arange(rows.shape[0])
    painted = index < number
    same = (rows[:, None] == rows) & (columns[:, None] == columns)
    hidden = jnp.any(
        same & painted & (index > index[:, None]), axis=1
    )  # by a later one with the same centre
    values = jnp.where(painted & ~hidden, index + 1, 0).astype(jnp.float32)
    return _spread(_enter(rows, columns, values, shape), runs, jnp.maximum).astype(jnp.int32) - 1


def covered_by_products(row_sets, column_sets):
    """Whether any of N products of a set of rows and a set of columns covers a pixel.

    Args:
      row_sets: bool [N, H].
      column_sets: bool [N, W].

    Returns:
      bool [H, W].
    """
    # Whole numbers up to N: the accelerator's cheapest precision still tells 0 from more.
    return row_sets.astype(jnp.float32).T @ column_sets.astype(jnp.float32) > 0.5


def _enter(rows, columns, values, shape):
    """float32 [H, W]: the sum of the values entered at each centre."""
    height, width = shape[:2]
    at_row = (rows[:, None] == jnp.arange(height)).astype(jnp.float32) * values[:, None]
    at_column = (columns[:, None] == jnp.arange(width)).astype(jnp.float32)
    return jnp.matmul(at_row.T, at_column, precision=jax.lax.Precision.HIGHEST)


def _spread(centres, runs, combine):
    """Combines, at each pixel, the values of all centres whose shape covers it; 0 is neutral."""
    height, width = centres.shape
    reach = max(max(-left, right) for _, left, right in runs)
    top, bottom = max(0, -runs[0][0]), max(0, runs[-1][0])
    padded = jnp.pad(centres, ((bottom, top), (reach, reach)))

    def shifted(columns):
        return padded[:, reach - columns : reach - columns + width]

    # Runs are nested, so each is the next narrower one and a few columns more.
    lines, done = {}, ()
    for left, right in sorted({run[1:] for run in runs}, key=lambda run: run[1] - run[0]):
        line = lines[done] if done else shifted(left)
        for column in range(left, right + 1):
            if column != left if not done else not done[0] <= column <= done[1]:
                line = combine(line, shifted(column))
        lines[left, right] = line
        done = (left, right)
    # Kept apart from the columns' pass: fused, every line would be computed again for each of its rows.
    lines = jax.lax.optimization_barrier(lines)
    result = None
    for row, left, right in runs:
        line = lines[left, right][bottom - row : bottom - row + height]
        result = line if result is None else combine(result, line)
    return result
