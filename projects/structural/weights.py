"""Files of weights of style transfer: the network, and the statistics of each style.

    encoder/..., decoder/...         arrays of `projects.structural.adain.StyleTransfer`
    styles/mean, styles/deviation    float32 [S, C], statistics of relu4_1 of each style
    styles/correction                int, correction of the variance of a content (`adain.Reading`)

Compiled programs hold the weights, so a process uses one file. Settings and results name it by a digest of its arrays,
wherever it lies.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from projects.structural import adain
from runtime import artifacts, files
from training.checkpoints import digest as digest_of

NAME = "structural/style_transfer"
_STYLES = ("mean", "deviation", "correction")
_used: list["Style"] = []


class Style(NamedTuple):
    """The content of a file."""

    network: Mapping[str, np.ndarray]  # as `adain.arrays_of` lists it
    mean: np.ndarray  # means of each style's map, float32 [S, C]
    deviation: np.ndarray  # standard deviations of each style's map, float32 [S, C]
    correction: int  # correction in the variance of a content
    digest: str  # digest of all arrays


def write(
    path: str | os.PathLike,
    network: adain.StyleTransfer,
    mean: np.ndarray,
    deviation: np.ndarray,
    correction: int,
    made_from: Mapping[str, Any],
) -> None:
    """Writes a file, whole or not at all; `made_from` is a JSON-ready record of its origin."""
    arrays = {name: np.asarray(array) for name, array in adain.arrays_of(network).items()}
    styles = zip(_STYLES, (mean, deviation, np.asarray(correction)), strict=True)
    artifacts.write(path, arrays | {f"styles/{name}": array for name, array in styles}, made_from)


def read(path: str | os.PathLike) -> Style:
    """Reads a file; raises FileNotFoundError, or DamagedFileError where it holds something else."""
    arrays, _ = artifacts.read(path)
    digest = digest_of(arrays)
    try:
        mean, deviation, correction = (arrays.pop(f"styles/{name}") for name in _STYLES)
        network = adain.from_arrays(arrays)
        expected = (len(mean), network.encoder.stages[-1][0].conv.bias.size)
        if not len(mean) or mean.shape != expected or deviation.shape != expected:
            raise ValueError(f"statistics of styles of shapes {mean.shape} and {deviation.shape}")
        for name, array in (arrays | {"styles/mean": mean, "styles/deviation": deviation}).items():
            if array.dtype.kind != "f" or not np.isfinite(array).all():
                raise ValueError(f"NaN, infinity or {array.dtype} in {name}")
        if correction.shape or correction.dtype.kind not in "iu" or correction not in (0, 1) or deviation.min() < 0:
            raise ValueError("a correction of styles that is not 0 or 1, or negative deviations of styles")
    except (KeyError, ValueError, TypeError) as error:
        raise files.DamagedFileError(
            f"{path}: expected weights of style transfer, a file of projects.structural.train_style_decoder, found others ({error})"
        ) from None
    return Style(arrays, mean, deviation, int(correction), digest)


def use(path: str | os.PathLike) -> str:
    """Reads the weights that `structural/style_transfer` takes in this process; returns the digest, its option `style`.

    Raises as `read`; ValueError where this process uses others.
    """
    style = read(path)
    if _used and _used[0].digest != style.digest:
        raise ValueError(
            f"expected the weights {_used[0].digest[:16]} that this process uses, found {style.digest[:16]} in {path}; "
            "others need a process of their own"
        )
    _used[:] = [style]
    return style.digest


def in_use(digest: str | None = None) -> Style:
    """Returns the weights that this process uses; raises ValueError where it uses none, or weights of another digest."""
    if not _used:
        raise ValueError(
            f"expected weights for {NAME}, found none; name a file of them, --config.style=FILE of commands, "
            "--style=FILE of corruptions.write, projects.structural.weights.use(FILE) in Python. "
            "`python -m projects.structural.train_style_decoder` makes one of the public weights, or trains one"
        )
    if digest not in (None, _used[0].digest):
        raise ValueError(f"expected the weights {digest[:16]} for {NAME}, found {_used[0].digest[:16]} in use")
    return _used[0]
