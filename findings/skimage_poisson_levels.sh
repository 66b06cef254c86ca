#!/usr/bin/env bash
# Guess: random_noise(x, mode="poisson") is the noise of counted photons, as strong for a picture
#        in uint8 as for its floats.
# Seen:  the number of photons at white is the number of different values in the picture, rounded
#        up to a power of two: a flat .5 has one photon at white and becomes 0 or 1, and a smooth
#        picture in 8 bits (50 levels) is 32 times as noisy as its floats (65,536 values).
# Hurts: the strength of "shot noise" depends on what was done before (a resize, a crop, a flat
#        region), and a study takes that for the network.
# Do:    np.random.poisson(x * photons) / photons.
# With:  scikit-image 0.26.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'scikit-image==0.26.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
from skimage.util import random_noise


def deviation(x):
    return float(np.std(random_noise(x, mode="poisson", rng=0) - x))


rng = np.random.default_rng(0)
flat = np.full((256, 256), 0.5)
smooth = np.linspace(0.3, 0.5, 256 * 256).reshape(256, 256)
levels = np.round(smooth * 255) / 255
found = {"flat .5": deviation(flat), "levels of 8 bits": deviation(levels), "floats": deviation(smooth)}
values = np.unique(random_noise(flat, mode="poisson", rng=0))
print({name: round(value, 4) for name, value in found.items()}, "values of flat .5:", values)
assert values.tolist() == [0, 1] and found["levels of 8 bits"] > 20 * found["floats"]
EOF
venv/bin/python check.py
