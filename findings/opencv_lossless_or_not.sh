#!/usr/bin/env bash
# Guess: IMWRITE_WEBP_QUALITY=100 is the best that OpenCV's WebP gives; JPEG 2000 is lossless unless
#        one asks for less, as in Pillow.
# Seen:  WebP without any parameter is lossless, and with quality 100 it is off by more than 200
#        levels (colour noise): only 101 or no parameter is lossless. OpenCV's .jp2 is lossy by
#        default (130 levels); Pillow's is exact.
# Hurts: corrupted test sets that were stored "at quality 100" to be safe have lost most of their
#        colour noise.
# Do:    PNG, or WebP without a quality; read back and compare once.
# With:  opencv-python-headless 5.0.0.93, Pillow 13.0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'opencv-python-headless==5.0.0.93' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import io

import cv2
import numpy as np
from PIL import Image

noise = np.random.default_rng(0).integers(0, 256, (128, 128, 3), dtype=np.uint8)


def worst(suffix, *parameters):
    _, stored = cv2.imencode(suffix, noise, list(parameters))
    error = int(np.abs(cv2.imdecode(stored, cv2.IMREAD_COLOR).astype(int) - noise).max())
    print(f"OpenCV {suffix} {parameters}: at most {error} levels off, {len(stored)} bytes")
    return error


assert worst(".webp") == 0 and worst(".webp", cv2.IMWRITE_WEBP_QUALITY, 101) == 0
assert worst(".webp", cv2.IMWRITE_WEBP_QUALITY, 100) > 150
assert worst(".jp2") > 100
memory = io.BytesIO()
Image.fromarray(noise).save(memory, "JPEG2000")
assert np.array_equal(np.asarray(Image.open(memory)), noise)
print("Pillow JPEG2000: exact")
EOF
venv/bin/python check.py
