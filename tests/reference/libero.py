"""Sensor noise of LIBERO-Plus: ImageNet-C's functions in float64 with the rows of the released code, levels 1 to 10."""

import numpy as np

from tests.reference.imagenet_c import blur, fog

# Motion blur: radius, standard deviation. Zoom blur: bound and step of the factors. Fog: strength, decay. Glass blur:
# standard deviation, reach, passes.
MOTION = ((5, 2), (8, 3), (10, 4), (12, 5), (15, 6), (18, 8), (20, 10), (25, 12), (30, 15), (35, 20))
ENDS = (1.11, 1.16, 1.21, 1.26, 1.31, 1.36, 1.41, 1.46, 1.51, 1.56)
STEPS = (0.01, 0.01, 0.02, 0.02, 0.03) * 2
FOG = ((0.5, 3), (1, 2.8), (1.5, 2.5), (2, 2.2), (2.5, 2), (3, 1.8), (3.5, 1.6), (4, 1.5), (4.5, 1.4), (5, 1.3))
GLASS = (
    *((0.5, 1, 3), (0.7, 1, 3), (0.9, 2, 3), (1, 2, 2), (1.1, 3, 2)),
    *((1.3, 3, 2), (1.5, 4, 2), (1.8, 4, 2), (2.2, 5, 1), (2.5, 5, 1)),
)


def reference(name, image, level, params):
    """Levels, float64, of the function `name` on an image uint8 [H, W, 3] up to 256 pixels, given our draws."""
    k = level - 1
    if name == "motion_blur":
        return blur.imagemagick(image.astype(float), *MOTION[k], float(params["angle"]))
    if name == "gaussian_blur":
        return 255 * blur.smoothed(image / 255, level)
    if name == "zoom_blur":
        factors = np.arange(1, ENDS[k], STEPS[k])
        return 255 * blur.zoomed(image / 255, (factors[-1], STEPS[k], len(factors)))
    if name == "fog":
        return fog.reference_fog(image, *FOG[k], 256, params["displacements"])
    return blur.glass(image, GLASS[k], params["shifts"])
