"""ImageNet-C frost: ice laid over the image, procedural or cropped from photographs in a folder.

The option `photographs` is "original", for the photographs that packages such as imagecorruptions-imaug hold, or the digest of
photographs that `use_photographs` read. Records hold the digest: results stay bound to the pictures, wherever they lie.
"""

import collections
import functools
import importlib.util
import logging
import math
import os
import pathlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import files
from corruptions.core.corruption import Image, Key, Parameter, Params, Severity, Shape
from corruptions.core.errors import MissingAssets
from corruptions.imagenet_c.tables import lookup, padding, register, table_for
from corruptions.primitives import color, frost_texture, padded
from corruptions.reading import pictures
from corruptions.reading.folders import SPECIAL, SUFFIXES, is_special, warn_of_left_out

_LOG = logging.getLogger(__name__)

# (weight of the image, weight of the frost)
_LEVELS = {
    "cifar": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    "tiny": ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
    "imagenet": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    "inception": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
}

# The original draws one of five files, of which the second and third are the same picture.
_LOOK_OF_FILE = (0, 1, 1, 2, 3)

# Size of the textures relative to the files.
TEXTURE_SCALE = {"cifar": 0.2, "tiny": 0.3, "imagenet": 1.0, "inception": 1.0}

# sha256 of the files that ImageNet-C draws from, frost1.png to frost5.jpg, and the digest of the five. The release, and the
# packages below, contain a sixth.
_ORIGINALS = (
    "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755",
    "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137",
    "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504",
    "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e",
    "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2",
)
ORIGINAL_PHOTOGRAPHS = "d58384ccf7e2b8b0b1dea4010b349a52c70b26179a6decb26278b7391ef77a64"
_PACKAGES = {"imagecorruptions": "frost", "corrupt_tta": "assets/frost"}  # module: the folder of its photographs

# torch-uncertainty-assets 0.5.2.
_OTHERS = "torch_uncertainty_assets"
_OTHERS_DIGEST = "8aecd37428a994346f6ca9f7f4f4a3c255b31e907efb91b565e767b3434a1d4c"
_OTHERS_ARE = (
    "the photographs of torch-uncertainty-assets, not ImageNet-C's: two are encoded again as JPEG (4.4 and 2.8 levels off on "
    "average), none is there twice, and one is the release's sixth, which ImageNet-C does not draw"
)

_USED: dict[str, "Photographs"] = {}
ORIGINAL = "original"


def _sample(
    key: Key, shape: Shape, severity: Severity, *, table: str | None = None, photographs: str | None = None
) -> Params:
    """Draws a procedural texture with the statistics of the original's photographs.

    First one of five looks with equal probability (two of them are alike), then `texture`: random fields (see
    `primitives.frost_texture`) at the scale of the original's crop, resampled without smoothing by 0.2 (`cifar`) or
    0.3 (`tiny`). Scores are close to, but not comparable with, published ones: those need the original photographs,
    `photographs="original"` where imagecorruptions-imaug is installed. With `photographs` a crop of them takes the
    texture's place.
    """
    table = table_for(shape, table)
    if photographs is not None:
        return {**_weights(shape, severity, table), **find(photographs).crop(key, shape, table)}
    _say_procedural()
    look_key, key = jax.random.split(key)
    look = jnp.array(_LOOK_OF_FILE)[jax.random.randint(look_key, (), 0, len(_LOOK_OF_FILE))]
    return {**_weights(shape, severity, table), "texture": _texture(key, look, shape, TEXTURE_SCALE[table])}


_UNITS = {
    "image_weight": "factor on the image",
    "frost_weight": "factor on the texture",
    "texture": Parameter("texture", "RGB levels 0..255", "procedural, after statistics of ImageNet-C's photographs"),
}
_MIXES = "lays a texture of red, green and blue over the image"


def _positions(shape, scale):
    """Finds the rows and columns of the full-size texture that are read, and the shares by which an axis mixes two."""
    taps = [resize_taps(size, scale) for size in shape[:2]]
    if not any(fraction.any() for _, fraction in taps):
        return [first for first, _ in taps], None
    # Only the pixels of the full-size texture that are interpolated: two rows and two columns per output.
    return [np.stack([first, first + 1], axis=1).ravel() for first, _ in taps], [share for _, share in taps]


def _lattices(shape, table):
    return {"lattices": frost_texture.lattices(*_positions(shape, TEXTURE_SCALE[table_for(shape, table)])[0])}


def _described(shape, options):
    """Lists for records the severity table and the digest of the photographs."""
    original = {"photographs": ORIGINAL_PHOTOGRAPHS} if options.get("photographs") == ORIGINAL else {}
    return {"table": table_for(shape, options.get("table")), **original}


def _may_be_loaded(options):
    """Says that textures are not the benchmark's, as a trace does; programs of a user's photographs hold them."""
    if options.get("photographs") is None:
        _say_procedural()
    return options.get("photographs") is None


@functools.cache
def _say_procedural():
    """Warns once in a process that textures are not the benchmark's."""
    _LOG.warning(
        "imagenet_c/frost draws procedural ice: scores do not compare with published ones, which need the photographs: "
        "photographs='original' with imagecorruptions-imaug installed, or imagenet_c.use_photographs(FOLDER)"
    )


@register(
    "weather",
    _sample,
    _UNITS,
    severity={"image_weight": "1", "frost_weight": "1"},
    mixes=_MIXES,
    padding=padding(tables=_lattices, axes=0),
    by_size=_described,
    loads=_may_be_loaded,
    alone="quick",
)
def frost(image: Image, params: Params) -> Image:
    """Adds ice F to the image I: clip(a I + b F, 0, 255) on levels, a and b the weights.

    `texture` is float32 [H, W, 3], whole levels 0..255. Source: ImageNet-C, frost.
    """
    total = params["image_weight"] * color.to_levels(image) + params["frost_weight"] * params["texture"]
    return color.from_levels(color.clip(total, 0, 255))


def _weights(shape, severity, table):
    image_weight, frost_weight = lookup(_LEVELS, shape, table, severity)
    return {"image_weight": image_weight, "frost_weight": frost_weight}


def _texture(key, look, shape, scale):
    positions, shares = _positions(shape, scale)
    own = shape.tables["lattices"] if isinstance(shape, padded.Shape) else None
    x = frost_texture.texture(key, look, *positions, own)
    if shares is None:
        return x
    for axis, fraction in enumerate(shares):
        share = jnp.asarray(fraction, jnp.float32).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        before, after = (jax.lax.slice_in_dim(x, k, None, 2, axis) for k in (0, 1))
        x = before + share * (after - before)
    return jnp.round(x)


class Photographs:
    """The image files of a folder as textures, in the order of their names; FileNotFoundError without the folder or
    an image file.

    `folder` is the place where they were read, `digest` the sha256 of the sha256 of each file, in that order; names
    do not count; turned ones have another. Of a folder with ImageNet-C's five, only these are taken.
    """

    def __init__(self, path: str | os.PathLike[str], turn: bool = False):
        self.folder = pathlib.Path(path)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"expected a folder of frost textures, found no folder at {str(self.folder)!r}")
        visible = (file for file in self.folder.iterdir() if not file.name.startswith("."))
        named = sorted(file for file in visible if file.suffix.lower() in SUFFIXES and not file.is_dir())
        images = [file for file in named if not is_special(file)]
        warn_of_left_out(self.folder, collections.Counter([SPECIAL] * (len(named) - len(images))))
        if not images:
            raise FileNotFoundError(f"expected image files ({', '.join(SUFFIXES)}) in {str(self.folder)!r}, found none")
        digests = {file: files.describe_file(file)["sha256"] for file in images}
        by_digest = {digest: file for file, digest in digests.items()}
        self._files = [by_digest[digest] for digest in _ORIGINALS if digest in by_digest]
        if len(self._files) < len(_ORIGINALS):
            self._files = images
        elif unused := [file.name for file in images if file not in self._files]:
            _LOG.warning("%s holds ImageNet-C's five photographs; not drawn: %s", self.folder, ", ".join(unused))
        listed = [*(digests[file] for file in self._files), *(["turned"] if turn else [])]
        self.digest = files.digest_of("\n".join(listed))
        if self.digest == _OTHERS_DIGEST:
            _LOG.warning("%s holds %s", self.folder, _OTHERS_ARE)
        orientations = pictures.Orientations(turn)
        textures = [pictures.decode(file, file, lambda image: image, orientations) for file in self._files]
        orientations.warn(self.folder, "turn=True of use_photographs, or of the command,")
        self._resized = functools.lru_cache(maxsize=8)(  # each size of image has textures of its own
            lambda scale, sides: [_enlarged(_resize(texture, scale), sides) for texture in textures]
        )

    def crop(self, key: jax.Array, shape: Sequence[int], table: str) -> dict[str, jax.Array]:
        """Draws a file with equal probability, then the first row and the first column of its crop.

        Both are uniform over all places but the last, as in the original. Textures are resized by 0.2 (`cifar`) or
        0.3 (`tiny`) without smoothing. A texture smaller than the image, which the original refuses, is enlarged as in
        the package imagecorruptions: by 1.1 max(H / h, W / w), bicubic.

        Returns `texture`, float32 [H, W, 3], and `origin`, int32 [3]: file, first row and first column.
        """
        scaled = self._resized(TEXTURE_SCALE[table], tuple(shape[:2]))
        places = np.array([[max(t.shape[axis] - shape[axis], 1) for axis in (0, 1)] for t in scaled])
        file_key, row_key, column_key = jax.random.split(key, 3)
        index = jax.random.randint(file_key, (), 0, len(scaled))
        row = jax.random.randint(row_key, (), 0, jnp.asarray(places)[index, 0])
        column = jax.random.randint(column_key, (), 0, jnp.asarray(places)[index, 1])
        crop = jax.lax.dynamic_slice(_stack(scaled), (index, row, column, 0), (1, *shape))[0]
        return {"texture": crop.astype(jnp.float32), "origin": jnp.stack([index, row, column]).astype(jnp.int32)}


def use_photographs(path: str | os.PathLike[str], *, turn: bool = False) -> str:
    """Reads the frost textures in a folder, for this process.

    `corruptions.corrupt(key, images, "imagenet_c/frost", 3, photographs=use_photographs(path))` then draws from them.
    Needs Pillow.

    Args:
      path: "original" for the five photographs of ImageNet-C in an installed package, imagecorruptions-imaug,
        imagecorruptions or corrupt-tta (the code of the first and the last draws six); or a folder of images. Of a
        folder that holds these five, as the release does with a sixth, only they are drawn (frost1.png, frost2.png,
        frost3.png, frost4.jpg, frost5.jpg); of others every file, equally often.
      turn: turn the files of a folder by the orientation in their EXIF data; by default pixels stay as stored, with a warning.

    Returns:
      Their digest, the value of the option `photographs`; `ORIGINAL_PHOTOGRAPHS` for those five.

    Raises:
      FileNotFoundError: no such package or folder, or no image file in it.
      TypeError: no path.
      ValueError: the package holds other photographs, or `turn` with "original".
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"expected the path of a folder of photographs, or 'original', found {type(path).__name__}; save arrays as "
            "images: PIL.Image.fromarray(image).save(path)"
        )
    if turn and path == ORIGINAL:
        raise ValueError(
            "expected turn=True with a folder, found 'original', which is as ImageNet-C has it; leave turn out"
        )
    if path != ORIGINAL:
        photographs = Photographs(path, turn)
        return _USED.setdefault(photographs.digest, photographs).digest
    if ORIGINAL_PHOTOGRAPHS not in _USED:
        folders = [folder for name, below in _PACKAGES.items() if (folder := _installed(name, below)).is_dir()]
        if not folders:
            other = _installed(_OTHERS, "frost")
            also = f". {other} holds {_OTHERS_ARE}; name that folder to use them" if other.is_dir() else ""
            raise FileNotFoundError(
                "expected ImageNet-C's photographs of frost in the package imagecorruptions-imaug, found it not "
                f"installed: pip install imagecorruptions-imaug, or name a folder of frost1.png to frost5.jpg{also}"
            )
        found = list(map(Photographs, folders))
        original = next((one for one in found if one.digest == ORIGINAL_PHOTOGRAPHS), None)
        if original is None:
            raise ValueError(f"expected ImageNet-C's photographs in {found[0].folder}, found others")
        _USED[ORIGINAL_PHOTOGRAPHS] = original
    return ORIGINAL_PHOTOGRAPHS


def _installed(package: str, below: str) -> pathlib.Path:
    """Returns where a folder of a package would lie."""
    spec = importlib.util.find_spec(package)
    return pathlib.Path(spec.origin if spec and spec.origin else f"{package}/none").parent / below


def used_photographs() -> tuple[str, ...]:
    """Lists the digests of the photographs that were read in this process."""
    return tuple(_USED)


def find(digest: str) -> Photographs:
    """Gives the photographs of a digest, or of the word "original".

    Raises FileNotFoundError for "original" where the package that holds them is not installed, and ValueError for
    photographs that this process has not read.
    """
    if digest == ORIGINAL:
        digest = use_photographs(ORIGINAL)
    if digest not in _USED:
        expected = f"frost photographs of digest {str(digest)[:16]}"
        where = "FOLDER may be the word original where imagecorruptions-imaug is installed"
        hint = f"name it, corruptions.imagenet_c.use_photographs(FOLDER); {where}"
        raise MissingAssets("frost", expected, "them in no folder given here", hint)
    return _USED[digest]


def resize_taps(size: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Computes the two taps per output that resample an axis to `size` outputs, by `scale` <= 1, without smoothing.

    As `cv2.resize` with INTER_LINEAR, which the original calls: output o lies at (o + 1/2) / scale - 1/2, for scale
    1/5 at every fifth sample, so that it is plain decimation. It is (1 - fraction) x[first] + fraction x[first + 1].

    Returns (first, fraction): int [size] and float64 [size].
    """
    position = np.round((np.arange(size) + 0.5) / scale - 0.5, 9)
    first = np.floor(position).astype(int)
    return first, position - first


def _resize(texture, scale):
    """Resizes uint8 [H, W, 3] by `scale` with two taps and without smoothing, sides rounded."""
    if scale == 1:
        return texture
    x = texture.astype(np.float64)
    for axis in (0, 1):
        first, fraction = resize_taps(round(texture.shape[axis] * scale), scale)
        last = texture.shape[axis] - 1
        share = fraction.reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        before, after = (np.take(x, np.clip(first + k, 0, last), axis) for k in (0, 1))
        x = before + share * (after - before)
    return np.rint(x).astype(np.uint8)


def _enlarged(texture, sides):
    """Enlarges uint8 [h, w, 3] by 1.1 max(H / h, W / w), bicubic, where a side is below (H, W)."""
    factor = 1.1 * max(wanted / own for wanted, own in zip(sides, texture.shape))
    if factor <= 1.1:
        return texture
    from PIL import Image

    height, width = (math.ceil(factor * side) for side in texture.shape[:2])
    return np.asarray(Image.fromarray(texture).resize((width, height), Image.Resampling.BICUBIC))


def _stack(textures):
    """Stacks all textures in one array [number, H, W, 3], zeros beyond the smaller ones."""
    height, width = np.max([texture.shape[:2] for texture in textures], axis=0)
    return np.stack([np.pad(t, ((0, height - t.shape[0]), (0, width - t.shape[1]), (0, 0))) for t in textures])
