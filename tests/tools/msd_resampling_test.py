"""tools.msd --experiment=resampling on a tiny network: the distances of its pairs from the images it chose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import configs.msd
import corruptions
import data
from corruptions import augment
from evaluation import trained_models
from evaluation.distances import centres, features
from runtime import meshes, workdirs
from tests.training import tiny
from tools import msd

TRAINING = 10
NAME = "imagenet_c/contrast"  # which draws nothing, as the scheme


def settings(**changed):
    config = configs.msd.get_config("smoke")
    config.msd.update({"corruptions": (NAME,), "severity": "3", "chunk": 2})
    config.msd.resampling.update(
        {"scheme": "op=autocontrast", "pairs": 1, "resamplings": 3, "images": (3, 8), "draws": (1, 2)} | changed
    )
    return config


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    config = tiny.config()
    config.dataset.train_limit = TRAINING
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("resampling") / "work", config)
    rows, with_images = [], centres.Measured.with_images
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centres.Measured, "with_images", lambda self, r, w: rows.append(r) or with_images(self, r, w))
        found = msd.resampling(settings(), folder)
    return folder, found, rows


def test_a_pairs_distances_are_those_of_its_images(measured):
    """Each resampling has images of its own, smaller numbers are the first of them."""
    folder, found, rows = measured
    images = jnp.asarray(data.load("shapes", train_limit=TRAINING, test_limit=10).train.images)
    ((graphdef, state),) = trained_models.read_models(folder, 10, 32, meshes.data_mesh(1)).values()
    model = nnx.merge(graphdef, state.params, state.statistics)
    scheme = augment.get("op=autocontrast")
    params = scheme.sample(jax.random.key(0), (32, 32, 3))
    augmented = jax.vmap(scheme.apply, (0, None))(images.astype(jnp.float32) / 255, params)
    corrupted = corruptions.corrupt(jax.random.key(0), images, NAME, 3)
    feature = jax.jit(lambda shown: model(shown, train=False)[1]["penultimate"])
    a, c = (np.asarray(feature(shown), float) for shown in (augmented, corrupted.astype(jnp.float32) / 255))
    expected = np.array([[np.linalg.norm((a[r[:n]] - c[r[:n]]).mean(0)) for n in (3, 8)] for r in rows])
    stored = np.load(folder / "resampling" / "pairs" / "0.npz")["distances"]
    assert stored.shape == (3, 2, 2) and len({tuple(sorted(r)) for r in rows}) == 3
    np.testing.assert_allclose(stored, np.repeat(expected[:, :, None], 2, axis=2), rtol=1e-3)
    spread = 100 * expected.std(0, ddof=1) / expected.mean(0)
    assert [(row.images, row.draws) for row in found] == [(3, 1), (3, 2), (8, 1), (8, 2)]
    np.testing.assert_allclose([row.spread for row in found], np.repeat(spread, 2), rtol=0.02)


def test_results_are_files_and_only_what_is_missing_is_measured(measured, monkeypatch):
    folder, found, _ = measured
    assert (folder / "resampling" / "resampling.png").stat().st_size > 1000
    assert len((folder / "resampling" / "resampling.csv").read_text().splitlines()) == 1 + 4
    numbers, pair_distances = [], msd.sampling.pair_distances
    monkeypatch.setattr(
        msd.sampling, "pair_distances", lambda *given: numbers.append(given[2]) or pair_distances(*given)
    )
    more = msd.resampling(settings(pairs=2), folder)
    assert numbers == [1] and {row.pairs for row in more} == {2}
    assert str(msd.resampling(settings(), folder)) == str(found) and numbers == [1]
    with pytest.raises(workdirs.WorkdirError, match="resamplings: stored 3, asked 4"):
        msd.resampling(settings(resamplings=4), folder)


def test_features_that_are_not_finite_are_refused(measured, monkeypatch):
    folder = measured[0]
    mean_features = features.mean_features
    monkeypatch.setattr(features, "mean_features", lambda *given: mean_features(*given) * jnp.nan)
    with pytest.raises(ValueError, match="expected finite outputs for images under imagenet_c/contrast"):
        msd.resampling(settings(pairs=3), folder)
    assert not (folder / "resampling" / "pairs" / "2.npz").exists()
