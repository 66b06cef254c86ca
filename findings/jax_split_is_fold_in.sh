#!/usr/bin/env bash
# Guess: jax.random.split(key, n) and jax.random.fold_in(key, i) of one key give keys that have
#        nothing to do with each other.
# Seen:  split(key, n)[i] IS fold_in(key, i), bit for bit, for each n: noise for image 3 that was
#        made with fold_in(key, 3) is the noise of whatever took the fourth key of split(key).
# Hurts: dropout or augmentation whose key was split from a root, and noise that was folded from
#        the same root, are one draw: correlated where a study takes them for independent.
# Do:    split first, give each use its own part, and never use a key again that was split or
#        folded.
# With:  jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import jax
import numpy as np

key = jax.random.key(0)
for n in (2, 5, 100):
    for i in range(n):
        split, folded = jax.random.split(key, n)[i], jax.random.fold_in(key, i)
        assert np.array_equal(jax.random.key_data(split), jax.random.key_data(folded))
noise = jax.random.normal(jax.random.fold_in(key, 3), (8, 8))
other = jax.random.normal(jax.random.split(key, 10)[3], (8, 8))
print("noise of image 3 and of the fourth of ten keys differ by", float(abs(noise - other).max()))
assert np.array_equal(noise, other)
EOF
venv/bin/python check.py
