#!/usr/bin/env bash
# Guess: piq.ssim is SSIM of the pictures that it gets.
# Seen:  from 384 pixels on it first shrinks both by their shorter side / 256: SSIM of one noise,
#        .025 at 256 pixels, is .09 at 512 and .29 at 1024. downsample=False measures the
#        pictures.
# Hurts: tables of image quality under noise improve when pictures get larger; scikit-image's and
#        torchmetrics' SSIM of the same files are others.
# Do:    downsample=False, and say so.
# With:  piq 0.8.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'piq==0.8.0' 'torch==2.13.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import sys
import unittest.mock

import torch

# piq imports torchvision for its metrics with networks; ssim does without.
sys.modules |= {name: unittest.mock.MagicMock() for name in ("torchvision", "torchvision.models")}
import piq  # noqa: E402

found = {}
for side in (256, 376, 512, 1024):
    generator = torch.Generator().manual_seed(0)
    x = torch.full((1, 3, side, side), 0.5)
    y = (x + 0.2 * torch.randn(x.shape, generator=generator)).clamp(0, 1)
    found[side] = [float(piq.ssim(x, y, downsample=d)) for d in (True, False)]
    print(side, [round(value, 3) for value in found[side]])
assert found[256][0] == found[256][1] and found[376][0] == found[376][1]
assert found[512][0] > 2 * found[512][1] and found[1024][0] > 4 * found[1024][1]
EOF
venv/bin/python check.py
