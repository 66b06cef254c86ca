#!/usr/bin/env bash
# Guess: clipping to [0, 1] has one derivative at exactly 0 or 1, whichever function does it.
# Seen:  jnp.clip gives .5, jax.lax.clamp 0, torch.clamp 1. uint8 pictures are full of exact zeros
#        and ones.
# Hurts: gradients through a corruption (adversarial severities, attacks, learned augmentation) in
#        black and white pixels are halved, whole or absent by the port's spelling.
# Do:    say which derivative is meant: jnp.where, or a straight-through cast.
# With:  jax 0.10.2, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'torch==2.13.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import jax
import jax.numpy as jnp
import torch

found = {}
for value in (0.0, 0.5, 1.0):
    x = torch.tensor(value, requires_grad=True)
    torch.clamp(x, 0, 1).backward()
    found[value] = {
        "jnp.clip": float(jax.grad(lambda x: jnp.clip(x, 0, 1))(value)),
        "lax.clamp": float(jax.grad(lambda x: jax.lax.clamp(0.0, x, 1.0))(value)),
        "torch.clamp": float(x.grad),
    }
    print(value, found[value])
assert set(found[0.5].values()) == {1.0}
for value in (0.0, 1.0):
    assert found[value]["jnp.clip"] == 0.5 and found[value]["lax.clamp"] == 0
    assert found[value]["torch.clamp"] in (0, 1)
EOF
venv/bin/python check.py
