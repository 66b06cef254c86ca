#!/usr/bin/env bash
# Guess: jax.random.key(seed) of two different seeds gives two different keys, or raises where a
#        seed is too large; so does fold_in of two numbers.
# Seen:  without x64 only the lowest 32 bits of a seed count: key(2**32) is key(0), key(2**32 + 7)
#        key(7), without a word. fold_in(key, np.int64(2**32)) is fold_in(key, 0); the Python int
#        2**32 raises there.
# Hurts: seeds made of a hash, a time in nanoseconds or of "study * 2**32 + run" collide;
#        identifiers of records that are folded in (64-bit hashes of file names) share their
#        noise.
# Do:    fold in the upper and the lower 32 bits one after the other.
# With:  jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import jax
import numpy as np


def data(key):
    return jax.random.key_data(key).tolist()


key = jax.random.key(0)
print("key(0)      ", data(key), " key(2**32)  ", data(jax.random.key(2**32)))
assert data(jax.random.key(2**32)) == data(key) and data(jax.random.key(2**32 + 7)) == data(jax.random.key(7))
assert data(jax.random.key(7)) != data(key)
large = jax.random.fold_in(key, np.int64(2**32))
print("fold_in 0   ", data(jax.random.fold_in(key, 0)), " int64(2**32)", data(large))
assert data(large) == data(jax.random.fold_in(key, 0)) != data(jax.random.fold_in(key, 1))
try:
    jax.random.fold_in(key, 2**32)
except OverflowError as error:
    print("the Python int 2**32:", type(error).__name__, error)
else:
    raise AssertionError("fold_in takes 2**32")
EOF
venv/bin/python check.py
