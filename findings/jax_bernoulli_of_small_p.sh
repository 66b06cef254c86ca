#!/usr/bin/env bash
# Guess: jax.random.bernoulli(key, p) is true with probability p, also for a small p.
# Seen:  the uniform number that is compared with p is a multiple of 2**-23, and 0 is one of them:
#        p = 1e-9 gives 14 ones in 10**8 draws where .1 is right; everything below 1.2e-7 acts as
#        1.2e-7. mode="high" is right.
# Hurts: rare events (hot pixels, lost frames, photons) over many pixels are a hundred times too
#        many.
# Do:    jax.random.bernoulli(key, p, mode="high"), or draw the number of events.
# With:  jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import functools

import jax


@functools.partial(jax.jit, static_argnames="mode")
def ones(key, p, mode):
    return jax.random.bernoulli(key, p, (2**24,), mode=mode).sum()


number, p = 6, 1e-9
counts = {
    mode: sum(int(ones(jax.random.key(i), p, mode)) for i in range(number)) for mode in ("low", "high")
}
print(f"{number * 2**24 / 1e6:.0f} million draws of p = {p}: ones {counts}, expected {number * 2**24 * p:.1f}")
assert 4 <= counts["low"] <= 25 and counts["high"] <= 2
EOF
venv/bin/python check.py
