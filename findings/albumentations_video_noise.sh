#!/usr/bin/env bash
# Guess: GaussNoise through the target images= (a batch, or the frames of a video) draws noise for
#        each image.
# Seen:  all images get one and the same noise, as do SaltAndPepper and ShotNoise: noise that stands
#        still.
# Hurts: a mean over the frames keeps all of the noise (a sensor's would shrink by the root of their
#        number), and a network learns the pattern of the batch; a robustness of video models to
#        noise is measured on a fixed pattern.
# Do:    call the transform once for each image.
# With:  albumentations 2.0.8 (the last release)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'albumentations==2.0.8' 'numpy==2.4.6' 'opencv-python-headless==5.0.0.93'
cat > check.py <<'EOF'
import os

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
import albumentations as A
import numpy as np

frames = np.full((16, 64, 64, 3), 128, np.uint8)
for noise in (A.GaussNoise(p=1), A.SaltAndPepper(p=1), A.ShotNoise(p=1)):
    apply = A.Compose([noise], seed=0)
    together = apply(images=frames)["images"]
    single = np.stack([apply(image=frame)["image"] for frame in frames])
    name = type(noise).__name__
    different = [len({frame.tobytes() for frame in clip}) for clip in (together, single)]
    print(f"{name:14} different frames of 16: images= {different[0]}, one by one {different[1]}")
    assert different == [1, 16]
    kept = together.mean(0).std() / together[0].std()
    assert abs(kept - 1) < 1e-6
EOF
venv/bin/python check.py
