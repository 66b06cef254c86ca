#!/usr/bin/env bash
# Guess: AugLy's RandomNoise draws noise for each image, and leaves NumPy's global generator to
#        its owner.
# Seen:  each call sets NumPy's global seed to 42: all images get one and the same noise, and
#        whatever else draws from np.random afterwards (shuffling, crops, other noise) starts
#        again from 42 after each image.
# Hurts: a network learns one pattern; np.random.permutation, Albumentations' and
#        imagecorruptions' draws of the whole pipeline repeat with every image.
# Do:    pass seed= anew for each image, and draw everything else from generators of your own.
# With:  AugLy 1.0.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'AugLy==1.0.0' 'numpy==2.4.6' 'pillow==13.0.0' \
    'regex==2026.11.19' 'python-magic==0.4.27' 'iopath==0.1.10'
cat > check.py <<'EOF'
import augly.image
import numpy as np
from PIL import Image

grey = Image.fromarray(np.full((32, 32, 3), 128, np.uint8))
transform = augly.image.RandomNoise(var=0.01, p=1.0)
noises, numbers = set(), set()
for seed in range(8):
    np.random.seed(seed)
    noises.add(np.asarray(transform(grey)).tobytes())
    numbers.add(int(np.random.randint(10**9)))
print(f"8 images, 8 seeds before them: {len(noises)} noise, next number of np.random {numbers}")
np.random.seed(42)
assert len(noises) == 1 and len(numbers) == 1
EOF
venv/bin/python check.py
