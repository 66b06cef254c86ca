#!/usr/bin/env bash
# Guess: ART's EoTShotNoise, "adding shot noise (Poisson)", counts photons: black stays black,
#        bright pixels are noisier, the mean stays.
# Seen:  Poisson numbers of mean 1, the same law everywhere, are ADDED to the picture: grey .5
#        becomes 1 everywhere and black .95 on average.
# Hurts: an attack "robust to shot noise" was optimised on white pictures, and an evaluation under
#        it is one under overexposure.
# Do:    torch.poisson(x * lam) / lam.
# With:  adversarial-robustness-toolbox 1.20.1, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'adversarial-robustness-toolbox==1.20.1' 'torch==2.13.0' 'packaging==26.4' 'numpy==2.4.6'
cat > check.py <<'EOF'
import torch
from art.preprocessing.expectation_over_transformation import EoTShotNoisePyTorch

torch.manual_seed(0)
noise = EoTShotNoisePyTorch(nb_samples=1, clip_values=(0.0, 1.0), lam=(60.0, 60.0))
for value in (0.0, 0.5):
    x = torch.full((1, 3, 64, 64), value)
    y = noise.forward(x)[0]
    print(f"{value}: mean {float(y.mean()):.3f}, white {float((y >= 1).float().mean()):.2f}")
    assert float(y.mean()) > 0.9
EOF
venv/bin/python check.py
