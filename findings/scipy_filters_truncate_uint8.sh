#!/usr/bin/env bash
# Guess: scipy.ndimage.gaussian_filter of a uint8 picture is the filter of the floats, rounded.
# Seen:  the result is truncated, after each axis: a picture loses one level of its mean
#        (uniform_filter .8, convolve .5). zoom, rotate and map_coordinates of the same module
#        round.
# Hurts: each blur darkens; a "blur of severity 0" is not the identity of the mean, small
#        differences between corruptions are differences of brightness, and ports that round are off
#        by a level in most pixels.
# Do:    filter floats, then round.
# With:  scipy 1.17.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'scipy==1.17.1' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
from scipy import ndimage

picture = np.random.default_rng(0).integers(0, 256, (256, 256), dtype=np.uint8)
calls = {
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 1.0),
    "uniform_filter": lambda x: ndimage.uniform_filter(x, 5),
    "convolve": lambda x: ndimage.convolve(x, np.full((3, 3), 1 / 9)),
    "zoom": lambda x: ndimage.zoom(x, 1.5, order=1),
    "rotate": lambda x: ndimage.rotate(x, 10, reshape=False, order=1, mode="mirror"),
}
lost = {}
for name, call in calls.items():
    floats, levels = call(picture.astype(np.float64)), call(picture).astype(np.float64)
    lost[name] = floats.mean() - levels.mean()
    print(f"{name:16} mean of floats less mean of uint8: {lost[name]:.3f}; largest {np.abs(floats - levels).max():.2f}")
assert abs(lost["gaussian_filter"] - 1.0) < 0.05 and abs(lost["uniform_filter"] - 0.8) < 0.1
assert abs(lost["convolve"] - 0.5) < 0.1
assert abs(lost["zoom"]) < 0.02 and abs(lost["rotate"]) < 0.02
EOF
venv/bin/python check.py
