#!/usr/bin/env bash
# Guess: one grey TIFF file is one picture for every reader.
# Seen:  where the file says that 0 is white (MinIsWhite: scanners, faxes, medical files), Pillow
#        and OpenCV turn the values, tifffile and imageio (with tifffile, its default for TIFF) give
#        them as stored: the negative.
# Hurts: a network that was trained through one reader and evaluated through the other sees
#        negatives of those files.
# Do:    read TIFF with one library; look at tifffile's page.photometric.
# With:  tifffile 2026.3.3, imageio 2.38.1, Pillow 13.0.0, opencv-python-headless 5.0.0.93
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'tifffile==2026.3.3' 'imageio==2.38.1' 'pillow==13.0.0' 'opencv-python-headless==5.0.0.93' 'numpy==2.4.6'
cat > check.py <<'EOF'
import cv2
import imageio.v3 as imageio
import numpy as np
import tifffile
from PIL import Image

levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
seen = {}
for photometric in ("minisblack", "miniswhite"):
    tifffile.imwrite("grey.tif", levels, photometric=photometric)
    for name, read in {
        "Pillow": lambda: np.asarray(Image.open("grey.tif").convert("L")),
        "OpenCV": lambda: cv2.imread("grey.tif", cv2.IMREAD_GRAYSCALE),
        "tifffile": lambda: tifffile.imread("grey.tif"),
        "imageio": lambda: imageio.imread("grey.tif"),
    }.items():
        picture = read()
        seen[photometric, name] = "as stored" if np.array_equal(picture, levels) else "turned"
        assert np.array_equal(picture, levels) or np.array_equal(picture, 255 - levels)
        print(f"{photometric}: {name:8} {seen[photometric, name]}")
assert {value for (kind, _), value in seen.items() if kind == "minisblack"} == {"as stored"}
white = {name: value for (kind, name), value in seen.items() if kind == "miniswhite"}
assert white == {"Pillow": "turned", "OpenCV": "turned", "tifffile": "as stored", "imageio": "as stored"}
EOF
venv/bin/python check.py
