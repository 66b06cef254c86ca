#!/usr/bin/env bash
# Guess: imagedegrade's blur_noise_jpeg(x, blur_sigma, noise_sigma, jpeg_quality) blurs, adds
#        noise and compresses, and noise(x, sigma) of a uint8 picture stays in 0..255.
# Seen:  blur and noise are computed and dropped: the result is jpeg(x, jpeg_quality), bit for
#        bit, for any blur and noise. noise returns float64 from -67 to 315.
# Hurts: a restoration network was trained, or a classifier tested, on JPEG alone; casting the
#        noisy picture to uint8 wraps black to white.
# Do:    call blur, noise (then np.clip) and jpeg one after the other.
# With:  imagedegrade 0.2.3, numpy 2.4.6, scipy 1.17.1, Pillow 13.0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'imagedegrade==0.2.3' 'scipy==1.17.1' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import imagedegrade.np as degrade
import numpy as np

image = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
all_three = degrade.blur_noise_jpeg(image, 5, 50, 90)
compressed = degrade.jpeg(image, 90)
blurred = degrade.jpeg(degrade.blur(image, 5), 90)
print("values that differ from jpeg alone:", int((all_three != compressed).sum()), "from blur and jpeg:", int((all_three != blurred).sum()))
assert np.array_equal(all_three, compressed) and not np.array_equal(all_three, blurred)
np.random.seed(0)
noisy = degrade.noise(image, 20)
print(f"noise of uint8: {noisy.dtype}, {noisy.min():.0f} to {noisy.max():.0f}")
assert noisy.dtype == np.float64 and noisy.min() < -20 and noisy.max() > 275
EOF
venv/bin/python check.py
