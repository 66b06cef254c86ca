#!/usr/bin/env bash
# Guess: RandomTranslationPerturber "randomly translates an image and adjusts bounding boxes": boxes
#        follow their objects.
# Seen:  a box is cut at its own old lower right corner, not at the picture's: an object that moves
#        right or down by more than its size gets an empty box (a point), by less a box that is too
#        small. Left and up are right.
# Hurts: a detector that finds every moved object is scored as missing it; average precision under
#        translation falls by the perturber's own boxes. Three of four moves are concerned.
# Do:    move the boxes yourself, by the shift that the pixels show.
# With:  nrtk 1.1.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'nrtk==1.1.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
from nrtk.impls.perturb_image.geometric.random import RandomTranslationPerturber
from smqtk_image_io.bbox import AxisAlignedBoundingBox

picture = np.zeros((100, 100, 3), np.uint8)
picture[45:55, 45:55] = 255  # the object; it stays inside of the picture
box = AxisAlignedBoundingBox((45, 45), (55, 55))
right = {}
for seed in range(40):
    moved, boxes = RandomTranslationPerturber(seed=seed)(
        image=picture, boxes=[(box, {"object": 1.0})], max_translation_limit=(40, 40)
    )
    rows, columns = np.nonzero(moved[..., 0])
    true = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    [(given, _)] = boxes
    given = [*given.min_vertex, *given.max_vertex]
    backward = true[0] <= 45 and true[1] <= 45
    right.setdefault(backward, []).append([int(i) for i in given] == [int(i) for i in true])
    if seed < 4:
        print(f"object at {[int(i) for i in true]}, box at {[int(i) for i in given]}")
print(f"right boxes: moved left and up {np.mean(right[True]):.0%}, all other moves {np.mean(right[False]):.0%}")
assert all(right[True]) and not any(right[False])
EOF
venv/bin/python check.py
