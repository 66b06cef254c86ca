#!/usr/bin/env bash
# Guess: kornia's augmentations draw for each image of a batch: same_on_batch=False is their
#        default.
# Seen:  RandomMotionBlur draws angle and direction for each image, and ONE kernel size for the
#        batch. RandAugment chooses its operations once: the 16 copies of a picture come back as one
#        or two different pictures in most calls. RandomMotionBlur also darkens: a flat .8 is .48 at
#        the border, since it pads with zeros.
# Hurts: a step of training sees one blur length or one operation; the per-image variety of the
#        papers is missing, and the gradient noise grows with the batch.
# Do:    call them image by image, or use smaller chunks.
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
from kornia.augmentation.auto import RandAugment

torch.manual_seed(0)
picture = torch.rand(1, 3, 32, 32)
batch = picture.repeat(16, 1, 1, 1)


def different(images):
    return len({image.numpy().tobytes() for image in images})


blur = K.RandomMotionBlur((3, 51), 35.0, 0.5, p=1.0)
sizes = []
for _ in range(20):
    blur(batch)
    sizes.append(blur._params["ksize_factor"].unique().tolist())
print("kernel sizes within each of 20 batches:", sizes)
assert all(len(size) == 1 for size in sizes) and len({size[0] for size in sizes}) > 5

choose = RandAugment(n=2, m=10)
counts = [different(choose(batch)) for _ in range(20)]
alone = different(torch.cat([choose(picture) for _ in range(60)]))
print(f"RandAugment, different images among 16 copies: {counts}; among 60 calls of one image: {alone}")
assert sorted(counts)[10] <= 2 and alone > 15
edge = float(K.RandomMotionBlur(5, (0.0, 0.0), (0.0, 0.0), p=1.0)(torch.full((1, 1, 16, 16), 0.8))[0, 0, 8, 0])
print(f"a flat .8 after motion blur: {edge:.2f} at the border")
assert abs(edge - 0.48) < 1e-3
EOF
venv/bin/python check.py
