#!/usr/bin/env bash
# Guess: keras.layers.RandomGaussianBlur takes a sigma in pixels, draws it for each image, blurs
#        both axes alike, and leaves a flat picture flat.
# Seen:  sigma must have an end in [0, 1] (sigma=2 is a ValueError, (.5, 4) is taken); one sigma
#        serves the whole batch; height and width have different ones; the border is padded with
#        zeros (a flat 200 is 140 at the edge for sigma 1).
# Hurts: as a blur augmentation it adds streaks of a direction and a dark frame, the same for all
#        images of a batch.
# Do:    keras.ops.image.gaussian_blur of a padded picture, with a sigma of your own for each image.
# With:  keras 3.15.1 with its JAX backend, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'keras==3.15.1' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np


def blurred(images, sigma):
    layer = keras.layers.RandomGaussianBlur(factor=(1.0, 1.0), kernel_size=21, sigma=sigma, seed=3)
    return np.asarray(layer(images, training=True))[..., 0]


points = np.zeros((4, 41, 41, 1), np.float32)
points[:, 20, 20] = 255
at = np.arange(41) - 20
images = blurred(points, (0.5, 4.0))
deviations = [[np.sqrt((i.sum(axis) * at**2).sum() / i.sum()) for axis in (1, 0)] for i in images]
print("deviations down and across of four images, sigma=(.5, 4):", np.round(deviations, 2).tolist())
assert np.ptp(deviations, axis=0).max() < 1e-4 and abs(deviations[0][0] - deviations[0][1]) > 0.5

flat = blurred(np.full((1, 41, 41, 1), 200, np.float32), (1.0, 1.0))[0]
print("a flat 200, sigma 1: edge", flat[20, :4].round(1), "corner", flat[0, 0].round(1), "inside", flat[20, 20].round(1))
assert abs(flat[20, 0] - 139.9) < 0.5 and abs(flat[20, 20] - 200) < 0.01
try:
    keras.layers.RandomGaussianBlur(sigma=2.0)
except ValueError as error:
    print("sigma=2:", str(error)[:110])
else:
    raise AssertionError("sigma=2 is taken")
EOF
venv/bin/python check.py
