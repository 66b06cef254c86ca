#!/usr/bin/env bash
# Guess: timm's ImageDataset numbers class folders as torchvision's ImageFolder does: by the order
#        of their names.
# Seen:  timm orders names as a person would (class_2 before class_10), torchvision, datasets and
#        Keras by their letters (class_10 before class_2): of class_1, class_2, class_10, class_11
#        three have other numbers.
# Hurts: a network that was trained through one and tested through the other is right on a few
#        classes and "not robust" on the others; ImageNet's n01440764-like names are numbered
#        alike by both, so tests on ImageNet do not show it.
# Do:    give timm class_map=, or names of equal length (class_02).
# With:  timm 1.0.31, torchvision 0.28.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'timm==1.0.31' 'torchvision==0.28.0' 'torch==2.13.0' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import pathlib
import warnings

import torch

warnings.simplefilter("ignore")
if torch.version.cuda is None:  # torchvision's operators need CUDA's build of torch; the folders do not
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
from PIL import Image  # noqa: E402
from timm.data import ImageDataset  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

for name in ("class_1", "class_2", "class_10", "class_11"):
    pathlib.Path("images", name).mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(f"images/{name}/a.png")
found = {"torchvision": ImageFolder("images").class_to_idx, "timm": ImageDataset("images").reader.class_to_idx}
print(found)
assert sorted(found["torchvision"], key=found["torchvision"].get) == ["class_1", "class_10", "class_11", "class_2"]
assert sorted(found["timm"], key=found["timm"].get) == ["class_1", "class_2", "class_10", "class_11"]
EOF
venv/bin/python check.py
