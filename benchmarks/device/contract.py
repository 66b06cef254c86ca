"""The pieces of a measurement, for each kind of device. A change of the contract gets another number."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import corruptions

CONTRACT = 1
# In the order of the measurement: share of the time that a part may take before the other parts ran.
PARTS = {"corruptions": 0.4, "training": 0.2, "evaluation": 0.15, "cifar10": 0.15, "pixels": 0.1}
LARGE_GPU = 28e9  # bytes that JAX may use of a GPU of 40 GB: by default three quarters
_NEEDS = {"corruptions": 5, "training": 40, "evaluation": 30, "cifar10": 60, "pixels": 5}


class Scale(NamedTuple):
    """Sizes of the works on a kind of device."""

    corruptions: tuple[tuple[int, str, int, tuple[str, ...]], ...]  # (side, dtype, batch, names), severities mixed
    training: tuple[tuple[str, int, int, int], ...]  # (network, side, batch, steps in a call)
    several: tuple[str, int, int]  # (network, side, batch of each) of several models at once
    answers: tuple[str, int, int]  # (network, side, batch) of evaluation
    features: tuple[str, int, int, int]  # (network, side, images, transforms in a call) of MSD
    each: tuple[int, tuple[str, ...]]  # (images of different sizes, names) of `corrupt_each`
    cifar10: tuple[str, int]  # (variant of configs/fast_cifar10.py, seeds)
    dtype: str  # of the networks' computation
    # Parts whose time to compile is a result, which therefore do without JAX's cache of programs on disk.
    compiled_anew: tuple[str, ...] = ("corruptions", "training", "evaluation")
    needs: Mapping[str, float] = _NEEDS  # {part: seconds that must be left to begin one of its pieces}
    reduced: tuple[str, ...] = ()  # differences from the contract for accelerators, a sentence each


def scale(kind: str, memory: float = 0) -> Scale:
    """Returns the sizes for `accelerator`, `cpu`, or `smoke`, which shows in seconds that the command runs.

    `memory` is the number of bytes that JAX may use on an accelerator, 0 where it does not tell.
    """
    published = corruptions.names("imagenet_c")
    every = tuple(dict.fromkeys((*published, *corruptions.names())))
    each = "gaussian_noise", "motion_blur", "elastic_transform", "jpeg_compression"
    each = 200, tuple(f"imagenet_c/{name}" for name in each)
    batch = 256 if memory >= LARGE_GPU else 128
    if kind == "accelerator":
        return Scale(
            corruptions=((224, "uint8", batch, every), (32, "uint8", 1024, every), (256, "float32", 32, every)),
            training=(
                *(("cifar_resnet18", 32, 1024, 8), ("resnet50", 224, batch, 2)),
                *(("wrn_40_2", 32, 1024, 8), ("small_resnet", 32, 1024, 8), ("resnet18", 224, batch, 4)),
            ),
            several=("cifar_resnet18", 32, 256),
            answers=("resnet50", 224, batch),
            features=("wrn_40_2", 32, 100, 64),
            each=each,
            cifar10=("gpu", 20),
            dtype="bfloat16",
        )
    if kind == "cpu":
        return Scale(
            corruptions=((224, "uint8", 16, every), (32, "uint8", 256, published), (256, "float32", 8, published)),
            training=(("small_resnet", 32, 128, 4), ("cifar_resnet18", 32, 32, 1), ("resnet50", 224, 4, 1)),
            several=("small_resnet", 32, 128),
            answers=("resnet50", 224, 4),
            features=("small_resnet", 32, 100, 16),
            each=each,
            cifar10=("cpu", 1),
            dtype="float32",
            reduced=(
                "corruptions in batches of 16 (224), 256 (32) and 8 (256, float32), at 32 and 256 ImageNet-C's 15 alone",
                "networks in float32, in batches of 128 (small_resnet), 32 (cifar_resnet18) and 4 (resnet50)",
                "MSD features of small_resnet for wrn_40_2",
                "CIFAR-10 by the variant `cpu` of configs/fast_cifar10.py: a small network, 4 epochs, one seed",
            ),
        )
    return Scale(
        corruptions=((16, "uint8", 4, ("noc/hue", "imagenet_c/contrast")), (16, "float32", 2, ("noc/hue",))),
        training=(("small_resnet", 16, 8, 1),),
        several=("small_resnet", 16, 4),
        answers=("small_resnet", 16, 4),
        features=("small_resnet", 16, 4, 2),
        each=(3, ("imagenet_c/contrast",)),
        cifar10=("cpu", 0),
        dtype="float32",
        compiled_anew=(),
        needs=dict.fromkeys(PARTS, 0),
        reduced=("everything: this shows that the command runs",),
    )


def pieces(sizes: Scale, compared: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Lists the pieces in the order of the measurement, the corruptions `compared` by their pixels at the end.

    {part/name: {"work": name of a function of works.py, and its arguments}}.
    """
    found, dtype = {}, sizes.dtype
    for side, kind, batch, names in sizes.corruptions:
        for name in names:
            settings = dict(work="corruption", name=name, side=side, batch=batch, dtype=kind)
            found[f"corruptions/{side}_{kind}/{name}"] = settings
    for network, side, batch, steps in sizes.training:
        settings = dict(work="training", network=network, side=side, batch=batch, steps=steps, dtype=dtype)
        found[f"training/{network}:{side}"] = settings | {"corruption": ""}
        found[f"training/{network}:{side}:corrupted"] = settings | {"corruption": "imagenet_c/zoom_blur"}
    network, side, batch, steps = sizes.training[0]
    settings = dict(work="loop", network=network, side=side, batch=batch, steps=steps, dtype=dtype)
    found[f"training/{network}:{side}:loop"] = settings
    network, side, batch = sizes.several
    settings = dict(work="several_models", network=network, side=side, batch=batch, dtype=dtype)
    found[f"training/{network}:{side}:several"] = settings
    network, side, batch = sizes.answers
    settings = dict(work="answers", network=network, side=side, batch=batch, dtype=dtype)
    found[f"evaluation/{network}:{side}:corrupted"] = settings | {"corruption": "imagenet_c/gaussian_noise"}
    found[f"evaluation/{network}:{side}"] = settings | {"corruption": ""}
    network, side, images, batch = sizes.features
    settings = dict(work="features", network=network, side=side, images=images, batch=batch, dtype=dtype)
    found[f"evaluation/msd:{network}:{side}"] = settings
    for name in sizes.each[1]:
        found[f"evaluation/corrupt_each:{name}"] = dict(work="many_sizes", name=name, number=sizes.each[0])
    for seed in range(sizes.cifar10[1]):
        found[f"cifar10/{seed}"] = dict(work="cifar10", variant=sizes.cifar10[0], seed=seed)
    return found | {f"pixels/{name}": dict(work="pixels", name=name) for name in compared}
