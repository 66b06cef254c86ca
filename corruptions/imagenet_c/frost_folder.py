"""ImageNet-C frost with texture photographs from a folder, such as those of the original."""

import dataclasses
import os

from corruptions.imagenet_c import tables
from corruptions.imagenet_c.frost import frost, weights
from corruptions.imagenet_c.photographs import Photographs
from corruptions.record import Corruption, Parameter


def frost_from_folder(path: str | os.PathLike[str]) -> Corruption:
    """Makes `imagenet_c/frost` with the texture images in a folder.

    Every image file is drawn equally often, so the original benchmark takes exactly the five files
    it draws from (frost1.png, frost2.png, frost3.png, frost4.jpg, frost5.jpg). The result is not in
    the registry; pass it where a name is expected:
    `corruptions.corrupt(key, images, frost_from_folder(path), severity=3)`. Where only names are
    taken, `use_photographs` gives the same as an option. Needs Pillow.

    Args:
      path: folder of images (png, jpg, bmp, webp), read now, in the order of their names.

    Returns:
      A `Corruption` whose draws also hold `origin`, int32 [3]: file, first row and first column of
      the crop.

    Raises:
      FileNotFoundError: no such folder, or no image file in it.
      ValueError: while sampling, a texture (resized as the table asks for) smaller than the image.
    """
    photographs = Photographs(path)

    def sample(key, shape, severity, *, table=None):
        """Draws a photograph and the place of its crop, see `photographs.Photographs.crop`."""
        table = tables.table_for(shape, table)
        return {**weights(shape, severity, table), **photographs.crop(key, shape, table)}

    image_weight, frost_weight, _ = frost.parameters
    texture = Parameter("texture", "RGB levels 0..255", f"photographs in {photographs.folder}")
    return dataclasses.replace(frost, sampler=sample, parameters=(image_weight, frost_weight, texture))
