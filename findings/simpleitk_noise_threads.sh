#!/usr/bin/env bash
# Guess: SimpleITK's noise with a seed gives the same picture on every machine.
# Seen:  each thread seeds its own part of the picture: one thread and two threads agree in one half
#        of the picture and not in the other, for Gaussian, shot, speckle and salt and pepper noise.
#        The default is one thread for each core.
# Hurts: a corrupted test set cannot be made again on another machine, though seed and version are
#        recorded.
# Do:    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1) before the noise.
# With:  SimpleITK 2.5.7, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'SimpleITK==2.5.7' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
import SimpleITK as sitk

grey = sitk.GetImageFromArray(np.full((256, 256), 100.0, np.float32))
calls = {
    "AdditiveGaussianNoise": lambda: sitk.AdditiveGaussianNoise(grey, 10.0, 0.0, 7),
    "ShotNoise": lambda: sitk.ShotNoise(grey, 1.0, 7),
    "SpeckleNoise": lambda: sitk.SpeckleNoise(grey, 0.1, 7),
    "SaltAndPepperNoise": lambda: sitk.SaltAndPepperNoise(grey, 0.1, 7),
}


def noisy(call, threads):
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
    return sitk.GetArrayFromImage(call())


for name, call in calls.items():
    one, two, again = noisy(call, 1), noisy(call, 2), noisy(call, 1)
    differ = (one != two).mean(1)
    print(f"{name:22} one against two threads: {(one != two).mean():.1%} of the pixels differ")
    assert np.array_equal(one, again)
    assert differ[:128].max() == 0 and differ[128:].mean() > 0.15
EOF
venv/bin/python check.py
