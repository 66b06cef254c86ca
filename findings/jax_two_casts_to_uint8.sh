#!/usr/bin/env bash
# Guess: jnp.asarray(x, dtype=jnp.uint8) and jnp.asarray(x).astype(jnp.uint8) are two spellings of
#        one cast.
# Seen:  of a NumPy array of floats outside of 0..255 the first wraps (300 -> 44, -1 -> 255: NumPy
#        casts, before JAX has the array), the second saturates (300 -> 255, -1 -> 0: XLA casts).
#        jnp.uint8(x) wraps as well.
# Hurts: noise that is added before the cast turns white pixels black in one spelling and not in the
#        other, and code that was tested eagerly on NumPy arrays changes its pixels when it moves
#        into jit.
# Do:    clip to [0, 255] and round before every cast to uint8.
# With:  jax 0.10.2, numpy 2.4.6, on a CPU
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import warnings

import jax
import jax.numpy as jnp
import numpy as np

warnings.simplefilter("ignore")
noisy = np.array([300.0, 256.4, 255.0, -1.0, -300.0], np.float32)
casts = {
    "jnp.asarray(x, dtype=uint8)": jnp.asarray(noisy, dtype=jnp.uint8),
    "jnp.uint8(x)": jnp.uint8(noisy),
    "jnp.asarray(x).astype(uint8)": jnp.asarray(noisy).astype(jnp.uint8),
    "jit(asarray(x, dtype=uint8))": jax.jit(lambda x: jnp.asarray(x, dtype=jnp.uint8))(noisy),
}
for name, values in casts.items():
    print(f"{name:30}", np.asarray(values))
wrapped, saturated = [44, 0, 255, 255, 212], [255, 255, 255, 0, 0]
for values, expected in zip(casts.values(), [wrapped, wrapped, saturated, saturated]):
    assert np.asarray(values).tolist() == expected
EOF
venv/bin/python check.py
