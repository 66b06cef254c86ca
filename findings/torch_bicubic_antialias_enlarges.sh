#!/usr/bin/env bash
# Guess: antialias=True acts where a picture is reduced, so it changes nothing when interpolate()
#        enlarges.
# Seen:  it takes another cubic (a = -.5 for -.75): pictures of noise that are enlarged twice differ
#        by 4 levels on average (17 at most). jax.image.resize("cubic") equals antialias=True.
# Hurts: "bicubic" preprocessing differs between two ports of one network that only enlarge (CIFAR
#        32 to 224).
# Do:    pass antialias=True in PyTorch wherever the pixels shall be those of JAX.
# With:  torch 2.13.0, jax 0.10.2, numpy 2.4.6, on a CPU
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import jax
import numpy as np
import torch
from torch.nn.functional import interpolate

picture = np.random.default_rng(0).random((1, 1, 32, 32)).astype(np.float32)
plain, smooth = (
    interpolate(torch.tensor(picture), scale_factor=2, mode="bicubic", antialias=antialias).numpy()
    for antialias in (False, True)
)
jaxs = np.asarray(jax.image.resize(picture, (1, 1, 64, 64), "cubic"))
apart = 255 * np.abs(plain - smooth)
print(f"antialias on and off, enlarging: {apart.mean():.2f} levels apart on average, {apart.max():.1f} at most")
print(f"JAX and antialias=True: {255 * np.abs(jaxs - smooth).max():.5f} levels at most")
assert apart.mean() > 3 and apart.max() > 15
assert 255 * np.abs(jaxs - smooth).max() < 0.01
EOF
venv/bin/python check.py
