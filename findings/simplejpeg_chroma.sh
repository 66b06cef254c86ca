#!/usr/bin/env bash
# Guess: simplejpeg and Pillow, both on libjpeg-turbo, write the same JPEG pixels at one quality.
# Seen:  they differ by 13 levels on average and up to 97 on a coloured pattern: simplejpeg keeps
#        colour at full size (4:4:4), Pillow halves it (4:2:0). With colorsubsampling="420" they
#        differ by 1.2 levels on average, up to 13. Both decode one file to the same pixels.
# Hurts: a JPEG corruption, or a data set stored with it, is milder than its quality says, and so
#        are error rates compared with ImageNet-C, which Pillow made.
# Do:    simplejpeg.encode_jpeg(image, quality, colorsubsampling="420").
# With:  simplejpeg 1.9.0, Pillow 13.0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'simplejpeg==1.9.0' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import io

import numpy as np
import simplejpeg
from PIL import Image

rows, columns = np.mgrid[:96, :128] / 128
waves = [np.sin(2 * np.pi * (5 * rows * (c + 1) + 7 * columns + c)) for c in range(3)]
image = (127.5 + 127 * np.stack(waves, axis=-1)).astype(np.uint8)
file = io.BytesIO()
Image.fromarray(image).save(file, "JPEG", quality=85)
expected = np.asarray(Image.open(file)).astype(int)


def difference(content):
    return np.abs(simplejpeg.decode_jpeg(content).astype(int) - expected)


default = difference(simplejpeg.encode_jpeg(image, 85))
halved = difference(simplejpeg.encode_jpeg(image, 85, colorsubsampling="420"))
print(f"by default: mean {default.mean():.1f}, largest {default.max()}; with 420: mean {halved.mean():.1f}, largest {halved.max()}")
assert default.mean() > 10 and 0.5 < halved.mean() < 2
assert difference(file.getvalue()).max() == 0
EOF
venv/bin/python check.py
