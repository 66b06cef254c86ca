#!/usr/bin/env bash
# Guess: nnx.BatchNorm normalises N(1000, .1^2) to deviation 1, as
#        torch's does.
# Seen:  its variance is the mean of squares less the squared mean, in float32: 0 here, and the
#        output's deviation is 31.5. use_fast_variance=False gives .999.
# Hurts: layers after a large offset (unscaled inputs in 0..255 with small contrast, sums,
#        attention logits) are off by a factor of 30 in one framework and not in the other;
#        severity "contrast" drives inputs there.
# Do:    use_fast_variance=False, and inputs of mean 0.
# With:  flax 0.12.8, jax 0.10.2, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'flax==0.12.8' 'jax==0.10.2' 'jaxlib==0.10.2' 'torch==2.13.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
import torch
from flax import nnx

x = (1000 + 0.1 * np.random.default_rng(0).standard_normal((4096, 4))).astype(np.float32)
fast = nnx.BatchNorm(4, rngs=nnx.Rngs(0))(x)
slow = nnx.BatchNorm(4, use_fast_variance=False, rngs=nnx.Rngs(0))(x)
theirs = torch.nn.BatchNorm1d(4)(torch.tensor(x)).detach().numpy()
found = {"nnx": np.std(fast), "nnx, use_fast_variance=False": np.std(slow), "torch": np.std(theirs)}
print("deviation of the output:", {name: round(float(value), 3) for name, value in found.items()})
assert found["nnx"] > 10 and all(0.98 < found[name] < 1.01 for name in list(found)[1:])
EOF
venv/bin/python check.py
