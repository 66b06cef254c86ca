"""Images of many sizes in one compiled program: each is padded to a common size, and its own size is traced.

A corruption with a `Padding` draws for a `Shape` and is applied to the padded image. Draws of a pixel, statistics over
the image and its lower and right border depend on the own size: `own(shape)` in a sampler, `own_sides(shape, params)`
in an applier. For other images both return the sides of the shape.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

Params = Mapping[str, Any]
Tables = Callable[[Sequence[int], str | None], Mapping[str, Any]]
TableOf = Callable[[Sequence[int], str | None, int], tuple[str | None, np.int32]]


@dataclasses.dataclass(frozen=True)
class Padding:
    """How `corrupt_each` pads images for a corruption.

    Attributes:
      table_of: `(shape, table, side) -> (name, number)` for an image's own shape: the name of the severity table that
        the program for a square of `side` is built for, and the number of the image's own table, an input of the
        program. The name is None for a corruption without tables, the default.
      mode: how the image continues beyond its lower and right border, as in `numpy.pad`.
      reach: pixels beyond the border that the corruption reads.
      tables: `(shape, table) -> arrays` computed on the host from the own shape of an image and the option `table`.
      axes: how many of the last axes of these arrays are padded with zeros to the square's side.
      quick: whether a CPU's program that is compiled quickly (see `one_image`) gives the same bits and runs as fast.
    """

    table_of: TableOf = lambda shape, table, side: (None, np.int32(0))
    mode: Literal["reflect", "edge"] = "reflect"
    reach: int = 0
    tables: Tables | None = None
    axes: int = 1
    quick: bool = False

    def tables_of(self, shape: Sequence[int], table: str | None, side: int) -> dict[str, np.ndarray]:
        """Makes the tables of an image of `shape`, padded for a square of `side`."""

        def filled(array: Any) -> np.ndarray:
            whole = np.ndim(array) - self.axes  # axes that are not padded
            return np.pad(array, [(0, 0)] * whole + [(0, side - n) for n in np.shape(array)[whole:]])

        return {name: filled(array) for name, array in (self.tables(shape, table) if self.tables else {}).items()}


def side_of(shape: tuple[int, ...], reach: int = 0) -> int:
    """Picks the side of the square that an image (H, W, ...) is padded to, from only its size.

    `reach` pixels of padding are needed beyond a side, unless it is as long as the square's. Sides are powers of two;
    from 512 on two more between, where work costs more than compilation.
    """
    large = (side for power in itertools.count(9) for side in (2**power, 5 * 2 ** (power - 2), 3 * 2 ** (power - 1)))
    sides = itertools.chain((32, 64, 128, 256), large)
    return next(s for s in sides if all(n == s or n + reach <= s for n in shape[:2]))


class Shape(tuple):
    """The shape of a padded array: a tuple of its sides that also knows the own sides.

    Attributes:
      own: the own sides, integers that may be traced.
      tables: see `Padding`.
    """

    own: tuple
    tables: Mapping[str, Any]

    def __new__(cls, sides: Sequence[int], own: Sequence[Any], tables: Mapping[str, Any] | None = None) -> "Shape":
        shape = super().__new__(cls, sides)
        shape.own, shape.tables = tuple(own), tables or {}
        return shape

    def __getitem__(self, item: Any) -> Any:
        part = super().__getitem__(item)
        return Shape(part, self.own[item], self.tables) if isinstance(item, slice) else part


def stacked(number: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape of several arrays of a shape: (*number, *shape)."""
    sides = (*number, *shape)
    return Shape(sides, (*number, *shape.own), shape.tables) if isinstance(shape, Shape) else sides


def own(shape: Sequence[int]) -> Sequence[Any]:
    """Returns the own sides of a `Shape`, which may be traced, and any other shape unchanged."""
    return shape.own if isinstance(shape, Shape) else shape


def with_own_size(params: Params, shape: Sequence[int]) -> Params:
    """Adds own height and width, int32 [2] `own_size`, to the draws for a `Shape`."""
    if not isinstance(shape, Shape):
        return params
    return {**params, "own_size": jnp.stack([jnp.asarray(side, jnp.int32) for side in shape.own[:2]])}


def own_sides(shape: Sequence[int], params: Params) -> Sequence[Any]:
    """Returns own height and width of a padded image, which may be traced; of any other image its sides."""
    return params["own_size"] if "own_size" in params else shape[:2]


def tables(shape: Sequence[int], table: str | None, make: Tables) -> Mapping[str, Any]:
    """Returns the tables of a corruption: made from the shape, or by the host for a `Shape`."""
    return shape.tables if isinstance(shape, Shape) else make(shape, table)


def blackened(image: jax.Array, params: Params) -> jax.Array:
    """Blackens a padded image [H, W, C] beyond its own sides."""
    if "own_size" not in params:
        return image
    rows, columns = (jnp.arange(n) < side for n, side in zip(image.shape[:2], params["own_size"]))
    return jnp.where((rows[:, None] & columns[None, :])[..., None], image, 0.0)


def repeat_border(image: jax.Array, params: Params) -> jax.Array:
    """Repeats the lower and right border of a padded image [H, W, ...] over the padding."""
    return repeat_beyond(image, params["own_size"]) if "own_size" in params else image


def repeat_beyond(image: jax.Array, sides: Sequence[Any] | jax.Array) -> jax.Array:
    """Repeats the last of the first `sides` rows and columns of an image [H, W, ...] over what follows them."""
    rows, columns = (jnp.minimum(jnp.arange(n), side - 1) for n, side in zip(image.shape[:2], sides))
    return image[rows][:, columns]


def turned(image: jax.Array, params: Params) -> jax.Array:
    """Turns an image [H, W, ...] by 180 degrees; a padded one about the middle of its own part."""
    whole = image[::-1, ::-1]
    if "own_size" not in params:
        return whole
    return jnp.roll(whole, params["own_size"] - jnp.array(image.shape[:2], jnp.int32), (0, 1))
