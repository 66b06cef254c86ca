#!/usr/bin/env bash
# Guess: augmax.ColorJitter(saturation=.9) changes saturation; with hue alone it changes hue.
# Seen:  saturation is drawn and dropped: saturation=.9 and .1 give the same pixels, bit for bit.
#        And with p=1 and brightness=0, contrast=.5 or hue=.5 do nothing at all: as many keys are
#        made as there are strengths above 0, and the first of them goes to brightness even where
#        brightness is 0.
# Hurts: "colour jitter .4, .4, .4, .1" trains without saturation, and an ablation of hue alone is
#        one of nothing.
# Do:    use dm_pix.random_hue, random_saturation, random_contrast under vmap.
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
import numpy as np

picture = jax.random.uniform(jax.random.key(1), (16, 16, 3))
none = dict(brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0)


def jittered(key, **strengths):
    return np.asarray(augmax.ColorJitter(p=1.0, **{**none, **strengths})(key, picture))


for name in none:
    changes = [np.abs(jittered(key, **{name: 0.5}) - picture).max() for key in jax.random.split(jax.random.key(0), 20)]
    print(f"{name}=.5 alone: the largest change over 20 keys is {max(changes):.6f}")
    assert max(changes) > 0.2 if name == "brightness" else max(changes) < 1e-5

all_of_them = dict(brightness=0.2, contrast=0.2, hue=0.1)
for key in jax.random.split(jax.random.key(2), 20):
    assert np.array_equal(jittered(key, saturation=0.9, **all_of_them), jittered(key, saturation=0.1, **all_of_them))
print("with all four, saturation=.9 and saturation=.1: equal bits for 20 keys")
EOF
venv/bin/python check.py
