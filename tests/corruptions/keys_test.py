"""Identities of images and seeds: every bit of 64 counts, and what is no integer is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
import data
from corruptions import keys

KEY = jax.random.key(3)
IMAGES = np.full((2, 16, 16, 3), 128, np.uint8)
NOISE = "imagenet_c/gaussian_noise"


def corrupt(index):
    return np.asarray(corruptions.corrupt(KEY, IMAGES, NOISE, 5, index=index))


def augment(index):
    return np.asarray(corruptions.augment.augment(KEY, IMAGES, "patch_gaussian", index=index))


def bits(key):
    return jax.random.key_data(key).tolist()


@pytest.mark.parametrize("draw", [corrupt, augment])
def test_an_index_is_the_same_in_every_kind_of_container(draw):
    expected = draw(np.array([7, 2**31 + 5], np.int64))
    same = (
        [7, 2**31 + 5],
        range(7, 2**31 + 6, 2**31 - 2),
        np.array([7, 2**31 + 5], np.uint32),
        jnp.uint32([7, 2**31 + 5]),
    )
    for index in same:
        np.testing.assert_array_equal(draw(index), expected)


@pytest.mark.parametrize("draw", [corrupt, augment])
def test_the_upper_half_of_an_index_counts(draw):
    small = draw([7, 9])
    large = draw(np.array([7 + 2**32, 9 + 2**63], np.uint64))
    assert (large != small).any((1, 2, 3)).all()
    mixed = draw([7, 9 + 2**63])
    np.testing.assert_array_equal(mixed[0], small[0])  # a small one gives what it always gave
    np.testing.assert_array_equal(mixed[1], large[1])


def test_small_integers_give_the_keys_of_jax():
    assert bits(keys.seed_key(5)) == bits(jax.random.key(5))
    assert bits(keys.seed_key(2**32 - 1)) == bits(jax.random.key(2**32 - 1))
    assert bits(keys.image_key(KEY, jnp.int32(5))) == bits(jax.random.fold_in(KEY, 5))


def test_seeds_beyond_32_bits_are_seeds_of_their_own():
    seeds = (0, 1, 2**32, 2**32 + 1, 2**40, 2**63, 2**64 - 1)
    assert len({tuple(bits(keys.seed_key(seed))) for seed in seeds}) == len(seeds)
    assert bits(jax.random.key(2**40)) == bits(jax.random.key(0))  # what this is about


@pytest.mark.parametrize("draw", [corrupt, augment])
@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (np.array([0.2, 0.7]), TypeError, "expected an index of integers, found dtype float64"),
        (np.array([True, False]), TypeError, "found dtype bool"),
        (jnp.array([0.2, 0.7]), TypeError, "found dtype float32"),
        ([0, 0.5], TypeError, "found 0.5 in it"),
        ([0, True], TypeError, "found True in it"),
        (np.array([0, -1]), ValueError, "without negative integers, found -1"),
        ([0, -1], ValueError, "without negative integers, found -1"),
        ([0, 2**64], ValueError, "at most 64 bits"),
        ([0, 1, 2], ValueError, r"of shape \(2,\), found \(3,\)"),
    ],
)
def test_what_is_no_index_is_refused(draw, index, error, message):
    with pytest.raises(error, match=message):
        draw(index)


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, r"from 0 to 2\*\*64 - 1, found -1"),
        (2**64, ValueError, "found 18446744073709551616"),
        (1.0, TypeError, "integer seed, found 1.0"),
        (True, TypeError, "integer seed, found True"),
    ],
)
def test_what_is_no_seed_is_refused(seed, error, message):
    with pytest.raises(error, match=message):
        keys.seed_key(seed)


def test_shapes_refuse_a_seed_that_would_be_another():
    with pytest.raises(ValueError, match=r"from 0 to 2\*\*32 - 1"):
        data.load("shapes", seed=2**32, train_limit=10, test_limit=10)
