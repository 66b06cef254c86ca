#!/usr/bin/env bash
# Guess: AI Verify's set_seed ("for reproducibility") repeats the corrupted pictures; zoom_blur at
#        its first severity, 1.00, is the picture, and 1.05 is more; contrast_down reduces contrast:
#        flat grey stays.
# Seen:  set_seed calls numpy.random.seed, which albumentations 2 does not use: no noise, snow, fog
#        or perspective repeats. zoom_blur 1.00 and 1.05 are the same pixels, both blurred (from 64
#        x 64 on). contrast_down(.5) multiplies: grey 128 becomes 64.
# Hurts: two audits of one model differ, though the report has a seed; a report's rows "severity 1"
#        and "2" are one corruption, and its "contrast" measures darkness.
# Do:    store the corrupted pictures with the report.
# With:  aiverify-general-corruptions, -blur-corruptions and -digital-corruptions 2.2.1,
#        albumentations 2.0.8, numpy 1.26.4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'albumentations==2.0.8' 'numpy==1.26.4' 'opencv-python-headless==4.11.0.86'
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'aiverify-general-corruptions==2.2.1' \
    'aiverify-blur-corruptions==2.2.1' 'aiverify-digital-corruptions==2.2.1'  # only their functions are used
cat > check.py <<'EOF'
import os

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
import random

import numpy as np
from aiverify_blur_corruptions.utils.blur import zoom_blur
from aiverify_digital_corruptions.utils.digital import contrast_down
from aiverify_general_corruptions.utils import general

picture = np.random.default_rng(0).integers(0, 256, (224, 224, 3)).astype(np.uint8)
for name in ("gaussian_noise", "poisson_noise", "salt_and_pepper_noise"):
    seen = set()
    for _ in range(5):
        random.seed(0)
        np.random.seed(0)
        seen.add(getattr(general, name)(picture).tobytes())
    print(f"{name} after the same seeds: {len(seen)} different pictures of 5")
    assert len(seen) == 5
first, second, third = (zoom_blur(picture, zoom_factor=factor).astype(int) for factor in (1.0, 1.05, 1.1))
change = [np.abs(zoomed - picture).mean() for zoomed in (first, second, third)]
print("zoom_blur 1.00, 1.05, 1.10: mean change in levels", np.round(change, 1))
assert np.array_equal(first, second) and change[0] > 5 and change[2] > change[1]
grey = contrast_down(np.full((8, 8, 3), 128, np.uint8), factor=0.5)
print("contrast_down(.5) of a flat 128:", np.unique(grey))
assert np.unique(grey).tolist() == [64]
EOF
venv/bin/python check.py
