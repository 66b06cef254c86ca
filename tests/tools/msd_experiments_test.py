"""tools.msd --experiment=toy, subsets, resampling on one tiny network: results by their definitions, files that train."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import configs.msd
import configs.scheme
import corruptions
import data
import train
from corruptions import augment
from corruptions.augment import stored
from evaluation import trained_models
from evaluation.distances import centres, features, sampling
from runtime import meshes, workdirs
from tests.refusing import refuses
from tests.tools.msd_test import feature_of, untrained
from tests.training import tiny
from tools import msd
from training import batches, study
from training.batches import Plan

IMAGES = 10  # all of them, so that the tests know which
POOL = 12
NAME = "imagenet_c/contrast"  # which draws nothing, as op=autocontrast


def toy(**changed):
    config = configs.msd.get_config()
    config.msd.update({"images": 8, "transforms": 10, "draws": 6, "chunk": 5})
    config.msd.toy.update({"fractions": (0.0, 0.5, 0.9, 1.0)} | changed)
    return config


def subsets(**changed):
    config = configs.msd.get_config()
    config.msd.update({"images": IMAGES, "draws": 1, "severity": "2,5", "chunk": 4})
    config.msd.corruptions = ("imagenet_c/brightness", "imagenet_c/pixelate")
    config.msd.subsets.update({"scheme": "op=rotate", "pool": POOL, "sizes": (1, 5)} | changed)
    return config


def resampling(**changed):
    config = configs.msd.get_config("smoke")
    config.msd.update({"corruptions": (NAME,), "severity": "3", "chunk": 2})
    asked = {"scheme": "op=autocontrast", "pairs": 1, "resamplings": 3, "images": (3, 8), "draws": (1, 2)}
    config.msd.resampling.update(asked | changed)
    return config


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return untrained(tmp_path_factory.mktemp("experiments"), IMAGES)


@pytest.fixture(scope="module")
def images():
    return jnp.asarray(data.load("shapes", train_limit=IMAGES, test_limit=10).train.images)


@pytest.fixture(scope="module")
def feature(trained):
    return feature_of(trained)


@pytest.fixture(scope="module")
def mixed(trained):
    return msd.toy(toy(), trained)


def test_mixtures_by_their_definition(trained, mixed):
    names = ("imagenet_c.motion_blur-3", "imagenet_c.impulse_noise-3")
    blur, noise = (np.load(trained / "toy" / "features" / f"{name}.npz")["features"].astype(float) for name in names)
    stored_centres = [np.load(trained / "toy" / "centres" / f"{name}.npz")["centre"][0] for name in names]
    expected = []
    for fraction, number in ((0.0, 0), (0.5, 5), (0.9, 9), (1.0, 10)):
        mixture = [*blur[:number], *noise[number:]]
        for name, centre in zip(("imagenet_c/motion_blur", "imagenet_c/impulse_noise"), stored_centres):
            least = min(np.linalg.norm(one - centre) for one in mixture)
            expected.append((fraction, name, least, np.linalg.norm(np.mean(mixture, axis=0) - centre)))
    assert [row[:2] for row in mixed] == [row[:2] for row in expected]
    np.testing.assert_allclose([row[2:] for row in mixed], [row[2:] for row in expected], rtol=1e-5)
    # MSD jumps at the end, MMD grows.
    least, mean = np.array([row[2:] for row in mixed if row[1] == "imagenet_c/impulse_noise"]).T
    assert least[-1] > 2 * least[-2] and np.all(np.diff(mean) > 0)


def test_mixtures_are_files_and_nothing_is_measured_again(trained, mixed, monkeypatch):
    assert (trained / "toy" / "toy.png").stat().st_size > 1000
    assert len((trained / "toy" / "toy.csv").read_text().splitlines()) == 1 + 8
    monkeypatch.setattr(features.Extractor, "stream", None)
    assert msd.toy(toy(), trained) == mixed


@pytest.mark.parametrize(
    ("run", "config", "message"),
    [
        (msd.toy, toy(second="motion_blur"), "expected two corruptions"),
        (msd.toy, toy(severity="2,3"), "expected one severity"),
        (msd.toy, toy(fractions=(0.0, 2.0)), "expected fractions"),
    ],
)
def test_what_is_wrong_is_refused(trained, mixed, run, config, message):
    with pytest.raises(ValueError, match=message):
        run(config, trained)


@pytest.fixture(scope="module")
def rows(trained):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "PART", 8)  # two parts
        return msd.subsets(subsets(), trained)


def test_files_hold_both_ends_of_the_order(trained, rows, images, feature):
    assert [row[:2] for row in rows] == [(kind, size) for kind in ("closest", "farthest", "random") for size in (1, 5)]
    files = {row[:2]: stored.read(trained / "subsets" / f"{row[0]}_{row[1]}.npz") for row in rows}
    references = [np.load(path)["centre"][0] for path in sorted((trained / "subsets" / "centres").glob("*.npz"))]
    distances = {}
    for kind in ("closest", "farthest"):
        numbers = files[kind, 5].origin["numbers"]
        assert len(set(numbers)) == 5 and files[kind, 1].origin["numbers"][0] in (numbers[0], numbers[-1])
        params = {name: value[0] for name, value in files[kind, 1].params.items()}
        turned = jax.vmap(augment.get("op=rotate").apply, (0, None))(images.astype(jnp.float32) / 255, params)
        mean = np.asarray(feature(turned)).mean(0)
        distances[kind] = np.array([np.linalg.norm(mean - reference) for reference in references])
    assert distances["closest"].min() < distances["farthest"].min()
    # MSD of a single transform is its distance, averaged over the references.
    assert rows[0][2] == pytest.approx(distances["closest"].mean(), rel=1e-3)
    assert rows[0][2] < rows[2][2] and rows[1][2] <= rows[0][2]


def test_subsets_are_not_measured_again(trained, rows, monkeypatch):
    monkeypatch.setattr(sampling, "PART", 8)
    monkeypatch.setattr(features.Extractor, "stream", None)
    assert msd.subsets(subsets(), trained) == rows
    more = msd.subsets(subsets(sizes=(12,)), trained)  # the whole pool: three times the same set
    assert len({row[2] for row in more}) == 1
    refuses(lambda: msd.subsets(subsets(pool=13), trained), "stored 12, asked 13", kind=workdirs.WorkdirError)


def test_a_stored_subset_trains_and_is_known_by_its_content(trained, rows, tmp_path):
    """Each image of a batch has one of the stored rotations; the file may move, but not change."""
    file = trained / "subsets" / "closest_5.npz"
    name = f"stored={file}"
    assert configs.scheme.get_config(name + ",cpu").train.scheme == name
    config = tiny.config(scheme=name, epochs=1, flip=False)
    train.train_and_evaluate(config, tmp_path / "run")
    one = study.model_config(config, "standard", 0)
    stored_config = workdirs.read_json(tmp_path / "run" / "config.json")
    assert stored_config["train"]["scheme"] == one.train.scheme == stored.read(file).scheme_name
    moved, other = file.rename(file.with_name("moved.npz")), file.with_name("random_5.npz")
    train.train_and_evaluate(tiny.config(scheme=f"stored={moved}", epochs=1, flip=False), tmp_path / "run")
    refuses(
        lambda: train.train_and_evaluate(tiny.config(scheme=f"stored={other}", epochs=1, flip=False), tmp_path / "run"),
        "train.scheme: stored 'stored=closest_5@",
        kind=workdirs.WorkdirError,
    )
    ((model, _),) = trained_models.list_models(tmp_path / "run")
    assert model == one.train.scheme
    moved.rename(file)
    split = data.load("shapes", train_limit=160, test_limit=70).train.to_device()
    plan = Plan(one.train, split.images.shape)
    keys = batches.Keys(*jax.random.split(jax.random.key(1), 4))
    shown, _ = batches.block(plan, split, np.arange(160), 0, keys, meshes.data_mesh(32))
    turn = jax.jit(jax.vmap(jax.vmap(augment.get("op=rotate").apply, (None, 0)), (0, None)))
    turned = turn(split.images.astype(np.float32) / 255, stored.read(file).params)
    error = np.abs(np.asarray(shown).reshape(160, 1, 32, 32, 3) - turned).max((2, 3, 4))
    assert error.min(1).max() < 1e-6 and len(set(error.argmin(1))) == 5
    recipe = one.train
    recipe.transforms = str(other)
    refuses(lambda: Plan(recipe, (160, 32, 32, 3)), "transforms stored=closest_5@", "stored=random_5@")


@pytest.fixture(scope="module")
def resampled(trained):
    """(rows of resampling.csv, the images of each resampling)."""
    shown, with_images = [], centres.Measured.with_images
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centres.Measured, "with_images", lambda self, r, w: shown.append(r) or with_images(self, r, w))
        return msd.resampling(resampling(), trained), shown


def test_a_pairs_distances_are_those_of_its_images(trained, resampled, images, feature):
    """Each resampling has images of its own, smaller numbers are the first of them."""
    found, shown = resampled
    scheme = augment.get("op=autocontrast")
    params = scheme.sample(jax.random.key(0), (32, 32, 3))
    augmented = jax.vmap(scheme.apply, (0, None))(images.astype(jnp.float32) / 255, params)
    corrupted = corruptions.corrupt(jax.random.key(0), images, NAME, 3)
    a, c = (np.asarray(feature(of), float) for of in (augmented, corrupted.astype(jnp.float32) / 255))
    expected = np.array([[np.linalg.norm((a[r[:n]] - c[r[:n]]).mean(0)) for n in (3, 8)] for r in shown])
    kept = np.load(trained / "resampling" / "pairs" / "0.npz")["distances"]
    assert kept.shape == (3, 2, 2) and len({tuple(sorted(r)) for r in shown}) == 3
    np.testing.assert_allclose(kept, np.repeat(expected[:, :, None], 2, axis=2), rtol=1e-3)
    spread = 100 * expected.std(0, ddof=1) / expected.mean(0)
    assert [(row.images, row.draws) for row in found] == [(3, 1), (3, 2), (8, 1), (8, 2)]
    np.testing.assert_allclose([row.spread for row in found], np.repeat(spread, 2), rtol=0.02)


def test_only_the_pairs_that_are_missing_are_measured(trained, resampled, monkeypatch):
    assert (trained / "resampling" / "resampling.png").stat().st_size > 1000
    assert len((trained / "resampling" / "resampling.csv").read_text().splitlines()) == 1 + 4
    numbers, measure = [], msd.sampling.pair_distances
    monkeypatch.setattr(msd.sampling, "pair_distances", lambda *given: numbers.append(given[2]) or measure(*given))
    more = msd.resampling(resampling(pairs=2), trained)
    assert numbers == [1] and {row.pairs for row in more} == {2}
    assert str(msd.resampling(resampling(), trained)) == str(resampled[0]) and numbers == [1]
    refuses(lambda: msd.resampling(resampling(resamplings=4), trained), "stored 3, asked 4", kind=workdirs.WorkdirError)


def test_features_that_are_not_finite_are_refused(trained, resampled, monkeypatch):
    mean_features = features.mean_features
    monkeypatch.setattr(features, "mean_features", lambda *given: mean_features(*given) * jnp.nan)
    refuses(lambda: msd.resampling(resampling(pairs=3), trained), "for images under imagenet_c/contrast")
    assert not (trained / "resampling" / "pairs" / "2.npz").exists()


def test_the_papers_sizes():
    asked = configs.msd.get_config("paper").msd
    assert asked.transforms == 100_000 and asked.images == asked.draws == 100
    assert len(features.find(asked.schemes)) == 512 + 3
    assert configs.msd.get_config().msd.transforms == configs.msd.get_config("shapes").msd.transforms == 1000
    asked = configs.msd.get_config("subsets").msd.subsets
    assert asked.pool == 100_000 and len(asked.sizes) == 10 + 9 + 9 + 9 + 8 + 6
    assert asked.sizes[:11] == (*range(1, 11), 20)
    assert asked.sizes[-7:] == (90_000, 97_000, 99_000, 99_700, 99_900, 99_970, 99_990)
