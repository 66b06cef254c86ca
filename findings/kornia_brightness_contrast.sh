#!/usr/bin/env bash
# Guess: kornia's RandomBrightness multiplies and RandomContrast goes towards the mean, as
#        torchvision's ColorJitter does: black stays black, flat grey stays flat grey.
# Seen:  RandomBrightness((1.3, 1.3)) ADDS .3: black becomes .3. RandomContrast((.5, .5)) MULTIPLIES
#        by .5: grey .5 becomes .25; it is torchvision's brightness. kornia's ColorJitter is
#        torchvision's, its ColorJiggle again adds.
# Hurts: a robustness table with rows "brightness" and "contrast" from kornia has other corruptions
#        than all others.
# Do:    kornia.augmentation.ColorJitter(brightness=..., contrast=...) for torchvision's meaning.
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

black, grey = torch.zeros(1, 3, 8, 8), torch.full((1, 3, 8, 8), 0.5)


def value(layer, picture):
    values = layer(picture).unique()
    assert len(values) == 1
    return round(float(values), 4)


seen = {
    "RandomBrightness 1.3 of black": value(K.RandomBrightness((1.3, 1.3), p=1.0), black),
    "ColorJiggle brightness 1.3 of black": value(K.ColorJiggle(brightness=(1.3, 1.3), p=1.0), black),
    "ColorJitter brightness 1.3 of black": value(K.ColorJitter(brightness=(1.3, 1.3), p=1.0), black),
    "RandomContrast .5 of grey .5": value(K.RandomContrast((0.5, 0.5), p=1.0), grey),
    "ColorJitter contrast .5 of grey .5": value(K.ColorJitter(contrast=(0.5, 0.5), p=1.0), grey),
}
for name, result in seen.items():
    print(f"{name:36} {result}")
assert list(seen.values()) == [0.3, 0.3, 0.0, 0.25, 0.5]
EOF
venv/bin/python check.py
