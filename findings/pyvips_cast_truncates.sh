#!/usr/bin/env bash
# Guess: image.cast("uchar") of a float picture rounds and clips, as libvips' other conversions to
#        8 bits do.
# Seen:  it clips and truncates: 100.6 becomes 100. A picture plus noise of mean 0, cast back, is
#        half a level darker, and noise of deviation .5 darkens by .5 and keeps .9 of its
#        deviation, where rounding keeps the mean.
# Hurts: each step of a pipeline that goes through floats loses half a level; corruptions in
#        several steps darken.
# Do:    image.rint().cast("uchar").
# With:  pyvips 3.2.0, pyvips-binary 8.18.7, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pyvips==3.2.0' 'pyvips-binary==8.18.7' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
import pyvips

values = pyvips.Image.new_from_array(np.array([[100.6, 2.5, -1.0, 300.0]]))
print("cast", values.cast("uchar").numpy().tolist(), "rint first", values.rint().cast("uchar").numpy().tolist())
assert values.cast("uchar").numpy().tolist() == [[100, 2, 0, 255]]
flat = pyvips.Image.new_from_array(np.full((512, 512), 100, np.uint8))
noisy = flat + pyvips.Image.gaussnoise(512, 512, mean=0, sigma=5, seed=1)
means = [noisy.cast("uchar").numpy().mean(), noisy.rint().cast("uchar").numpy().mean()]
print(f"grey 100 with noise: mean {means[0]:.2f} by cast, {means[1]:.2f} by rint and cast")
assert abs(means[0] - 99.5) < 0.1 and abs(means[1] - 100) < 0.1
EOF
venv/bin/python check.py
