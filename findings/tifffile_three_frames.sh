#!/usr/bin/env bash
# Guess: tifffile.imwrite of grey frames, [N, height, width], writes N grey pages.
# Seen:  three frames become ONE page of colour (red, green, blue), four one page with an alpha;
#        two or five are pages. A strip [N, width, 3] of grey values is a colour picture as well.
#        tifffile itself reads the array back as it was; every other reader sees one picture.
# Hurts: stacks of three severities, three channels of a microscope or three frames: Pillow,
#        OpenCV and ImageFolder datasets read one colour picture.
# Do:    photometric="minisblack".
# With:  tifffile 2026.3.3, Pillow 13.0.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'tifffile==2026.3.3' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
import tifffile
from PIL import Image


def read(number, **options):
    frames = np.random.default_rng(0).integers(0, 256, (number, 32, 32)).astype(np.uint8)
    tifffile.imwrite("frames.tif", frames, **options)
    assert np.array_equal(tifffile.imread("frames.tif"), frames)
    with Image.open("frames.tif") as image:
        return image.n_frames, image.mode


found = {number: read(number) for number in (2, 3, 4, 5)}
print("frames given: (pages, mode) that Pillow reads", found, "three with minisblack", read(3, photometric="minisblack"))
assert found == {2: (2, "L"), 3: (1, "RGB"), 4: (1, "RGBA"), 5: (5, "L")}
assert read(3, photometric="minisblack") == (3, "L")
EOF
venv/bin/python check.py
