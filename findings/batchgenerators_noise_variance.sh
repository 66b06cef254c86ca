#!/usr/bin/env bash
# Guess: augment_gaussian_noise(..., noise_variance=(v, v)) adds noise of variance v, as name and
#        docstring say.
# Seen:  v is the standard deviation: .01 gives noise of deviation .01, not .1; .25 gives .25, not
#        .5.
# Hurts: nnU-Net's augmentation, and a corruption whose variance was taken from a paper, is ten
#        times too weak at .01.
# Do:    pass the deviation.
# With:  batchgenerators 0.25.5, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'batchgenerators==0.25.5' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
from batchgenerators.augmentations.noise_augmentations import augment_gaussian_noise

np.random.seed(0)
for variance in (0.01, 0.1, 0.25):
    deviation = augment_gaussian_noise(np.zeros((1, 256, 256)), noise_variance=(variance, variance)).std()
    print(f"noise_variance={variance}: variance {deviation**2:.5f}, deviation {deviation:.4f}")
    assert abs(deviation / variance - 1) < 0.02
EOF
venv/bin/python check.py
