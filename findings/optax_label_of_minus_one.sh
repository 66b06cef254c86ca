#!/usr/bin/env bash
# Guess: softmax_cross_entropy_with_integer_labels leaves out pixels of label -1, or raises; so for
#        255, the "ignore" of segmentation masks.
# Seen:  -1 is the last class, as in NumPy's indexing: its loss is that of label 2 among three
#        classes. 255 gives nan, which a mean over the picture becomes.
# Hurts: a network for segmentation learns that unlabelled pixels are of the last class; nothing
#        says so.
# Do:    where=mask of the mean, with the ignored labels set to 0 before.
# With:  optax 0.2.8, jax 0.10.2, on a CPU
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'optax==0.2.8' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import jax.numpy as jnp
import numpy as np
import optax

logits = jnp.array([[5.0, 0.0, 0.0], [0.0, 0.0, 5.0]])


def loss(label):
    return np.asarray(optax.softmax_cross_entropy_with_integer_labels(logits, jnp.array([label, label])))


for label in (2, -1, 255):
    print(f"label {label}:", loss(label))
np.testing.assert_array_equal(loss(-1), loss(2))
assert np.isnan(loss(255)).all()
labels = jnp.array([-1, 2])
kept = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(labels, 0)).mean(where=labels >= 0)
np.testing.assert_allclose(kept, loss(2)[1])
EOF
venv/bin/python check.py
