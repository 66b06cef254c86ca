#!/usr/bin/env bash
# Guess: datarax' rgb_to_hsv and hsv_to_rgb are inverse, so that a hue shift of 0 keeps the picture;
#        adjust_contrast keeps a flat picture, which has no contrast.
# Seen:  wherever red is largest and blue above green, a hue shift of 0 exchanges green and blue:
#        (.9, .1, .5) becomes (.9, .5, .1), for one pixel in six. adjust_contrast gives a flat grey
#        .5 a colour: (.7, .3, .7) at factor 2.
# Hurts: colour augmentation turns magenta into orange; blank crops become magenta or green.
# Do:    dm_pix.adjust_hue, adjust_saturation and adjust_contrast.
# With:  datarax 0.1.4 (the newest for Python 3.11), jax 0.10.2, numpy 2.3.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datarax==0.1.4' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.3.5'
cat > check.py <<'EOF'
import jax.numpy as jnp
import numpy as np
from datarax.operators.modality.image.functional import adjust_contrast, adjust_hue

magenta = jnp.broadcast_to(jnp.array([0.9, 0.1, 0.5]), (4, 4, 3))
shifted = np.asarray(adjust_hue(magenta, 0.0))[0, 0]
print("hue shift of 0: (.9, .1, .5) becomes", shifted.round(3))
assert np.allclose(shifted, [0.9, 0.5, 0.1], atol=1e-5)

noise = jnp.asarray(np.random.default_rng(0).random((64, 64, 3)), jnp.float32)
moved = (np.abs(adjust_hue(noise, 0.0) - noise).max(-1) > 1e-3).mean()
print(f"hue shift of 0 on noise: {moved:.1%} of the pixels change")
assert 0.14 < moved < 0.19

for factor, expected in [(0.5, [0.475, 0.525, 0.475]), (1.0, [0.5, 0.5, 0.5]), (2.0, [0.7, 0.3, 0.7])]:
    flat = np.asarray(adjust_contrast(jnp.full((8, 8, 3), 0.5), factor))[0, 0]
    print(f"contrast {factor} of a flat .5: {flat.round(3)}")
    assert np.allclose(flat, expected, atol=1e-5)
EOF
venv/bin/python check.py
