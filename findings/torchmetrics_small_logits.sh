#!/usr/bin/env bash
# Guess: MulticlassCalibrationError treats the outputs of one network alike: logits are softmaxed,
#        probabilities are not.
# Seen:  each batch decides for itself: if all its values lie in [0, 1] they are taken for
#        probabilities. Logits in [0, 1] (cosine or sigmoid heads, networks at their start, small
#        batches) get ECE 0.000; times 1.0001 they get .849.
# Hurts: one metric mixes both kinds over the batches of a test set, by chance and by batch size.
# Do:    softmax before, always.
# With:  torchmetrics 1.9.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'torchmetrics==1.9.0' 'torch==2.13.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import torch
from torchmetrics.classification import MulticlassCalibrationError

labels = torch.arange(512) % 10
logits = torch.rand(512, 10, generator=torch.Generator().manual_seed(0))
logits[torch.arange(512), labels] = 1.0


def error(*batches):
    metric = MulticlassCalibrationError(num_classes=10, n_bins=15)
    for outputs, truth in batches:
        metric.update(outputs, truth)
    return float(metric.compute())


right = error((logits.softmax(1), labels))
as_they_are = error((logits, labels))
longer = error((1.0001 * logits, labels))
mixed = error((logits[:256], labels[:256]), (1.0001 * logits[256:], labels[256:]))
print(f"ECE: softmax {right:.3f}, logits {as_they_are:.3f}, logits times 1.0001 {longer:.3f}, half of each {mixed:.3f}")
assert as_they_are < 1e-6 and abs(right - 0.849) < 0.002 and abs(longer - right) < 1e-3
assert abs(mixed - right / 2) < 0.01
EOF
venv/bin/python check.py
