"""Batches: each image by itself, whatever the batch; dtypes; one compile for all subsets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import augment
from corruptions.augment import batch, schemes
from corruptions.batch import to_float
from tests.corruptions.elsewhere import as_on
from tests.reference.photographs import photographs

KEY = jax.random.key(3)
IMAGES = photographs(8, 32, 32)
NAMES = ("augmix", "patch_gaussian")


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_two_halves(name):
    scheme = augment.get(name)
    found = np.asarray(augment.augment(KEY, IMAGES, name, dtype=np.float32))
    assert found.shape == IMAGES.shape and found.dtype == np.float32
    assert found.min() >= 0 and found.max() <= 1

    @jax.jit
    def one(key, image):
        return scheme(key, image)

    for i in (0, 5):
        np.testing.assert_allclose(
            found[i], one(jax.random.fold_in(KEY, i), to_float(jnp.asarray(IMAGES[i]))), atol=2e-7
        )


@pytest.mark.parametrize("name", NAMES)
def test_depends_on_the_index_alone(name):
    whole = np.asarray(augment.augment(KEY, IMAGES, name))
    assert whole.dtype == np.uint8
    order = np.array([6, 1, 3, 0, 7, 2, 4, 5])
    np.testing.assert_array_equal(augment.augment(KEY, IMAGES[order], name, index=order), whole[order])
    halves = [augment.augment(KEY, IMAGES[part], name, index=np.arange(8)[part]) for part in (slice(4), slice(4, 8))]
    np.testing.assert_array_equal(np.concatenate(halves), whole)
    assert not np.array_equal(augment.augment(KEY, IMAGES, name, index=np.arange(8) + 8), whole)
    assert not np.array_equal(augment.augment(jax.random.key(4), IMAGES, name), whole)


def test_pieces_of_large_batches_equal_the_whole(monkeypatch):
    whole = np.asarray(augment.augment(KEY, IMAGES, "augmix"))
    monkeypatch.setattr(corruptions.devices, "cpu_piece", lambda shape: 3)
    np.testing.assert_array_equal(augment.augment(KEY, jnp.asarray(IMAGES), "augmix"), whole)


@pytest.mark.parametrize("together", [8, 3])  # as accelerators do it: a batch at once, a large one in chunks
def test_all_at_once_equals_one_after_the_other(together, monkeypatch):
    looped = augment.augment(KEY, IMAGES, "augmix", dtype=np.float32)
    scheme = augment.get("augmix")
    chosen = (scheme.choices, scheme.sampler, scheme.applier, (), np.dtype(np.float32), scheme.rounding)
    as_on("accelerator", monkeypatch)
    monkeypatch.setattr(batch, "_CHUNK", together * IMAGES[0].size)
    at_once = jax.jit(lambda *given: batch._augment.__wrapped__(*given, *chosen))(KEY, IMAGES, np.arange(8))
    np.testing.assert_allclose(at_once, looped, atol=2e-7)


def test_dtypes():
    floats = np.asarray(to_float(jnp.asarray(IMAGES)))
    unrounded = np.asarray(augment.augment(KEY, IMAGES, "augmix", dtype="float32")) * 255
    assert (np.abs(unrounded - np.round(unrounded)) > 1e-3).mean() > 0.3
    np.testing.assert_array_equal(augment.augment(KEY, IMAGES, "augmix"), np.round(unrounded))
    np.testing.assert_allclose(augment.augment(KEY, floats, "augmix") * 255, unrounded, atol=1e-4)
    np.testing.assert_array_equal(augment.augment(KEY, floats, "augmix", dtype=np.uint8), np.round(unrounded))
    noisy = np.asarray(augment.augment(KEY, IMAGES, "patch_gaussian", dtype=np.float32)) * 255
    np.testing.assert_array_equal(augment.augment(KEY, IMAGES, "patch_gaussian"), np.floor(noisy))


def test_one_compile_for_all_subsets():
    augment.augment(KEY, IMAGES, "augmix=rotate")
    before = batch._augment._cache_size()
    for name in ("augmix=", "augmix=equalize+solarize", "augmix"):
        augment.augment(KEY, IMAGES, name)
    assert batch._augment._cache_size() == before


def test_subset_and_options_act():
    flipped = np.asarray(augment.augment(KEY, IMAGES, "op=solarize", severity=1.0)).astype(int)
    changed = flipped != IMAGES
    assert np.all(flipped[changed] == 255 - IMAGES.astype(int)[changed])
    assert changed.any() and IMAGES[changed].min() >= 231


def test_inside_jit_and_empty_batches():
    schemes._made.cache_clear()  # a scheme first made inside a trace must not keep traced values
    inside = jax.jit(lambda key, images: augment.augment(key, images, "augmix"))(KEY, IMAGES)
    np.testing.assert_array_equal(inside, augment.augment(KEY, IMAGES, "augmix"))
    assert augment.augment(KEY, IMAGES[:0], "augmix").shape == (0, 32, 32, 3)


def test_params_are_few_numbers():
    scheme = augment.get("augmix")
    params = jax.jit(lambda key: scheme.sample(key, (32, 32, 3)))(KEY)
    assert {k: v.shape for k, v in params.items()} == {
        "weights": (3,),
        "mix": (),
        "operation": (3, 3),
        "strength": (3, 3),
    }


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((IMAGES[0], "augmix"), {}, ValueError, "expected a batch of shape"),
        ((IMAGES.astype(np.float32), "augmix"), {}, ValueError, r"float32 values in \[0, 1\]"),
        ((IMAGES.astype(np.int32), "augmix"), {}, TypeError, "expected uint8 images or float32"),
        ((IMAGES, "augmix"), {"dtype": np.int32}, TypeError, "expected dtype uint8, float32 or None, found int32"),
        ((IMAGES, "augmix"), {"index": np.arange(3)}, ValueError, r"index of shape \(8,\), found \(3,\)"),
        ((IMAGES, "augmix"), {"widht": 2}, ValueError, "no option 'widht'; did you mean 'width'"),
        ((IMAGES[:, :12], "augmix"), {}, ValueError, "at least 16x16"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        augment.augment(KEY, *arguments, **options)
