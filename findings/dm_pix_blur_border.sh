#!/usr/bin/env bash
# Guess: dm_pix.gaussian_blur of a flat picture is that flat picture, as with SciPy, OpenCV, Pillow
#        and kornia.
# Seen:  it pads with zeros: with sigma 2 the edge of a flat .5 is .30 and a corner .18. No argument
#        changes that (padding="VALID" makes the picture smaller).
# Hurts: as a blur corruption or in SimCLR's augmentations it draws a dark frame that a network can
#        learn; on 32x32 pictures the frame of kernel 7 covers a third of the pixels.
# Do:    pad by jnp.pad(..., mode="edge" or "reflect") first and blur with padding="VALID".
# With:  dm-pix 0.4.5, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'dm-pix==0.4.5' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import dm_pix
import jax.numpy as jnp
import numpy as np

flat = jnp.full((32, 32, 3), 0.5)
blurred = np.asarray(dm_pix.gaussian_blur(flat, sigma=2.0, kernel_size=7))[..., 0]
darker = (blurred < 0.499).mean()
print(f"corner {blurred[0, 0]:.3f}, edge {blurred[16, :4].round(3)}, {darker:.0%} of the pixels are darker")
assert abs(blurred[0, 0] - 0.185) < 0.005 and abs(blurred[16, 0] - 0.304) < 0.005
assert 0.3 < darker < 0.4 and abs(blurred[16, 16] - 0.5) < 1e-6

padded = jnp.pad(flat, [(3, 3), (3, 3), (0, 0)], mode="edge")
instead = np.asarray(dm_pix.gaussian_blur(padded, sigma=2.0, kernel_size=7, padding="VALID"))
assert instead.shape == flat.shape and np.abs(instead - 0.5).max() < 1e-6
EOF
venv/bin/python check.py
