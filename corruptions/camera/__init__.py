"""Cameras of robots and cars: RoboDepth, RoboBEV and LIBERO-Plus.

L. Kong et al., "RoboDepth: Robust Out-of-Distribution Depth Estimation under Corruptions", NeurIPS 2023, arXiv:2310.15171;
S. Xie et al., "RoboBEV", arXiv:2405.17426; "LIBERO-Plus", arXiv:2510.13626. Most of their corruptions are ImageNet-C's
with the parameters for 224x224 at any size: `robodepth/fog` is `imagenet_c/fog` with table="imagenet". Their images are
not equal to the released ones, whose draws cannot be repeated.
"""

import dataclasses

from corruptions import imagenet_c
from corruptions.camera import libero
from corruptions.camera.sensors import camera_crash, color_quant, dark, elastic_field, frame_lost, iso_noise
from corruptions.core.corruption import Image, Params
from corruptions.core.registry import register, register_benchmark


def _snow_bgr(image: Image, params: Params) -> Image:
    """Does to an RGB image what `imagenet_c/snow` does with red and blue exchanged, and exchanges them back.

    RoboBEV's arrays are BGR, and its snow takes them for RGB: the grey is .299 B + .587 G + .114 R. Of BGR arrays take
    `imagenet_c/snow` itself. No other member depends on the order of the channels. Source: RoboBEV, Snow.
    """
    return imagenet_c.snow.applier(image[..., ::-1], params)[..., ::-1]


snow_bgr = register(dataclasses.replace(imagenet_c.snow, name="snow_bgr", benchmark="camera", applier=_snow_bgr))

_NYU = (
    *("imagenet_c/brightness", "camera/dark", "imagenet_c/contrast"),
    *("imagenet_c/defocus_blur", "imagenet_c/glass_blur", "imagenet_c/motion_blur", "imagenet_c/zoom_blur"),
    *("camera/elastic_field", "camera/color_quant"),
    *("imagenet_c/gaussian_noise", "imagenet_c/impulse_noise", "imagenet_c/shot_noise", "camera/iso_noise"),
    *("imagenet_c/pixelate", "imagenet_c/jpeg_compression"),
)
_WEATHER = ("imagenet_c/fog", "imagenet_c/frost", "imagenet_c/snow")
_TABLE = {"table": "imagenet"}
_LEVELS = {
    "camera/color_quant": (2, 3, 4),
    "imagenet_c/motion_blur": (2, 4, 5),
    "imagenet_c/brightness": (2, 4, 5),
    "camera/dark": (3, 4, 5),
    "imagenet_c/fog": (2, 4, 5),
    "camera/snow_bgr": (1, 2, 3),
}

register_benchmark("robodepth", (*_NYU[:2], *_WEATHER, *_NYU[2:]), options=_TABLE)
register_benchmark("robodepth_nyu", [name.replace("imagenet_c", "robodepth") for name in _NYU])
register_benchmark("robobev", _LEVELS, levels=_LEVELS, options=_TABLE)
register_benchmark("libero_plus_noise", [corruption.qualified_name for corruption in libero.MEMBERS])

__all__ = ["camera_crash", "color_quant", "dark", "elastic_field", "frame_lost", "iso_noise", "snow_bgr"]
