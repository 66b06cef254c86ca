"""Pictures to take styles from: those of a folder, or procedural textures."""

import functools
import hashlib
import os
import pathlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.keys import seed_key
from corruptions.primitives.fourier import brown, phase_shape, spectral_field
from corruptions.primitives.textures import plasma, voronoi_distance
from corruptions.write.sources import SUFFIXES
from data import decode

_LEAST_CELL = 3.0  # pixels
_MOST = 10_000  # pictures: all are in memory at once, and every program holds the statistics of each


def styles(folder: str, number: int, side: int, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Reads or draws pictures of styles.

    Args:
      folder: folder of image files, at any depth; each gives its largest centre square. "" draws textures.
      number: number of textures.
      side: side of the pictures in pixels; smaller or damaged files are left out, as for Stylized-ImageNet.
      seed: seed of the textures.

    Returns:
      (uint8 [S, side, side, 3], a JSON-ready record of their origin).

    Raises:
      FileNotFoundError: no such folder, or no picture in it that is large enough.
      ValueError: more files than are held in memory.
    """
    if not folder:
        pictures = np.asarray(_drawn(seed_key(seed), number, side))
        kind = {"styles": "procedural textures", "seed": seed}
    else:
        pictures, kind = _read(pathlib.Path(folder).expanduser(), side), {"styles": folder}
    digest = hashlib.sha256(np.ascontiguousarray(pictures).data).hexdigest()
    return pictures, kind | {"pictures": len(pictures), "sha256": digest}


def _read(folder, side):
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of pictures of styles, found no folder {folder}")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if len(files) > _MOST:
        raise ValueError(f"{folder}: expected at most {_MOST:,} pictures of styles, found {len(files):,}; name a part")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pictures = [picture for picture in pool.map(lambda path: _square(path, side), files) if picture is not None]
    if not pictures:
        raise FileNotFoundError(f"{folder}: expected pictures of at least {side}x{side} pixels, found none")
    return np.stack(pictures)


def _square(path, side):
    from PIL import Image

    try:
        with Image.open(path) as image:
            return decode.square(image, side, side) if min(image.size) >= side else None
    except (*decode.DAMAGED, Image.DecompressionBombError):
        return None


@functools.partial(jax.jit, static_argnames=("number", "side"))
def _drawn(key, number, side):
    """Draws uint8 [number, side, side, 3]: plasma, cells and clouds in turn, the latter two between random colours."""

    def draw(i):
        draws = jax.random.split(jax.random.fold_in(key, i), 4)
        scale = side * jax.random.uniform(draws[0], (), minval=0.03, maxval=0.25)
        free = jax.random.uniform(draws[1])
        shape = (side, side, 3)
        flow = plasma(shape, 100 * free, jnp.int32(6), jnp.float32(0.5), scale)
        cells = voronoi_distance(shape, 1 + 50 * free, jnp.maximum(scale, _LEAST_CELL), _LEAST_CELL)
        phases = jax.random.uniform(draws[2], phase_shape(shape), maxval=2 * jnp.pi)
        clouds = spectral_field(phases, shape, brown)
        clouds = jax.nn.sigmoid(2 * (clouds - clouds.mean()))
        colors = jax.random.uniform(draws[3], (2, 1, 1, 3))
        between = [colors[0] + field[..., None] * (colors[1] - colors[0]) for field in (cells, clouds)]
        pictures = jnp.stack([(flow + 1) / 2, *between])
        return jnp.round(255 * jnp.clip(pictures[i % 3], 0, 1)).astype(jnp.uint8)

    return jax.lax.map(draw, jnp.arange(number))
