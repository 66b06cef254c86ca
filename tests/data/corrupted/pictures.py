"""Small corrupted pictures and their labels, and how a test reads a condition."""

import numpy as np

NUMBER = 7
LABELS = np.array([3, 1, 0, 1, 2, 3, 0])


def pixels(name, severity, shape=(NUMBER, 32, 32, 3)):
    """Noise that tells conditions apart."""
    return np.random.default_rng([severity, *name.encode()]).integers(0, 256, shape, np.uint8)


def whole(dataset, corruption, severity, batch_size=3):
    images, labels = zip(*dataset.batches(corruption, severity, batch_size))
    return np.concatenate(images), np.concatenate(labels)
