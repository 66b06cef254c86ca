"""Calls of the public API that a type checker must accept or refuse; `make lint` runs mypy over them.

Each call in `refused` is wrong in one way and says so to mypy. Where an annotation is lost, mypy no
longer sees the mistake and reports the comment as unused.
"""

import jax
import numpy as np
from PIL import Image

import corruptions


def accepted(key: jax.Array, images: np.ndarray, image: jax.Array) -> None:
    batch: jax.Array = corruptions.corrupt(key, images, "imagenet_c/fog", severity=3, table="cifar")
    corruptions.corrupt(key, batch, corruptions.noc.border, np.ones(2), index=np.arange(2), validate=False)
    fog: corruptions.Corruption = corruptions.get("fog")
    corrupted: jax.Array = fog(key, image, 3, interpolate=True)
    fog.apply(corrupted, corruptions.imagenet_c.fog.sample(key, image.shape))
    corruptions.cbar.ripple(key, image, severity=np.float32(2.5), interpolate=True)
    alone: np.ndarray = corruptions.corrupt_image(Image.new("RGB", (32, 32)), "fog", 3, seed=7, table="cifar")
    corruptions.corrupt_image(alone.tolist(), corruptions.imagenet_c.fog, None)
    corruptions.corrupt_image(corrupted, "fog", np.float32(2))
    augmented: jax.Array = corruptions.augment.augment(key, images, "augmix", dtype="float32")
    stored: jax.Array = corruptions.imagenet_c.store(corrupted)
    table: str = corruptions.imagenet_c.table_for(stored.shape) + corruptions.cbar.table_for((32, 32, 3))
    ranges: dict[str, tuple[float, float]] = corruptions.noc.ranges((224, 224))
    names: tuple[str, ...] = (*corruptions.names("imagenet_noc"), *corruptions.benchmarks(), table, *ranges)
    where: jax.Array = corruptions.coordinates(key, jax.ShapeDtypeStruct((2, 32, 32, 3), np.uint8), "noc/shear", 0.5)
    moved: jax.Array = corruptions.move_masks(images[..., 0], where, fill=255)
    clips: jax.Array = corruptions.corrupt(key, images[:, None], "fog", axis="time", fresh_noise=True)
    corruptions.move_boxes(moved, fog.coordinates(clips.shape[2:], {}))
    levels: tuple[int, ...] | None = corruptions.selected_levels(names[0], "imagenet_noc")
    assert levels is None or (isinstance(fog.scale, corruptions.Levels) and augmented.size)
    digest: str = corruptions.imagenet_c.use_photographs("textures")
    corruptions.imagenet_c.frost.sample(key, (32, 32, 3), None, photographs=digest)


def refused(key: jax.Array, images: jax.Array) -> None:
    corruptions.corrupt(0, images, "fog")  # type: ignore[arg-type]
    corruptions.corupt(key, images, "fog")  # type: ignore[attr-defined]
    corruptions.augment.augment(key, images, 3)  # type: ignore[arg-type]
    corruptions.corrupt(key, [images], "fog")  # type: ignore[arg-type]
    corruptions.corrupt(key, images, 3)  # type: ignore[arg-type]
    corruptions.corrupt(key, images, "fog", "severe")  # type: ignore[arg-type]
    corruptions.corrupt(key, images, "fog", axis="frames")  # type: ignore[arg-type]
    corruptions.coordinates(key, 32, "noc/shear")  # type: ignore[arg-type]
    corruptions.corrupt(key, images, "fog", 3, images)  # type: ignore[call-arg]
    corruptions.imagenet_c.fog(key)  # type: ignore[call-arg]
    corruptions.imagenet_c.store("image.png")  # type: ignore[arg-type]
    corruptions.imagenet_c.table_for(32)  # type: ignore[arg-type]
    corruptions.noc.ranges((32, 32))["border"] + 1  # type: ignore[operator]
    corruptions.names("imagenet_noc").sort()  # type: ignore[attr-defined]
    corruptions.severities(None)  # type: ignore[arg-type]
    corruptions.get("fog").severity  # type: ignore[attr-defined]  # noqa: B018
    corruptions.corrupt_image("image.png", "fog")  # type: ignore[arg-type]
    corruptions.corrupt_image(images, "fog", "severe")  # type: ignore[arg-type]
    corruptions.corrupt_image(images, "fog", 3, key)  # type: ignore[arg-type]
    corruptions.corrupt_image(images, "fog").block_until_ready()  # type: ignore[attr-defined]
