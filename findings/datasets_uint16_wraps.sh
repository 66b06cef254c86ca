#!/usr/bin/env bash
# Guess: a uint16 RGB array in a Hugging Face Image feature is stored with 16 bits, scaled to 8, or
#        refused.
# Seen:  it is cast to uint8 modulo 256, with a warning of "downcasting": 40000 becomes 64, 255 and
#        511 both 255. A grey uint16 array is stored whole. float32 RGB is refused.
# Hurts: raw, medical and satellite pictures become bands of nonsense that still look like a
#        picture.
# Do:    (x // 257).astype(np.uint8) before, or an Array3D feature.
# With:  datasets 5.2.0, Pillow 13.0.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datasets==5.2.0' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import warnings

import datasets
import numpy as np

warnings.simplefilter("ignore")


def stored(array):
    features = datasets.Features({"image": datasets.Image()})
    return np.asarray(datasets.Dataset.from_dict({"image": [array]}, features=features)[0]["image"])


values = np.array([[0, 255, 256, 511, 40000, 65535]], np.uint16).repeat(4, 0)
colour = stored(np.stack([values] * 3, -1))
grey = stored(values)
print("given ", values[0].tolist())
print("colour", colour[0, :, 0].tolist(), colour.dtype)
print("grey  ", grey[0].tolist(), grey.dtype)
assert colour.dtype == np.uint8 and np.array_equal(colour[..., 0], values % 256)
assert grey.dtype == np.uint16 and np.array_equal(grey, values)
EOF
venv/bin/python check.py
