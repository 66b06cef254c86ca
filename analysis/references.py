"""Benchmarks that papers use, and AlexNet's published errors, which normalise corruption error (CE)."""

import json
import pathlib

LEVELS = (1, 2, 3, 4, 5)
IMAGENET_C = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate",
    "jpeg_compression",
)  # fmt: skip
IMAGENET_C_EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
IMAGENET_NOC = (
    "quantization", "blur", "vertical_artifacts", "rain", "border", "shear", "brightness", "hue",
)  # fmt: skip

# The file names its sources. It belongs to `corruptions.ce_table`; it is read here because to import the library would
# import JAX.
_FILE = pathlib.Path(__file__).parents[1] / "corruptions" / "scoring" / "alexnet.json"
_ALEXNET = json.loads(_FILE.read_text(encoding="utf-8"))
ALEXNET_IMAGENET_C, ALEXNET_NOC = (
    {name: tuple(errors) for name, errors in _ALEXNET[prefix]["errors"].items()} for prefix in ("imagenet_c", "noc")
)
ALEXNET_IMAGENET_C_CLEAN, ALEXNET_NOC_CLEAN = _ALEXNET["imagenet_c"]["clean"], _ALEXNET["noc"]["clean"]

BENCHMARKS = {
    "imagenet_c": IMAGENET_C,
    "imagenet_c_extra": IMAGENET_C_EXTRA,
    "imagenet_noc": IMAGENET_NOC,
}
PREFIX = {"imagenet_c": "imagenet_c/", "imagenet_c_extra": "imagenet_c/", "imagenet_noc": "noc/"}


def qualified_members(benchmark: str) -> tuple[str, ...]:
    """Lists the qualified names of a benchmark's corruptions, in published order."""
    return tuple(PREFIX[benchmark] + name for name in BENCHMARKS[benchmark])
