"""Ten crops: the corners and the centre of an image and of its mirror image.

Networks for 224 pixels are shown crops of 224 of an image of 256. Stored corrupted images are 224
pixels already, so they are enlarged first, in that ratio and bilinearly (32 pixels become 37). The
draft on structural robustness does not say what it did. The order is that of fb.resnet.torch.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from corruptions.batch import from_float, to_float

_RATIO = 256 / 224


def ten_crops(image: jax.Array, height: int, width: int) -> jax.Array:
    """Cuts the ten crops: centre, upper left, upper right, lower left, lower right, and the same of
    the mirror image.

    Args:
      image: [H, W, C].
      height, width: of a crop, at most H and W.

    Returns:
      [10, height, width, C].
    """
    down, right = image.shape[0] - height, image.shape[1] - width
    corners = (((down + 1) // 2, (right + 1) // 2), (0, 0), (0, right), (down, 0), (down, right))
    return jnp.stack(
        [turned[top : top + height, left : left + width] for turned in (image, image[:, ::-1]) for top, left in corners]
    )


def enlarged(image: jax.Array) -> jax.Array:
    """Enlarges an image by 256 / 224, bilinearly, to whole pixels; 8-bit images stay so.

    Args:
      image: uint8, or float32 in [0, 1], [H, W, C].
    """
    height, width = (round(side * _RATIO) for side in image.shape[:2])
    larger = jax.image.resize(to_float(image), (height, width, image.shape[2]), "bilinear")
    return from_float(larger, image.dtype, "nearest")


def averaged(classify: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    """Makes the classifier that averages the probabilities (softmax) of the ten crops of enlarged
    images, see `evaluation.enhancements.averaged`.
    """

    def probabilities(images):
        larger = jax.vmap(enlarged)(images)
        crops = jax.vmap(lambda image: ten_crops(image, *images.shape[1:3]), out_axes=1)(larger)
        of_crops = jax.lax.map(lambda crop: jax.nn.softmax(classify(crop).astype(jnp.float32)), crops)
        return of_crops.mean(0)

    return probabilities
