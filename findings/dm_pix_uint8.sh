#!/usr/bin/env bash
# Guess: dm_pix on a uint8 picture changes it as it changes the same picture in [0, 1], or refuses
#        it.
# Seen:  adjust_brightness(x, .2) does nothing, adjust_contrast(x, .5) gives one flat colour,
#        rgb_to_grayscale black. Nothing warns.
# Hurts: a loader that leaves pictures in uint8 trains without brightness and with blank pictures,
#        in whatever share contrast is drawn.
# Do:    x.astype(float32) / 255 first.
# With:  dm-pix 0.4.5, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'dm-pix==0.4.5' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import dm_pix
import jax
import jax.numpy as jnp
import numpy as np

levels = jax.random.randint(jax.random.key(0), (16, 16, 3), 20, 220).astype(jnp.uint8)
calls = {
    "adjust_brightness": lambda x: dm_pix.adjust_brightness(x, 0.2),
    "adjust_contrast": lambda x: dm_pix.adjust_contrast(x, 0.5),
    "rgb_to_grayscale": lambda x: dm_pix.rgb_to_grayscale(x, keep_dims=True),
}
found = {}
for name, call in calls.items():
    integers = found[name] = np.asarray(call(levels)).astype(int)
    floats = np.asarray(call(levels / 255.0)) * 255
    print(f"{name:18} uint8: {integers.min()} to {integers.max()}; floats: {floats.min():.0f} to {floats.max():.0f}")
    assert floats.std() > 10
assert np.array_equal(found["adjust_brightness"], levels)
assert not np.ptp(found["adjust_contrast"], axis=(0, 1)).any() and not found["rgb_to_grayscale"].any()
EOF
venv/bin/python check.py
