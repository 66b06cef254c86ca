#!/usr/bin/env bash
# Guess: dm_pix.adjust_saturation(x, 0) gives the grey picture, of the luma that rgb_to_grayscale
#        gives.
# Seen:  it works in HSV: factor 0 gives the largest channel, so pure blue becomes white (luma
#        .11) and every picture brighter, by .25 on average for noise. torchvision, Pillow and
#        kornia blend with the luma.
# Hurts: SimCLR-like augmentation brightens whenever it desaturates; "saturation" of two libraries
#        are two corruptions.
# Do:    blend with dm_pix.rgb_to_grayscale.
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

blue = jnp.array([[[0.0, 0.0, 1.0]]])
grey = [float(dm_pix.adjust_saturation(blue, 0.0)[0, 0, c]) for c in range(3)]
luma = float(dm_pix.rgb_to_grayscale(blue)[0, 0, 0])
print("blue at saturation 0:", grey, "its luma", round(luma, 3))
assert np.allclose(grey, 1) and luma < 0.2
noise = jax.random.uniform(jax.random.key(0), (64, 64, 3))
brighter = float(dm_pix.adjust_saturation(noise, 0.0).mean() - noise.mean())
print(f"noise gets brighter by {brighter:.2f}")
assert 0.2 < brighter < 0.3
EOF
venv/bin/python check.py
