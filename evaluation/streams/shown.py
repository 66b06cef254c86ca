"""The pixels of a stream, drawn on the device batch by batch.

An image keeps its identity: under one corruption it has the pixels that eval.py shows (`evaluation.shown.Shown`), whatever
the order, so draws depend only on (seed, corruption, severity, index). The second of two corruptions has its own key.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import corruptions
from corruptions.core.keys import image_index, named_key
from corruptions.core.origin import Probe, probe_shown
from data import Split
from evaluation.streams.orders import Segment, Stream
from runtime.distributed import fetch
from training import augmentation

_PIECE = 100  # images that are corrupted at once: one shape, one program for each corruption


def check(stream: Stream, split: Split) -> None:
    """Refuses (ValueError) a stream of other images than the split's."""
    if len(stream.image) and not 0 <= stream.image.min() <= stream.image.max() < len(split):
        raise ValueError(
            f"expected a stream of the {len(split)} test images at hand, found one that shows image {stream.image.max()}; "
            "a shorter stream takes --images up to their number"
        )


def pieces(
    split: Split, stream: Stream, images: int, seed: int, mesh: Mesh, options: Mapping[str, Mapping[str, Any]]
) -> Iterator[jax.Array]:
    """Yields the images of a stream in order, uint8 [n, H, W, 3], `images` at a time and the rest at the end."""
    for start in range(0, len(stream), images):
        segment, image = stream.segment[start : start + images], stream.image[start : start + images]
        shown = jnp.zeros((len(image), *split.images.shape[1:]), jnp.uint8)
        for number in np.unique(segment):
            places = np.flatnonzero(segment == number)
            for begin in range(0, len(places), _PIECE):
                some = places[begin : begin + _PIECE]
                some = np.pad(some, (0, _PIECE - len(some)), mode="edge")  # the last image again, in the same place
                rows = image[some]
                pixels, index = jnp.asarray(split.images[rows]), np.asarray(split.index)[rows]
                shown = _placed(shown, corrupted(pixels, index, stream.segments[number], seed, mesh, options), some)
        yield shown


def corrupted(
    images: jax.Array,
    index: np.ndarray,
    segment: Segment,
    seed: int,
    mesh: Mesh,
    options: Mapping[str, Mapping[str, Any]],
) -> jax.Array:
    """Corrupts images uint8 [N, H, W, 3] by the parts of a segment, one after the other, rounded to uint8 between."""
    for place, (name, severity) in enumerate(segment.parts):
        given = dict(options.get(name, {}))
        if severity != int(severity) and "interpolate" in corruptions.get(name).options:
            given["interpolate"] = True  # between two levels; a corruption with a range takes fractions as they are
        key = named_key(seed, name)
        key = jax.random.fold_in(key, place) if place else key
        level = severity if severity != int(severity) else int(severity)
        images = augmentation.corrupt_on_mesh(mesh, key, images, name, level, image_index(index, len(index)), given)
    return images


def probe(
    split: Split,
    name: str,
    severity: float,
    stored: Probe | None,
    seed: int,
    mesh: Mesh,
    options: Mapping[str, Mapping[str, Any]],
) -> Probe:
    """Corrupts some images as `pieces` does, in the same program, and returns their probe, as a stored one if given."""

    def show(places):
        rows = np.pad(places, (0, _PIECE - len(places)), mode="edge")
        pixels, index = jnp.asarray(split.images[rows]), np.asarray(split.index)[rows]
        return fetch(corrupted(pixels, index, Segment(((name, severity),)), seed, mesh, options))[: len(places)]

    return probe_shown(show, len(split), severity, stored)


@functools.partial(jax.jit, donate_argnums=0)
def _placed(shown, images, places):
    return shown.at[places].set(images)
