#!/usr/bin/env bash
# Guess: augmax.RandomSizedCrop(..., prevent_underzoom=True), its default, never shows what is
#        outside of the picture, and augmax.Warp, "similar to ElasticTransform", bends a CIFAR
#        picture.
# Seen:  half of the crops of the picture's own size have black borders, over up to 75 % of the
#        area: the bound is the logarithm of a zoom and is compared with zooms. Warp draws one
#        displacement for each 32 x 32 pixels: a picture of 32 x 32 is moved as a whole, by the same
#        amount everywhere.
# Hurts: training on CIFAR sees black frames that nobody asked for, and no elastic deformation.
# Do:    zoom_range=(1, 2) for crops of the picture's size; Warp(coarseness=8) for small pictures.
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

keys = jax.random.split(jax.random.key(0), 200)
white = jnp.ones((32, 32, 1))
black = np.asarray(jax.vmap(lambda key: augmax.RandomSizedCrop(32, 32)(key, white))(keys) == 0).mean((1, 2, 3))
bounded = jax.vmap(lambda key: augmax.RandomSizedCrop(32, 32, zoom_range=(1.0, 2.0))(key, white))(keys)
print(f"crops with black borders: {(black > 0).mean():.0%}, black up to {black.max():.0%} of the area")
assert 0.4 < (black > 0).mean() < 0.6 and black.max() > 0.6 and (np.asarray(bounded) > 0).all()

positions = jnp.moveaxis(jnp.mgrid[0:32, 0:32].astype(jnp.float32), 0, -1)
for coarseness in (32, 8):
    moved = np.asarray(augmax.Warp(strength=2, coarseness=coarseness)(keys[0], positions) - positions)[8:24, 8:24]
    print(f"Warp(coarseness={coarseness}): moved by {moved.mean((0, 1))}, deviation within the picture {moved.std((0, 1))}")
    assert (moved.std((0, 1)) < 1e-4).all() if coarseness == 32 else (moved.std((0, 1)) > 0.3).all()
EOF
venv/bin/python check.py
