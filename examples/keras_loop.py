"""Corruptions in Keras on its JAX backend: the layer corrupts while training and does nothing at test time.

    KERAS_BACKEND=jax python -m examples.keras_loop       # needs Keras 3

The layer runs inside the training step that Keras compiles, so images stay on the device.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

import data
from corruptions.adapters.keras import Corrupt


def main():
    dataset = data.load("shapes", train_limit=500, test_limit=100)
    images, tests = (split.images / np.float32(255) for split in (dataset.train, dataset.test))
    keras.utils.set_random_seed(0)
    corrupt = Corrupt("noc/border", value_range=(0, 1), seed=0)
    layers = [
        keras.layers.Input(images.shape[1:]),
        corrupt,
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        keras.layers.GlobalMaxPooling2D(),
        keras.layers.Dense(10),
    ]
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    history = model.fit(images, dataset.train.labels, batch_size=50, epochs=8, verbose=0).history["loss"]
    changed = np.mean(np.any(np.asarray(corrupt(tests, training=True)) != tests, axis=(1, 2, 3)))
    same = np.array_equal(corrupt(tests, training=False), tests)
    _, accuracy = model.evaluate(tests, dataset.test.labels, verbose=0)
    print(f"loss {history[0]:.3f} -> {history[-1]:.3f}; in training {changed:.0%} of images are corrupted,")
    print(f"at test time {'none' if same else 'some'}; test accuracy {accuracy:.0%}")


if __name__ == "__main__":
    main()
