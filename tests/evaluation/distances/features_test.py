"""Features of transforms against one image, one transform at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import corruptions
import models
from corruptions import augment
from corruptions.batch import from_float, to_float
from evaluation.distances import features
from runtime import meshes
from training.states import TrainState

KEY = jax.random.key(3)
NUMBER, IMAGES, SIDE = 5, 4, 16


@pytest.fixture(scope="module")
def network():
    """(model, graphdef, state) of a small network whose BatchNorm statistics are not those of any
    batch here.
    """
    model = models.build("small_resnet", 10, seed=0)
    graphdef, params, statistics = nnx.split(model, nnx.Param, ...)
    statistics = jax.tree.map(lambda leaf: leaf + 0.1, statistics)
    return nnx.merge(graphdef, params, statistics), graphdef, TrainState(jnp.zeros((), int), params, statistics, None)


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
    """One-hot weights give the features of every image: they are those of the image alone, whatever
    else is shown.
    """
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


def test_no_augmentation_shows_the_images(network, images):
    found = measured(network, images, features.IDENTITY, number=1)
    expected = jax.jit(lambda x: network[0](x, train=False)[1]["penultimate"])(images)
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)


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
    before = [program._cache_size() for program in (features._drawn, features._transformed, features.mean_features)]
    measured(network, images, features.of_corruption("imagenet_c/brightness", 3))
    measured(network, images, features.of_scheme("augmix"))
    after = [program._cache_size() for program in (features._drawn, features._transformed, features.mean_features)]
    assert before == after


def test_names_are_found_once_and_in_order():
    found = features.find(("standard", "augmix=equalize+rotate", "imagenet_noc", "noc/hue", "op=rotate"))
    names = [transform.name for transform in found]
    assert names[:2] == ["standard", "augmix=equalize+rotate"] and names[-1] == "op=rotate"
    assert set(names[2:-1]) == {*corruptions.names("imagenet_noc"), "noc/hue"} and len(set(names)) == len(names)
    assert [transform.random for transform in found[:2]] == [False, True]
    subsets = features.find(("augmix", features.SUBSETS))
    assert len(subsets) == 512 and [t.name for t in subsets if not t.random] == ["augmix="]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "at least one scheme"),
        (("noc/hew",), "did you mean"),
        (("augmx",), "schemes: augmix,"),
        (("augmix=rotat",), "unknown operation 'rotat'"),
    ],
)
def test_unknown_names_are_refused(names, message):
    with pytest.raises(ValueError, match=message):
        features.find(names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": np.zeros((4, SIDE, SIDE, 3), np.float32)}, "expected images uint8"),
        ({"images": np.zeros((0, SIDE, SIDE, 3), np.uint8)}, "expected images uint8"),
        ({"weights": np.ones((2, 3), np.float32)}, r"expected weights \[G, 4\]"),
        ({"chunk": -1}, "expected a chunk"),
    ],
)
def test_bad_input_is_refused(network, images, change, message):
    given = {"images": images, "weights": np.ones((1, 4), np.float32), "chunk": 0} | change
    with pytest.raises(ValueError, match=message):
        extractor(network, given["images"], given["weights"], given["chunk"])
