"""Comparison of a corruption with the golden reference figures in a shared folder."""

import json

import jax
import numpy as np

import corruptions.batch
from tests.reference.features import features


def assert_matches_golden(clean, corrupt, reference, draws, reference_number):
    """Every feature's mean over images and draws lies within 3 standard errors + 2 % of the
    reference mean.

    Args:
      clean: uint8 [N, H, W, 3], the images the reference was made on.
      corrupt: draw number -> uint8 [N, H, W, 3].
      reference: feature name -> {"mean": [...], "std": [...]} of one corruption (and severity).
      draws: how many times `corrupt` is called.
      reference_number: images x draws behind the reference.
    """
    ours = [features(x, y) for d in range(draws) for x, y in zip(clean, corrupt(d), strict=True)]
    for name, expected in reference.items():
        mean, std = np.array(expected["mean"]), np.array(expected["std"])
        found = np.mean([np.atleast_1d(f[name]) for f in ours], axis=0)
        # The images are shared, so the spread between images (in std) makes these error bars wide,
        # not narrow.
        tolerance = 3 * std * np.sqrt(1 / reference_number + 1 / len(ours)) + 0.02 * np.abs(mean) + 1e-4
        assert np.all(np.abs(found - mean) <= tolerance), f"{name}: expected {mean} +- {tolerance}, found {found}"


def assert_features(shared, corruption, size):
    """Features of random outputs at the five severities, see `assert_matches_golden`."""
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
    """Deterministic outputs at the five severities: within one level, and equal but for a fraction
    `budget`.
    """
    golden = np.load(shared / "golden" / f"imagenet_c_{size}.npz")
    for severity in range(1, 6):
        found = corruptions.batch.corrupt(jax.random.key(0), golden["clean"], corruption, severity)
        difference = np.abs(np.asarray(found).astype(int) - golden[corruption.name][severity - 1])
        assert difference.max() <= 1
        assert (difference > 0).mean() <= budget[severity - 1]
