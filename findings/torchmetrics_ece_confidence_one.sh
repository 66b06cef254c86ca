#!/usr/bin/env bash
# Guess: MulticlassCalibrationError's 15 bins of equal width cover [0, 1]; confidence 1 lies in
#        the last of them.
# Seen:  confidence of exactly 1 gets a sixteenth bin of its own: ECE .515 where the definition
#        has .485 on one example. Softmax in float32 or bfloat16 gives many exact ones.
# Hurts: ECE of confident networks, and of one network in two precisions, does not compare with
#        other packages' (netcal, scikit-learn) and papers' figures.
# Do:    confidences.clip(max=1 - 1e-7), or a few lines of your own.
# With:  torchmetrics 1.9.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'torchmetrics==1.9.0' 'torch==2.13.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
import torch
from torchmetrics.classification import MulticlassCalibrationError

confidence = np.array([0.97] * 50 + [1.0] * 50)
correct = np.array([1] * 50 + [0] * 50)  # all in the last bin: mean confidence .985, accuracy .5
probabilities = torch.tensor(np.stack([confidence, 1 - confidence, 0 * confidence], 1), dtype=torch.float32)
target = torch.tensor(np.where(correct, 0, 1))


def measured(probabilities):
    return float(MulticlassCalibrationError(3, n_bins=15)(probabilities, target))


bins = np.minimum((confidence * 15).astype(int), 14)
expected = sum(
    (bins == b).mean() * abs(confidence[bins == b].mean() - correct[bins == b].mean()) for b in np.unique(bins)
)
below = measured(torch.stack([probabilities[:, 0].clip(max=1 - 1e-6), *probabilities.T[1:]], 1))
found = measured(probabilities)
print(f"ECE by its definition {expected:.3f}, torchmetrics {found:.3f}, with confidences below 1 {below:.3f}")
assert abs(expected - 0.485) < 1e-9 and abs(found - 0.515) < 1e-3 and abs(below - 0.485) < 1e-3
EOF
venv/bin/python check.py
