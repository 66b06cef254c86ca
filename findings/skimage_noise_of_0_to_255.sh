#!/usr/bin/env bash
# Guess: skimage.util.random_noise of a float picture in 0..255 adds noise, or refuses: floats must
#        lie in [-1, 1].
# Seen:  it returns a white picture (all ones) without a word, for each mode that clips; the default
#        clip=True takes every value above 1 to 1. The same picture as uint8 is noisy.
# Hurts: a pipeline whose decoder gives float32 in 0..255 (OpenCV after a filter, TensorFlow)
#        evaluates on blank pictures; accuracy falls to chance and is taken for a lack of
#        robustness. nrtk's noise perturbers inherit it.
# Do:    divide by 255 first.
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

levels = np.linspace(2, 255, 64)[None].repeat(64, 0)
for mode in ("gaussian", "speckle", "localvar"):
    floats = random_noise(levels, mode=mode, rng=0)
    uint8 = random_noise(levels.astype(np.uint8), mode=mode, rng=0)
    print(f"{mode:9} of floats in 0..255: mean {floats.mean():.3f}, deviation {floats.std():.3f}; of uint8: {uint8.mean():.3f}, {uint8.std():.3f}")
    assert floats.mean() > 0.98 and np.median(floats) == 1
    assert 0.45 < uint8.mean() < 0.55 and uint8.std() > 0.25
EOF
venv/bin/python check.py
