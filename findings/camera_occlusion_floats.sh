#!/usr/bin/env bash
# Guess: camera-occlusion's rain and dust take float pictures in [0, 1], as its Glare does, or
#        refuse them.
# Seen:  Glare keeps [0, 1]. Rain and Dust add and blend levels of 0..255 and return float32 up to
#        153 and 16, and most of the picture's own values are lost beside them; nothing warns.
# Hurts: after a clip rain is white and dust is white too: a robot's camera that is "robust to
#        dust" was tested with white blots.
# Do:    give uint8.
# With:  camera-occlusion 0.1.1, opencv-python-headless 5.0.0.93, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'camera-occlusion==0.1.1' 'opencv-python-headless==5.0.0.93' 'numpy==2.4.6'
cat > check.py <<'EOF'
import random

import numpy as np
from camera_occlusion.camera_noise import Dust, Glare, Rain

image = np.random.default_rng(0).random((120, 160, 3)).astype(np.float32)
top = {}
for effect in (Glare, Rain, Dust):
    np.random.seed(0)
    random.seed(0)
    result = np.asarray(effect()(image.copy()))
    top[effect.__name__] = float(result.max())
    print(f"{effect.__name__:6} {result.dtype}, {result.min():.2f} to {result.max():.2f}")
assert top["Glare"] <= 1 and top["Rain"] > 20 and top["Dust"] > 2
EOF
venv/bin/python check.py
