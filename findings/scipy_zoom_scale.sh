#!/usr/bin/env bash
# Guess: scipy.ndimage.zoom(x, 2, order=1) enlarges twice, as OpenCV's linear resize does.
# Seen:  zoom lays the first pixel on the first and the last on the last: 8 pixels become 16 that
#        are 7/15 apart, a scale of 2.14, and the picture slides by up to half a pixel from the
#        others. grid_mode=True, mode="nearest" is OpenCV's.
# Hurts: ImageNet-C's zoom_blur is made with zoom: a port with resize is another corruption, most
#        for small pictures (13 levels on average for 32 x 32 of noise); masks that OpenCV enlarges
#        do not fit.
# Do:    grid_mode=True for a resize; n pixels at linspace(0, n - 1, m) for a port of zoom.
# With:  scipy 1.17.1, opencv-python-headless 5.0.0.93
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'scipy==1.17.1' 'numpy==2.4.6' 'opencv-python-headless==5.0.0.93'
cat > check.py <<'EOF'
import cv2
import numpy as np
from scipy.ndimage import zoom

ramp = np.arange(8, dtype=np.float32)[None].repeat(8, 0)
print("zoom  ", zoom(ramp, 2, order=1)[0].round(2))
print("OpenCV", cv2.resize(ramp, (16, 16))[0].round(2))
assert np.allclose(zoom(ramp, 2, order=1)[0], np.arange(16) * 7 / 15, atol=1e-5)
assert np.allclose(cv2.resize(ramp, (16, 16))[0, 1:-1], np.arange(1, 15) / 2 - 0.25)

picture = np.random.default_rng(0).uniform(0, 255, (32, 32)).astype(np.float32)
apart = np.abs(zoom(picture, 2, order=1) - cv2.resize(picture, (64, 64)))
same = np.abs(zoom(picture, 2, order=1, grid_mode=True, mode="nearest") - cv2.resize(picture, (64, 64)))
print(f"32 x 32 of noise: {apart.mean():.2f} levels apart on average; with grid_mode {same.max():.4f} at most")
assert apart.mean() > 5 and same.max() < 0.01
EOF
venv/bin/python check.py
