#!/usr/bin/env bash
# Guess: dm_pix's random_* functions, which take "...HWC", draw for each image of a batch.
# Seen:  one draw serves the whole batch: random_flip_left_right mirrors all images or none,
#        random_brightness, random_contrast and random_crop give all images the same change. Nothing
#        warns.
# Hurts: a batch of 256 gets one augmentation; gradients of a step see one brightness, and half of
#        the steps see only mirrored images.
# Do:    jax.vmap(lambda key, image: dm_pix.random_...(key, image))(jax.random.split(key,
#        len(images)), images).
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
import numpy as np

batch = jax.numpy.tile(jax.random.uniform(jax.random.key(0), (1, 16, 16, 3)), (64, 1, 1, 1))
calls = {
    "random_flip_left_right": lambda key, images: dm_pix.random_flip_left_right(key, images),
    "random_brightness": lambda key, images: dm_pix.random_brightness(key, images, 0.5),
    "random_contrast": lambda key, images: dm_pix.random_contrast(key, images, 0.5, 1.5),
    "random_crop": lambda key, images: dm_pix.random_crop(key, images, images.shape[:-3] + (8, 8, 3)),
}


def different(images):
    return len({np.asarray(image).tobytes() for image in images})


for name, call in calls.items():
    on_batch = [different(call(jax.random.key(seed), batch)) for seed in range(5)]
    mapped = different(jax.vmap(call)(jax.random.split(jax.random.key(1), 64), batch))
    print(f"{name}: different images among 64 equal ones: {on_batch}, under vmap {mapped}")
    assert on_batch == [1] * 5 and mapped > 1
EOF
venv/bin/python check.py
