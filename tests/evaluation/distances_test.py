"""Features of transforms, and centres of images with draws of their own, against one image at a time."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

import corruptions
import data
import models
from corruptions import augment
from corruptions.core.batch import from_float, to_float
from corruptions.core.keys import seed_key
from corruptions.scoring.conditions import Condition
from evaluation.distances import centres, features, sampling
from runtime import meshes
from tests.evaluation import known
from tests.refusing import refuses
from tests.training import tiny

KEY = jax.random.key(3)
NUMBER, IMAGES, SIDE = 5, 4, 16


@pytest.fixture(scope="module")
def network():
    """(model, graphdef, state) of a small network whose BatchNorm statistics are not those of any batch here."""
    graphdef, state = known.split(models.build("small_resnet", 10, seed=0))
    state = state._replace(statistics=jax.tree.map(lambda leaf: leaf + 0.1, state.statistics))
    return known.merge(graphdef, state), graphdef, state


@pytest.fixture(scope="module")
def images():
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, SIDE, SIDE, 3)).astype(np.uint8)
    images[3] = images[2]
    return images


def extractor(network, images, weights, chunk=0):
    return features.Extractor(meshes.data_mesh(1), *network[1:], images, weights, chunk)


def measured(network, images, transform, weights=None, chunk=NUMBER, number=NUMBER):
    weights = np.eye(IMAGES, dtype=np.float32) if weights is None else weights
    return np.concatenate(list(extractor(network, images, weights, chunk).stream(transform, KEY, number)))


def slow(network, images, draw, apply):
    """[transforms, images, D], each image by itself."""
    model = network[0]

    @jax.jit
    def one(image, params):
        return model(apply(to_float(image), params)[None], train=False)[1]["penultimate"][0]

    draw = jax.jit(draw)
    drawn = [draw(jax.random.fold_in(KEY, i)) for i in range(NUMBER)]
    return np.array([[one(image, params) for image in images] for params in drawn])


def test_a_corruption_is_stored_in_8_bits_and_seen_in_eval_mode(network, images):
    """One-hot weights give the features of every image: those of the image alone, whatever else is shown."""
    corruption = corruptions.get("imagenet_c/gaussian_noise")

    def apply(image, params):
        return to_float(from_float(corruption.apply(image, params), jnp.uint8, "truncate"))

    expected = slow(network, images, lambda key: corruption.sample(key, (SIDE, SIDE, 3), 4), apply)
    found = measured(network, images, features.of_corruption("imagenet_c/gaussian_noise", 4))
    assert found.shape == (NUMBER, IMAGES, 96) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())
    assert np.abs(expected - expected[:1]).max() > 0.02 * np.abs(expected).max()  # draws differ by more


def test_a_scheme_keeps_values_between_levels(network, images):
    scheme = augment.get("augmix=solarize+posterize")
    expected = slow(network, images, lambda key: scheme.sample(key, (SIDE, SIDE, 3)), scheme.apply)
    found = measured(network, images, features.of_scheme("augmix=posterize+solarize"))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_every_image_gets_the_same_draws(network, images):
    """Images 2 and 3 are equal, and so are their features under every draw of noise."""
    found = measured(network, images, features.of_corruption("imagenet_c/gaussian_noise", 5))
    np.testing.assert_allclose(found[:, 2], found[:, 3], rtol=1e-5, atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-2


def test_weights_average_over_images(network, images):
    weights = np.array([[0.25] * 4, [0.5, 0, 0.5, 0]], np.float32)
    transform = features.of_corruption("noc/border")
    each = measured(network, images, transform)
    found = measured(network, images, transform, weights)
    np.testing.assert_allclose(found, np.einsum("gn,knd->kgd", weights, each), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chunk", [2, 8])
def test_results_do_not_depend_on_the_chunk(network, images, chunk):
    transform = features.of_corruption("noc/border")
    found = measured(network, images, transform, chunk=chunk)
    assert len(found) == NUMBER
    np.testing.assert_allclose(found, measured(network, images, transform), rtol=1e-4, atol=1e-5)


def test_severities_and_subsets_share_programs(network, images):
    for level in (1, 2):
        measured(network, images, features.of_corruption("imagenet_c/brightness", level))
    for name in ("augmix=rotate", "augmix=rotate+equalize"):
        measured(network, images, features.of_scheme(name))
    with meshes.counting_compiles() as compiled:
        measured(network, images, features.of_corruption("imagenet_c/brightness", 3))
        measured(network, images, features.of_scheme("augmix"))
    assert not compiled.keys() & {"_drawn", "_transformed", "mean_features"}


def test_names_are_found_once_and_in_order():
    found = features.find(("standard", "augmix=equalize+rotate", "imagenet_noc", "noc/hue", "op=rotate"))
    names = [transform.name for transform in found]
    assert names[:2] == ["standard", "augmix=equalize+rotate"] and names[-1] == "op=rotate"
    assert set(names[2:-1]) == {*corruptions.names("imagenet_noc"), "noc/hue"} and len(set(names)) == len(names)
    assert [transform.random for transform in found[:2]] == [False, True]
    both = [transform.name for transform in features.find(("imagenet_c_bar", "cbar/sparkles"))]
    assert {"cbar/sparkles-1-2-3-5-6", "cbar/sparkles"} < set(both) and len(both) == 11
    subsets = features.find(("augmix", features.SUBSETS))
    assert len(subsets) == 512 and [t.name for t in subsets if not t.random] == ["augmix="]


WHITE = np.zeros((4, SIDE, SIDE, 3), np.uint8)
REFUSED = [
    (lambda _: features.find(()), "at least one scheme"),
    (lambda _: features.find(("noc/hew",)), "did you mean"),
    (lambda _: features.find(("augmx",)), "schemes: augmix,"),
    (lambda _: features.find(("augmix=rotat",)), "found 'rotat'; did you mean 'rotate'"),
    (lambda network: extractor(network, WHITE.astype(np.float32), np.ones((1, 4))), "expected images uint8"),
    (lambda network: extractor(network, WHITE[:0], np.ones((1, 4))), "expected images uint8"),
    (lambda network: extractor(network, WHITE, np.ones((2, 3), np.float32)), r"expected weights \[G, 4\]"),
    (lambda network: extractor(network, WHITE, np.ones((1, 4), np.float32), -1), "expected a chunk"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_named(network, call, message):
    with pytest.raises(ValueError, match=message):
        call(network)


@pytest.fixture(scope="module")
def joint():
    """(model, what measures with it) of a network that saw no training: five images, four at a time."""
    model = models.build("small_resnet", 10, seed=0)
    images = np.random.default_rng(0).integers(0, 256, (5, SIDE, SIDE, 3)).astype(np.uint8)
    weights = np.ones((1, 5), np.float32)
    return model, features.Extractor(meshes.data_mesh(1), *known.split(model), images, weights)


def centres_in(folder, joint):
    asked = ConfigDict({"seed": 3, "chunk": 4})
    return centres.Measured(asked, joint[1], None, folder, {})


@pytest.mark.parametrize("level", [2, 4])
def test_the_centre_is_the_mean_over_images_each_with_its_draw(joint, tmp_path, level):
    model, extractor = joint
    name = "imagenet_c/gaussian_noise"
    key = jax.random.fold_in(seed_key(3), zlib.crc32(name.encode()))
    feature = jax.jit(lambda image: model(image[None].astype(jnp.float32) / 255, train=False)[1]["penultimate"][0])
    expected = []
    for i in range(5):  # the last batch is padded with images that must not count
        one = corruptions.corrupt(key, extractor.images[i : i + 1], name, level, index=np.array([i]))[0]
        expected.append(np.asarray(feature(one), float))
    found = sampling.centre(centres_in(tmp_path, joint), Condition(name, str(level)))
    assert found.shape == (96,) and found.dtype == np.float64
    np.testing.assert_allclose(found, np.mean(expected, axis=0), rtol=2e-3, atol=1e-4)
    apart = np.abs(expected[0] - np.mean(expected, axis=0)).max()
    assert apart > 100 * np.abs(found - np.mean(expected, axis=0)).max()


def test_data_are_not_loaded_again_and_images_with_draws_of_their_own_stay_on_the_host(joint, tmp_path, monkeypatch):
    model = joint[1].graphdef, joint[1].state
    monkeypatch.setattr(centres.study, "load_dataset", lambda *given, **more: pytest.fail("loaded again"))
    monkeypatch.setattr(centres.trained_models, "list_models", lambda workdir: {("standard", 0): workdir})
    monkeypatch.setattr(centres.trained_models, "read_model", lambda *given: model)
    dataset = data.load("shapes", train_limit=10, test_limit=10)
    asked = {"model": "standard", "model_seed": 0, "seed": 3, "images": 3, "halves": 0, "chunk": 4}
    for draws, kind in ((0, np.ndarray), (1, jax.Array)):
        given = ConfigDict(asked | {"draws": draws})
        found = centres.Measured.by(tiny.config(), given, tmp_path, f"draws{draws}", {}, dataset)
        assert isinstance(found.extractor.images, kind) and found.split is dataset.train
        assert {image.tobytes() for image in np.asarray(found.extractor.images)} <= {
            image.tobytes() for image in dataset.train.images
        }


def test_what_is_measured_is_read_back_and_nan_is_refused(joint, tmp_path, monkeypatch):
    condition = Condition("imagenet_c/gaussian_noise", "2")
    found = sampling.centre(centres_in(tmp_path, joint), condition)
    monkeypatch.setattr(sampling, "_features", lambda *given: jnp.full((2, 4, 96), jnp.nan))
    np.testing.assert_array_equal(sampling.centre(centres_in(tmp_path, joint), condition), found)
    refuses(
        lambda: sampling.centre(centres_in(tmp_path / "other", joint), condition),
        "for images under imagenet_c/gaussian_noise",
    )
    assert not (tmp_path / "other").exists()


def test_no_augmentation_shows_the_images(network, images):
    found = measured(network, images, features.IDENTITY, number=1)
    expected = jax.jit(lambda x: network[0](x, train=False)[1]["penultimate"])(images)
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
