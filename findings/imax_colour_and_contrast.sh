#!/usr/bin/env bash
# Guess: imax' color(image, factor) and contrast(image, factor), "equivalent of PIL Color" and "PIL
#        Contrast", equal Pillow's ImageEnhance, as its brightness, posterize and equalize do.
# Seen:  the weights of the grey picture are cast to uint8, so grey is 0: color(x, 0) is black,
#        color(x, .5) half as bright. contrast goes towards height * width / 256 in place of the
#        mean: 4 at 32 x 32, 16 at 64 x 64, 196 at 224 x 224.
# Hurts: RandAugment of this package darkens wherever it says colour or contrast; results depend on
#        the picture's size.
# Do:    blend with your own grey picture and mean.
# With:  imax 0.0.1b11, jax 0.10.2, Pillow 13.0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'imax==0.0.1b11' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'pillow==13.0.0'
cat > check.py <<'EOF'
import jax.numpy as jnp
import numpy as np
from imax import color_transforms
from PIL import Image, ImageEnhance


def means(name, side, factor):
    picture = np.random.default_rng(0).integers(40, 216, (side, side, 3)).astype(np.uint8)
    ours = getattr(color_transforms, name)(jnp.array(picture), factor)
    pillows = getattr(ImageEnhance, name.capitalize())(Image.fromarray(picture)).enhance(factor)
    result = float(np.asarray(ours).mean()), float(np.asarray(pillows).mean())
    print(f"{name}({factor}) of {side} x {side}: mean {result[0]:.1f}, Pillow {result[1]:.1f}")
    return result


assert means("color", 32, 0.0)[0] == 0
assert abs(means("color", 32, 0.5)[0] - 64) < 2
for side, constant in [(32, 4), (64, 16), (224, 196)]:
    theirs, pillows = means("contrast", side, 0.0)
    assert theirs == constant and abs(pillows - 127) < 5
theirs, pillows = means("brightness", 32, 0.5)
assert abs(theirs - pillows) < 0.6
EOF
venv/bin/python check.py
