#!/usr/bin/env bash
# Guess: ImageFilter.GaussianBlur(s) is the Gaussian of deviation s within a level or two, for any
#        s.
# Seen:  it is three box blurs whose deviation is s and whose shape is not: for s below 1 noise
#        comes back up to 33 levels off (s = .3) and with .85 (.3) to 1.09 (.7) of the contrast
#        that a Gaussian leaves. From s = 1 on it is within 5 levels.
# Hurts: weak blurs as in CIFAR-10-C's severities (.4 to 1), and SimCLR's (.1 to 2) are another
#        filter than in PyTorch, SciPy or OpenCV, and not monotonous in what they keep.
# Do:    scipy.ndimage.gaussian_filter or cv2.GaussianBlur below 1.
# With:  Pillow 13.0.0, scipy 1.17.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pillow==13.0.0' 'scipy==1.17.1' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
from PIL import Image, ImageFilter
from scipy.ndimage import gaussian_filter

image = np.random.default_rng(0).integers(0, 256, (256, 256)).astype(np.uint8)
inside = np.s_[48:-48, 48:-48]
found = {}
for sigma in (0.3, 0.4, 0.5, 0.7, 1, 2, 4):
    pillow = np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(sigma))).astype(float)[inside]
    scipy = gaussian_filter(image.astype(float), sigma, truncate=6)[inside]
    found[sigma] = abs(pillow - scipy).max(), pillow.std() / scipy.std()
    print(f"sigma {sigma}: at most {found[sigma][0]:.1f} levels apart, {found[sigma][1]:.2f} of SciPy's contrast")
assert found[0.3][0] > 25 and found[0.3][1] < 0.88 and found[0.7][1] > 1.06
assert all(found[sigma][0] < 6 for sigma in (1, 2, 4))
EOF
venv/bin/python check.py
