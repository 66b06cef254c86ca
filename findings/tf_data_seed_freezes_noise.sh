#!/usr/bin/env bash
# Guess: tf.random.set_seed makes a training with random noise in a tf.data map repeatable; each
#        epoch has its own noise.
# Seen:  with a global seed, or with seed= of the operation, each new pass over the dataset starts
#        the same numbers again: all epochs of model.fit see identical noise. Without any seed each
#        epoch differs. repeat() before the map, in one pass, goes on drawing.
# Hurts: the run with a seed, the one that goes into the paper, is trained without augmentation but
#        for one fixed corruption of each image.
# Do:    tf.random.Generator.from_seed outside of the map, or stateless operations with the epoch in
#        their seed.
# With:  tensorflow 2.21.0, keras 3.15.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'tensorflow==2.21.0' 'keras==3.15.1' 'numpy==2.4.6'
cat > check.py <<'EOF'
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

numbers = tf.data.Dataset.range(4)


def passes(dataset, n=3):
    return [[round(float(value), 3) for value in dataset] for _ in range(n)]


def different(name, dataset):
    epochs = passes(dataset)
    print(f"{name:28} first values of three epochs {[epoch[0] for epoch in epochs]}")
    return len({tuple(epoch) for epoch in epochs})


assert different("no seed", numbers.map(lambda i: tf.random.normal([]))) == 3
assert different("seed of the operation", numbers.map(lambda i: tf.random.normal([], seed=1))) == 1
image = tf.zeros([1, 1, 3])
assert different("tf.image, seed=1", numbers.map(lambda i: tf.image.random_brightness(image, 0.5, seed=1)[0, 0, 0])) == 1
tf.random.set_seed(0)
assert different("tf.random.set_seed(0)", numbers.map(lambda i: tf.random.normal([]))) == 1
generator = tf.random.Generator.from_seed(1)
assert different("Generator.from_seed(1)", numbers.map(lambda i: generator.normal([]))) == 3
[twice] = passes(numbers.map(lambda i: tf.random.normal([])).repeat(2), 1)
assert twice[:4] != twice[4:]
EOF
venv/bin/python check.py
