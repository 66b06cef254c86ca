"""Random resized crops, the training augmentation of the ImageNet recipes.

Each image is cut to a random box and the box is resized to the network's input (Szegedy et al.,
"Going Deeper with Convolutions", CVPR 2015, section 6; area and aspect as torchvision's
RandomResizedCrop has them).
"""

import functools
import math

import jax
import jax.numpy as jnp

from corruptions.primitives.resizing import triangle_matrix

AREA = (0.08, 1.0)  # of the box, as a fraction of the image's
ASPECT = (3 / 4, 4 / 3)  # width by height of the box
_TRIES = 10
_CHUNK = 256  # images that are floating point at a time


def random_box(key: jax.Array, height: int, width: int) -> jax.Array:
    """Draws a box (top, left, height, width), int32 [4], within an image.

    Area uniform in AREA of the image's, logarithm of the aspect uniform in ASPECT, sides rounded,
    corner uniform. A box that sticks out is drawn again, up to 10 times; then it is the largest
    centre box with an aspect in ASPECT.
    """
    area_key, aspect_key, corner_key = jax.random.split(key, 3)
    area = jax.random.uniform(area_key, (_TRIES,), minval=AREA[0], maxval=AREA[1]) * (height * width)
    bounds = [math.log(bound) for bound in ASPECT]
    aspect = jnp.exp(jax.random.uniform(aspect_key, (_TRIES,), minval=bounds[0], maxval=bounds[1]))
    sides = jnp.round(jnp.stack([jnp.sqrt(area / aspect), jnp.sqrt(area * aspect)], axis=1)).astype(jnp.int32)
    fits = jnp.all((sides > 0) & (sides <= jnp.array([[height, width]])), axis=1)
    last = jnp.array([min(height, round(width / ASPECT[0])), min(width, round(height * ASPECT[1]))])
    box = jnp.where(fits.any(), sides[jnp.argmax(fits)], last)
    room = jnp.array([height, width]) - box
    drawn = jax.random.randint(corner_key, (2,), 0, room + 1)
    corner = jnp.where(fits.any(), drawn, room // 2)
    return jnp.concatenate([corner, box])


def resize_box(image: jax.Array, box: jax.Array, size: int) -> jax.Array:
    """Resizes a box of an image to [size, size], bilinear with antialiasing as Pillow's BILINEAR.

    Args:
      image: uint8 [H, W, 3].
      box: int32 [4], see `random_box`; may be traced.
      size: static side in pixels.

    Returns:
      uint8 [size, size, 3], rounded to nearest.
    """
    top, left, height, width = box
    rows = triangle_matrix(size, height, size, image.shape[0], top)
    columns = triangle_matrix(size, width, size, image.shape[1], left)
    exact = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
    wide = exact("ij,jkc->ikc", rows, image.astype(jnp.float32))
    return jnp.round(exact("lk,ikc->ilc", columns, wide)).astype(jnp.uint8)


@functools.partial(jax.jit, static_argnames="size")
def random_resized_crop(images: jax.Array, key: jax.Array, identity: jax.Array, size: int) -> jax.Array:
    """Cuts each image [M, H, W, 3] to a random box of its own, resized: uint8 [M, size, size, 3].

    Args:
      key: root key; image i draws with `fold_in(key, identity[i])`.
      identity: int32 [M].
      size: side in pixels, at most H and W.
    """

    def crop(numbered_image):
        image, i = numbered_image
        return resize_box(image, random_box(jax.random.fold_in(key, i), *image.shape[:2]), size)

    return jax.lax.map(crop, (images, identity), batch_size=min(_CHUNK, images.shape[0]))
