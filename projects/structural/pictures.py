"""Pictures to take styles from: image files of a folder, or procedural textures."""

import functools
import os
import pathlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.keys import seed_key
from corruptions.files import digest_of
from corruptions.primitives.fourier import brown, phase_shape, spectral_field
from corruptions.primitives.textures import plasma, voronoi_distance
from corruptions.reading import pictures
from corruptions.reading.folders import image_paths
from data import cache, tree

_LEAST_CELL = 3.0  # pixels
_PIECE = 512  # pictures of a folder that are in memory at once


def styles(folder: str, number: int, side: int, seed: int, turn: bool = False) -> tuple[np.ndarray, dict[str, Any]]:
    """Reads or draws pictures of styles: (uint8 [S, side, side, 3], a JSON-ready record of their origin).

    `folder` holds image files, at any depth; each gives its largest centre square. They are decoded once, into
    `data.cache`; smaller or damaged files are left out, as for Stylized-ImageNet; `turn` turns them by EXIF data. With "", `number` textures are drawn
    from `seed`. Raises FileNotFoundError without the folder; ValueError where no picture in it is large enough.
    """
    if not folder:
        drawn = np.asarray(_drawn(seed_key(seed), number, side))
        return drawn, {
            "styles": "procedural textures",
            "seed": seed,
            "pictures": len(drawn),
            "sha256": digest_of(drawn),
        }
    entry = _read(pathlib.Path(folder).expanduser(), side, turn)
    turned = {"turn": True} if turn else {}
    return entry.images, {"styles": folder, "pictures": len(entry.images), "sha256": entry.sha256["images"], **turned}


def _read(folder, side, turn) -> cache.Entry:
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of pictures of styles, found no folder {folder}")
    files = image_paths(folder)
    key = cache.fingerprint(str(folder.resolve()), side, tree.state(files, folder), *(["turned"] if turn else []))

    def pieces(notes: dict[str, Any]) -> Iterator[cache.Chunk]:
        count = 0
        for start in range(0, len(files), _PIECE):
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                squares = pool.map(lambda path: _square(path, side, orientations), files[start : start + _PIECE])
                large = [picture for picture in squares if picture is not None]
            if large:
                index = np.arange(count, count + len(large), dtype=np.int32)
                yield np.stack(large), np.zeros_like(index), index
            count += len(large)
        if not count:
            raise ValueError(f"{folder}: expected pictures of at least {side}x{side} pixels, found none")
        notes["orientations"] = sorted(map(str, orientations.found))

    orientations = pictures.Orientations(turn)
    entry = cache.cached(f"styles-{side}", key, pieces)
    orientations.found.update(entry.notes.get("orientations", ()))
    orientations.warn(folder, "--config.dataset.turn=True")
    return entry


def _square(path, side, orientations):
    def prepare(image):
        if min(image.size) < side:
            raise ValueError(f"expected sides of at least {side} pixels, found {image.size}")
        return pictures.centre(image, side, side)

    try:
        return pictures.decode(path, path, prepare, orientations)
    except ValueError:
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
        kinds = jnp.stack([(flow + 1) / 2, *between])
        return jnp.round(255 * jnp.clip(kinds[i % 3], 0, 1)).astype(jnp.uint8)

    return jax.lax.map(draw, jnp.arange(number))
