#!/usr/bin/env bash
# Guess: SaltAndPepperNoise of a float picture in [0, 1] sets pixels to 0 (pepper) and 1 (salt).
# Seen:  salt is 3.4e38 and pepper -3.4e38, the ends of float32; of uint16 65535 where the picture
#        has 12 bits, of int16 -32768. Only uint8 is as expected.
# Hurts: normalised floats and 12-bit scans: the mean is infinite, a network gives NaN or one
#        class for every picture, and a clip afterwards hides it in a display only.
# Do:    clip to the picture's range right after, or make the noise in uint8.
# With:  SimpleITK 2.5.7, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'SimpleITK==2.5.7' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
import SimpleITK as sitk

found = {}
for dtype, value in ((np.float32, 0.5), (np.uint8, 50), (np.uint16, 50), (np.int16, 50)):
    image = sitk.GetImageFromArray(np.full((64, 64), value, dtype))
    found[dtype] = np.unique(sitk.GetArrayFromImage(sitk.SaltAndPepperNoise(image, 0.1, 1))).tolist()
    print(np.dtype(dtype).name, found[dtype])
assert found[np.uint8] == [0, 50, 255]
assert found[np.float32][0] < -3e38 and found[np.float32][-1] > 3e38
assert found[np.uint16] == [0, 50, 65535] and found[np.int16] == [-32768, 50, 32767]
EOF
venv/bin/python check.py
