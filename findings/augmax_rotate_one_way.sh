#!/usr/bin/env bash
# Guess: augmax.Rotate((-30, 30), p=.5) turns half of the pictures, as many to the left as to the
#        right.
# Seen:  "whether" and "by how much" come from one key, so the pictures that are turned are those
#        with the small draws: with p=.5 every angle is below 0, with p=.25 below -15. With p=1 both
#        ways are equally frequent.
# Hurts: a network that was trained for invariance to rotations has seen one direction only.
# Do:    use p=1, and choose whether to apply it with a key of your own (jax.random.bernoulli and
#        jnp.where).
# With:  augmax 0.4.1, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'augmax==0.4.1' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import augmax
import jax
import jax.numpy as jnp
import numpy as np

rows, columns = jnp.mgrid[0:65, 0:65] - 32.0
picture = jnp.exp(-(rows**2 + (columns - 20) ** 2) / 8)[..., None]  # a blob to the right of the centre
keys = jax.random.split(jax.random.key(0), 1000)


def angles(p):
    turned = jax.jit(jax.vmap(lambda key: augmax.Rotate((-30, 30), p=p)(key, picture)))(keys)[..., 0]
    return np.degrees(np.arctan2((turned * rows).sum((1, 2)), (turned * columns).sum((1, 2))))


for p in (1.0, 0.5, 0.25):
    degrees = angles(p)
    one, other = (degrees > 0.5).mean(), (degrees < -0.5).mean()
    moved = np.abs(degrees[np.abs(degrees) > 0.5])
    print(f"p={p}: {one:.0%} turned one way, {other:.0%} the other, from {moved.min():.0f} to {moved.max():.0f} degrees")
    if p == 1:
        assert min(one, other) > 0.4
    else:
        assert max(one, other) > 0.8 * p and min(one, other) < 0.01
        assert moved.max() > 29 and (p == 0.5 or moved.min() > 14)
EOF
venv/bin/python check.py
