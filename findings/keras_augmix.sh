#!/usr/bin/env bash
# Guess: keras.layers.AugMix(seed=1) repeats its images, and draws chains of operations anew for
#        each batch.
# Seen:  the operations come from Python's own random module: two layers of one seed give different
#        images until random.seed is called as well. In a tf.data map that choice is made once,
#        while the graph is traced: all batches of all epochs have the same operations in the same
#        order.
# Hurts: "AugMix" is one fixed chain for the whole training (in some runs it is "do nothing"); a
#        seed in the config does not say which one.
# Do:    random.seed for repeating; for variety draw the chain outside of the graph, or use another
#        AugMix.
# With:  keras 3.15.1, tensorflow 2.21.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'keras==3.15.1' 'tensorflow==2.21.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import os
import random

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")
import keras
import numpy as np
import tensorflow as tf

picture = np.random.default_rng(0).uniform(0, 255, (1, 16, 16, 3)).astype(np.float32)


def once():
    return np.asarray(keras.layers.AugMix(seed=1)(picture, training=True)).tobytes()


random.seed(0)
different = len({once() for _ in range(10)})
same = {(random.seed(7), once())[1] for _ in range(5)}
print(f"seed=1: {different} different images of 10; after random.seed(7) {len(same)} of 5")
assert different > 5 and len(same) == 1

choose, chosen = random.choice, []
random.choice = lambda options: (chosen.append(choose(options)), chosen[-1])[1]
layer = keras.layers.AugMix()
images = tf.data.Dataset.from_tensor_slices(np.repeat(picture, 64, 0)).batch(4)
batches = sum(1 for _ in images.repeat(5).map(lambda x: layer(x, training=True)))
print(f"tf.data: {batches} batches of 3 chains of up to 3 operations, {len(chosen)} choices were made: {chosen}")
assert batches == 80 and len(chosen) == 9
EOF
venv/bin/python check.py
