"""NumPy definitions that are measured beside ours: (uint8 image, our draws, severity) -> image.

Those of the tests where they are vectorised; sensors with NumPy's own draws, as the released code has, and lens blurs by
NumPy's Fourier transform.
"""

from collections.abc import Callable

import numpy as np

from corruptions.laion_c import banks
from tests.reference import camera, laion_c, libero
from tests.reference.cbar import blur_definitions, definitions, warp_definitions
from tests.reference.imagenet_c import blur, snow

_CBAR = (definitions, blur_definitions, warp_definitions)


def definition(name: str) -> Callable:
    """Finds the definition of a member of C-bar, LAION-C, `optics`, `optics_release` or `camera` by its qualified name.

    Those of LAION-C take tiles from the bank that ours take them from, which was read last.

    Raises:
      ValueError: a corruption without such a definition, or one of LAION-C before a bank was read.
    """
    benchmark, _, name = name.rpartition("/")
    if benchmark == "laion_c":
        return laion_c.definition(name, banks.find(banks.default()).images)
    if benchmark.startswith("optics"):
        return lambda image, params, severity: _correlated(image / 255, params["kernel"], bool(params["black"]))
    if benchmark == "camera":
        if name.startswith("libero_"):
            own = name.removeprefix("libero_")
            return lambda image, params, severity: libero.reference(own, image, severity, params)
        return _CAMERA[name]
    found = next((getattr(m, name) for m in _CBAR if hasattr(m, name)), None)
    if found is None or benchmark != "cbar":
        raise ValueError(f"expected a member of cbar, laion_c, optics, optics_release or camera, found {name!r}")
    return lambda image, params, severity: found(image, params)


def _correlated(x, kernel, black):
    reach = kernel.shape[-1] // 2
    padded = np.pad(x, ((reach, reach), (reach, reach), (0, 0)), mode="constant" if black else "reflect")
    shape, kernels = padded.shape[:2], np.atleast_3d(np.moveaxis(kernel, 0, -1) if kernel.ndim == 3 else kernel)
    spectrum = np.fft.rfft2(padded, axes=(0, 1)) * np.conj(np.fft.rfft2(kernels, shape, axes=(0, 1)))
    blurred = np.fft.irfft2(spectrum, shape, axes=(0, 1))[: x.shape[0], : x.shape[1]]
    return (255 * np.clip(blurred, 0, 1)).astype(np.uint8)


def _exposed(light, photons, sigma):
    counted = np.minimum(np.random.poisson(photons * light) / photons, 1)
    return (255 * np.clip(counted + sigma * np.random.standard_normal(light.shape), 0, 1)).astype(np.uint8)


def _dark(image, params, severity):
    scale, photons, sigma = camera.DARK[severity - 1]
    x = image / 255
    return _exposed(scale * ((x - x.min()) / np.ptp(x)) ** 2, photons, sigma)


def _elastic_field(image, params, severity):
    height, width, _ = image.shape
    alpha = (12.5, 16.25, 21.25, 25, 30)[severity - 1]
    dx, dy = (camera.elastic_noise(np.random.uniform(-1, 1, (height, width)), alpha) for _ in range(2))
    return (255 * camera.displaced(image / 255, dx, dy)).astype(np.uint8)


def _snow_bgr(image, params, severity):
    mean, deviation, factor, threshold, radius, sigma, mix = snow.LEVELS[224][severity - 1]
    flakes = snow.reference_flakes(np.random.normal(mean, deviation, image.shape[:2]), factor, threshold)
    streaks = blur.imagemagick(flakes, radius, sigma, np.random.uniform(-135, -45))
    return snow.reference_composite(image[..., ::-1], streaks, mix)[..., ::-1]


_CAMERA = {
    "dark": _dark,
    "iso_noise": lambda image, params, severity: _exposed(image / 255, 25, camera.ISO[severity - 1]),
    "color_quant": lambda image, params, severity: image & np.uint8(256 - 2 ** (2 + severity)),
    "elastic_field": _elastic_field,
    "snow_bgr": _snow_bgr,
}
