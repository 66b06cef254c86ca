#!/usr/bin/env bash
# Guess: webdataset's writer stores "jpg" at quality 100, Pillow's highest: what comes back is within a
#        few levels.
# Seen:  it does write quality 100, and halves the colour planes, as Pillow does at every quality
#        without subsampling=0: colour noise of deviation 40 comes back 25 levels off on average, grey
#        noise .1. With subsampling=0 colour is half a level off.
# Hurts: a corrupted test set that was stored "at quality 100" has lost half of its colour noise, and
#        a network does better on it than on the same images in memory.
# Do:    "png" as the key of corrupted pictures.
# With:  webdataset 1.0.2, Pillow 13.0.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'webdataset==1.0.2' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import io
import tarfile

import numpy as np
import webdataset
from PIL import Image

rng = np.random.default_rng(0)
colour = np.clip(128 + 40 * rng.standard_normal((128, 128, 3)), 0, 255).astype(np.uint8)
grey = np.repeat(colour[..., :1], 3, 2)
with webdataset.TarWriter("pictures.tar") as sink:
    for name, picture in (("colour", colour), ("grey", grey)):
        sink.write({"__key__": name, "jpg": picture, "png": picture})


def off(stored, picture):
    return float(np.abs(np.asarray(Image.open(io.BytesIO(stored))).astype(int) - picture).mean())


with tarfile.open("pictures.tar") as archive:
    found = {file.name: archive.extractfile(file).read() for file in archive}
mean = {name: off(stored, colour if "colour" in name else grey) for name, stored in found.items()}
full, same = io.BytesIO(), io.BytesIO()
Image.fromarray(colour).save(full, "JPEG", quality=100, subsampling=0)
Image.fromarray(colour).save(same, "JPEG", quality=100)
mean["colour, Pillow, 100"], mean["colour, Pillow, 100, 4:4:4"] = off(same.getvalue(), colour), off(full.getvalue(), colour)
for name, levels in mean.items():
    print(f"{name:26} {levels:.2f} levels off on average")
assert mean["colour.png"] == mean["grey.png"] == 0 and mean["grey.jpg"] < 1 and mean["colour, Pillow, 100, 4:4:4"] < 1
assert mean["colour.jpg"] > 10 and found["colour.jpg"] == same.getvalue()
EOF
venv/bin/python check.py
