#!/usr/bin/env bash
# Guess: nrtk's perturbers keep the type of the picture, floats in [0, 1] too, as its noise and
#        enhancement perturbers do.
# Seen:  RadialDistortionPerturber and HazePerturber return uint8: floats in [0, 1] become black
#        (all zeros), also with no distortion (k = 0). BrightnessPerturber and
#        GaussianNoisePerturber return floats.
# Hurts: in a ComposePerturber over floats every later step, and the model, sees a black picture;
#        nothing warns.
# Do:    give nrtk uint8 pictures.
# With:  nrtk 1.1.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'nrtk==1.1.0' 'scikit-image==0.26.0' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
from nrtk.impls.perturb_image.environment import HazePerturber
from nrtk.impls.perturb_image.optical import RadialDistortionPerturber
from nrtk.impls.perturb_image.photometric.enhance import BrightnessPerturber
from nrtk.impls.perturb_image.photometric.noise import GaussianNoisePerturber

picture = np.random.default_rng(0).uniform(0.2, 0.8, (32, 32, 3)).astype(np.float32)
seen = {}
for perturber in (
    RadialDistortionPerturber(k=[0, 0, 0]), HazePerturber(factor=0.5),
    BrightnessPerturber(factor=1.0), GaussianNoisePerturber(seed=0, var=0.001),
):  # fmt: skip
    name = type(perturber).__name__
    floats, _ = perturber(image=picture)
    levels, _ = perturber(image=(255 * picture).astype(np.uint8))
    seen[name] = str(floats.dtype), float(floats.mean())
    print(f"{name:26} of floats: {floats.dtype}, mean {floats.mean():.3f}; of uint8: mean {levels.mean() / 255:.3f}")
    assert 0.4 < levels.mean() / 255 < 0.6
assert seen["RadialDistortionPerturber"] == seen["HazePerturber"] == ("uint8", 0.0)
assert seen["BrightnessPerturber"][0] == seen["GaussianNoisePerturber"][0] == "float32"
EOF
venv/bin/python check.py
