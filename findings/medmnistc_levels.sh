#!/usr/bin/env bash
# Guess: each corruption of MedMNIST-C has five severities, each stronger than the one before.
# Seen:  black_corner's level 5 is milder than its level 4 (dermamnist), stain_deposit's levels 3,
#        4 and 5 are one (bloodmnist), and gaussian_blur or defocus_blur have six levels in
#        chestmnist, pneumoniamnist and retinamnist.
# Hurts: curves of error against severity bend at level 4 for every network; means over "five
#        severities" are over other numbers.
# Do:    read the level's parameter and sort by it.
# With:  medmnistc 0.1.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'opencv-python-headless==5.0.0.93' \
    'scikit-image==0.26.0' 'scipy==1.17.1' 'pillow==13.0.0' 'numpy==2.4.6'
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'medmnistc==0.1.0'
cat > check.py <<'EOF'
import sys
import unittest.mock

# Levels need neither networks nor ImageMagick.
absent = ("medmnist", "torch", "torch.utils", "torch.utils.data", "torchvision", "torchvision.transforms", "torchvision.transforms.functional", "sklearn", "sklearn.metrics", "wand", "wand.image", "wand.api")
sys.modules |= {name: unittest.mock.MagicMock() for name in absent}
from medmnistc.corruptions.registry import CORRUPTIONS_DS  # noqa: E402

levels = {
    (data, name): corruption.severity_params for data, table in CORRUPTIONS_DS.items() for name, corruption in table.items()
}
corner = levels["dermamnist", "black_corner"]
print("black_corner of dermamnist:", corner)
print("stain_deposit of bloodmnist:", levels["bloodmnist", "stain_deposit"])
more = {key: len(values) for key, values in levels.items() if len(values) != 5}
print("other numbers of levels than five:", more)
assert corner[:4] == sorted(corner[:4], reverse=True) and corner[4] > corner[3]
assert len(set(levels["bloodmnist", "stain_deposit"])) == 3
assert set(more.values()) == {6} and len(more) == 3
EOF
venv/bin/python check.py
