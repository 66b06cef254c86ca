"""tools.msd --experiment=subsets on a tiny network: the files it writes are the nearest, the farthest and random
transforms, and train.
"""

import jax
import numpy as np
import pytest
from flax import nnx

import configs.msd
import configs.scheme
import data
import train
from corruptions import augment
from corruptions.augment import stored
from evaluation import trained_models
from evaluation.distances import features, sampling
from runtime import meshes, workdirs
from tests.training import tiny
from tools import msd
from training import batches, study
from training.batches import Plan

IMAGES = 10  # all of them, so that the test knows which
POOL = 12


def settings(**subsets):
    config = configs.msd.get_config()
    config.msd.update(
        {
            "images": IMAGES,
            "draws": 1,
            "severity": "2,5",
            "corruptions": ("imagenet_c/brightness", "imagenet_c/pixelate"),
            "chunk": 4,
        }
    )
    config.msd.subsets.update({"scheme": "op=rotate", "pool": POOL, "sizes": (1, 5)} | subsets)
    return config


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    config = tiny.config()
    config.dataset.train_limit = IMAGES
    return tiny.untrained_workdir(tmp_path_factory.mktemp("subsets") / "work", config)


@pytest.fixture(scope="module")
def measured(trained):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "PART", 8)  # two parts
        return trained, msd.subsets(settings(), trained)


def distances(folder, params):
    """Mean distance, and distances [references], of one stored transform, from its definition."""
    images = data.load("shapes", train_limit=IMAGES, test_limit=10).train.images.astype(np.float32) / 255
    ((graphdef, state),) = trained_models.read_models(folder, 10, 32, meshes.data_mesh(1)).values()
    model = nnx.merge(graphdef, state.params, state.statistics)

    @jax.jit
    def features(images, params):
        shown = jax.vmap(augment.get("op=rotate").apply, (0, None))(images, params)
        return model(shown, train=False)[1]["penultimate"]

    feature = np.asarray(features(images, params)).mean(0)
    references = [np.load(path)["centre"][0] for path in sorted((folder / "subsets" / "centres").glob("*.npz"))]
    return np.array([np.linalg.norm(feature - reference) for reference in references])


def test_files_hold_both_ends_of_the_order(measured):
    folder, rows = measured
    assert [row[:2] for row in rows] == [(kind, size) for kind in ("closest", "farthest", "random") for size in (1, 5)]
    files = {row[:2]: stored.read(folder / "subsets" / f"{row[0]}_{row[1]}.npz") for row in rows}
    for kind in ("closest", "farthest"):
        numbers = files[kind, 5].origin["numbers"]
        assert len(set(numbers)) == 5 and files[kind, 1].origin["numbers"][0] in (numbers[0], numbers[-1])
    near, far = (files[kind, 1].params for kind in ("closest", "farthest"))
    near, far = ({name: value[0] for name, value in one.items()} for one in (near, far))
    assert distances(folder, near).min() < distances(folder, far).min()
    # MSD of a single transform is its distance, averaged over the references.
    assert rows[0][2] == pytest.approx(distances(folder, near).mean(), rel=1e-3)
    assert rows[0][2] < rows[2][2] and rows[1][2] <= rows[0][2]


def test_a_second_run_measures_nothing_again(measured, monkeypatch):
    folder, rows = measured
    monkeypatch.setattr(sampling, "PART", 8)
    monkeypatch.setattr(features.Extractor, "stream", None)
    assert msd.subsets(settings(), folder) == rows
    more = msd.subsets(settings(sizes=(12,)), folder)  # the whole pool: three times the same set
    assert len({row[2] for row in more}) == 1
    with pytest.raises(workdirs.WorkdirError, match="pool: stored 12, asked 13"):
        msd.subsets(settings(pool=13), folder)


@pytest.mark.parametrize("sizes", [(), (13,), (0, 3)])
def test_sizes_outside_of_the_pool_are_refused(measured, sizes):
    with pytest.raises(ValueError, match=r"sizes in 1\.\.12, the pool"):
        msd.subsets(settings(sizes=sizes), measured[0])


def test_a_stored_subset_trains_and_is_known_by_its_content(measured, tmp_path):
    """Each image of a batch has one of the stored rotations; the file may move, but not change."""
    file = measured[0] / "subsets" / "closest_5.npz"
    name = f"stored={file}"
    assert configs.scheme.get_config(name + ",cpu").train.scheme == name
    config = tiny.config(scheme=name, epochs=1, flip=False)
    train.train_and_evaluate(config, tmp_path / "run")
    one = study.model_config(config, "standard", 0)
    stored_config = workdirs.read_json(tmp_path / "run" / "config.json")
    assert stored_config["train"]["scheme"] == one.train.scheme == stored.read(file).scheme_name
    moved = file.rename(file.with_name("moved.npz"))
    train.train_and_evaluate(tiny.config(scheme=f"stored={moved}", epochs=1, flip=False), tmp_path / "run")
    other = file.with_name("random_5.npz")
    with pytest.raises(workdirs.WorkdirError, match=r"train\.scheme: stored 'stored=closest_5@"):
        train.train_and_evaluate(tiny.config(scheme=f"stored={other}", epochs=1, flip=False), tmp_path / "run")
    ((model, _),) = trained_models.read_models(tmp_path / "run", 10, 32, meshes.data_mesh(1))
    assert model == one.train.scheme
    moved.rename(file)
    split = data.load("shapes", train_limit=160, test_limit=70).train.to_device()
    plan = Plan(one.train, split.images.shape)
    keys = batches.Keys(*jax.random.split(jax.random.key(1), 4))
    images, _ = batches.block(plan, split, np.arange(160), 0, keys, meshes.data_mesh(32))
    params = stored.read(file).params
    turned = jax.jit(jax.vmap(jax.vmap(augment.get("op=rotate").apply, (None, 0)), (0, None)))(
        split.images.astype(np.float32) / 255, params
    )
    error = np.abs(np.asarray(images).reshape(160, 1, 32, 32, 3) - turned).max((2, 3, 4))
    assert error.min(1).max() < 1e-6 and len(set(error.argmin(1))) == 5


def test_the_file_must_be_the_one_of_the_config(measured):
    folder = measured[0] / "subsets"
    recipe = study.model_config(tiny.config(scheme=f"stored={folder / 'closest_5.npz'}"), "standard", 0).train
    recipe.transforms = str(folder / "random_5.npz")
    with pytest.raises(ValueError, match=r"expected the transforms stored=closest_5@.* found stored=random_5@"):
        Plan(recipe, (160, 32, 32, 3))


def test_the_papers_sizes():
    subsets = configs.msd.get_config("subsets").msd.subsets
    assert subsets.pool == 100_000 and len(subsets.sizes) == 10 + 9 + 9 + 9 + 8 + 6
    assert subsets.sizes[:11] == (*range(1, 11), 20) and subsets.sizes[-7:] == (
        90_000,
        97_000,
        99_000,
        99_700,
        99_900,
        99_970,
        99_990,
    )
