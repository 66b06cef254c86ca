#!/usr/bin/env bash
# Guess: alpha of kornia's RandomElasticTransform is a displacement in pixels, or at least one that
#        a resize leaves alone.
# Seen:  it is a share of half the side: the same kernel, sigma and alpha move pixels by 1.2 at 64,
#        2.0 at 128 and 9.0 at 512; since sigma stays in pixels the field is torn apart on large
#        pictures.
# Hurts: parameters that are right for CIFAR or for 256 x 256 patches shred 512 x 512 ones, and the
#        other way round.
# Do:    alpha = 2 * pixels / side, sigma in proportion to the side.
# With:  kornia 0.9.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'kornia==0.9.0' 'torch==2.13.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import kornia.augmentation as K
import torch

moved = {}
for side in (64, 128, 512):
    rows, columns = torch.meshgrid(torch.arange(side).float(), torch.arange(side).float(), indexing="ij")
    positions = torch.stack([columns, rows])[None].repeat(4, 1, 1, 1)
    torch.manual_seed(0)
    elastic = K.RandomElasticTransform(kernel_size=(31, 31), sigma=(5.0, 5.0), alpha=(1.0, 1.0), p=1.0)
    moved[side] = float((elastic(positions) - positions)[..., 20:-20, 20:-20].std())
    print(f"side {side}: displacement of {moved[side]:.2f} pixels, {moved[side] / side:.4f} of the side")
for side in (128, 512):
    assert abs(moved[side] / moved[64] / (side / 64) - 1) < 0.15
EOF
venv/bin/python check.py
