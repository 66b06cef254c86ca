#!/usr/bin/env bash
# Guess: a torch DataLoader with two workers over albumentations gives each image noise of its own,
#        new in each epoch.
# Seen:  a Compose holds its own NumPy generator, which each forked worker copies: item 0 (worker 0)
#        and item 1 (worker 1) get the same noise, bit for bit, and each epoch starts the same
#        numbers again; with seed=1 and without any seed. torch seeds Python's and NumPy's global
#        generators for each worker, which this one is not.
# Hurts: training sees a fraction (1 / workers) of the augmentations, and the same ones in each
#        epoch.
# Do:    worker_init_fn that calls compose.set_random_seed(torch.initial_seed() % 2**32), and
#        persistent_workers=True.
# With:  albumentations 2.0.8 (the last release), torch 2.13.0, on Linux (fork)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'albumentations==2.0.8' 'torch==2.13.0' 'numpy==2.4.6' 'opencv-python-headless==5.0.0.93'
cat > check.py <<'EOF'
import os

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
import albumentations as A
import numpy as np
import torch


class Grey(torch.utils.data.Dataset):
    def __init__(self, seed):
        self.noise = A.Compose([A.GaussNoise(p=1)], seed=seed)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.noise(image=np.full((8, 8, 3), 128, np.uint8))["image"]


def reseed(worker):
    torch.utils.data.get_worker_info().dataset.noise.set_random_seed(torch.initial_seed() % 2**32)


def different(seed, **options):
    loader = torch.utils.data.DataLoader(Grey(seed), batch_size=None, num_workers=2, multiprocessing_context="fork", **options)
    return len({np.asarray(image).tobytes() for _ in range(3) for image in loader})


for seed in (1, None):
    count = different(seed)
    print(f"seed={seed}: {count} different images among 3 epochs of 8")
    assert count == 4
count = different(None, worker_init_fn=reseed, persistent_workers=True)
print(f"reseeded in each worker, workers kept: {count}")
assert count == 24
EOF
venv/bin/python check.py
