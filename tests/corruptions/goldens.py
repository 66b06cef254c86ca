"""Comparison of a corruption with the golden reference figures in a shared folder."""

import json

import jax
import numpy as np

import corruptions.batch
from tests.corruptions.features import assert_matches_golden


def assert_features(shared, corruption, size):
    """Features of random outputs at the five severities, see `features.assert_matches_golden`."""
    folder = shared / "golden"
    clean = np.load(folder / f"clean_{size}.npz")["images"]
    golden = json.loads((folder / f"imagenet_c_stats_{size}.json").read_text())
    for severity in range(1, 6):

        def corrupt(draw, severity=severity):
            key = jax.random.fold_in(jax.random.key(2), draw)
            return np.asarray(corruptions.batch.corrupt(key, clean, corruption, severity))

        number = golden["images"] * golden["draws_per_image"]
        reference = golden["corruptions"][corruption.name][str(severity)]
        assert_matches_golden(clean, corrupt, reference, 1 if size == 224 else 2, number)


def assert_pixels(shared, corruption, size, budget):
    """Deterministic outputs at the five severities: within one level, and equal but for a fraction `budget`."""
    golden = np.load(shared / "golden" / f"imagenet_c_{size}.npz")
    for severity in range(1, 6):
        found = corruptions.batch.corrupt(jax.random.key(0), golden["clean"], corruption, severity)
        difference = np.abs(np.asarray(found).astype(int) - golden[corruption.name][severity - 1])
        assert difference.max() <= 1
        assert (difference > 0).mean() <= budget[severity - 1]
