"""Identities of images and seeds: every bit of 64 counts, and what is no integer is refused."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions.core import batch, keys
from corruptions.core.errors import Refused, RefusedType
from corruptions.write import write_dataset
from tests.corruptions.comparing import refused
from tests.evaluation.any_classifier import evaluate

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
        (np.int64(7), np.uint32(2**31 + 5)),
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
    last = draw([7 + 2**32, 2**64 - 1])
    np.testing.assert_array_equal(last, draw(np.array([7 + 2**32, 2**64 - 1], np.uint64)))
    np.testing.assert_array_equal(last[0], large[0])
    assert (last[1] != large[1]).any() and (last[1] != draw([7, 2**32 - 1])[1]).any()
    mixed = draw([7, 9 + 2**63])
    np.testing.assert_array_equal(mixed[0], small[0])  # a small seed gives the same key as before
    np.testing.assert_array_equal(mixed[1], large[1])


@pytest.mark.parametrize("largest", [5, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**64 - 1])
def test_what_was_checked_may_be_checked_again(largest):
    once = keys.image_index([0, largest], 2)
    np.testing.assert_array_equal(keys.image_index(once, 2), once)
    words = np.asarray(once, np.uint64) if once.ndim == 1 else once[:, 0] + once[:, 1].astype(np.uint64) * 2**32
    assert words.tolist() == [0, largest]


def test_without_validation_an_index_on_the_device_is_not_read_back():
    index = jnp.array([0, -1])
    assert keys.image_index(index, 2, validate=False) is index


def test_small_integers_give_the_keys_of_jax():
    assert bits(keys.seed_key(5)) == bits(jax.random.key(5))
    assert bits(keys.seed_key(2**32 - 1)) == bits(jax.random.key(2**32 - 1))
    assert bits(batch.image_key(KEY, jnp.int32(5))) == bits(jax.random.fold_in(KEY, 5))


def test_seeds_beyond_32_bits_are_seeds_of_their_own():
    seeds = (0, 1, 2**32, 2**32 + 1, 2**40, 2**63, 2**64 - 1)
    assert len({tuple(bits(keys.seed_key(seed))) for seed in seeds}) == len(seeds)
    assert bits(jax.random.key(2**40)) == bits(jax.random.key(0))  # the point of this test


def test_seeds_of_numpy_are_those_of_python():
    for seed in (np.uint64(2**64 - 1), np.int64(2**40), np.uint8(3)):
        assert bits(keys.seed_key(seed)) == bits(keys.seed_key(int(seed)))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True])
def test_nothing_is_written_or_evaluated_with_what_is_no_seed(tmp_path, seed):
    with refused("seed", seed):
        write_dataset(tmp_path / "out", (IMAGES, np.zeros(2, int)), corruptions=NOISE, seed=seed)
    with refused("seed", seed):
        evaluate(lambda images: 1 / 0, IMAGES, np.zeros(2, int), seed=seed, workdir=tmp_path / "out", batch_size=2)
    assert not (tmp_path / "out").exists()


def test_a_seed_of_64_bits_reaches_what_is_written(tmp_path):
    for seed in (5, 2**40 + 5, 2**64 - 1):
        write_dataset(tmp_path / str(seed), (IMAGES, np.zeros(2, int)), corruptions=NOISE, severities=[5], seed=seed)
        key = jax.random.fold_in(keys.seed_key(seed), zlib.crc32(NOISE.encode()))
        expected = corruptions.corrupt(key, IMAGES, NOISE, 5)
        np.testing.assert_array_equal(np.load(tmp_path / str(seed) / "gaussian_noise.npy"), expected)


def test_evaluate_takes_an_index_of_64_bits_in_a_list(tmp_path):
    def shown(index):
        seen = []
        evaluate(
            lambda images: seen.append(np.asarray(images)) or np.zeros((len(images), 2)),
            *(IMAGES, np.zeros(2, int)),
            **{"index": index, "corruptions": (NOISE,), "severity": "5", "batch_size": 2, "progress": False},
        )
        return seen[-1]

    np.testing.assert_array_equal(shown([7, 2**64 - 1]), shown(np.array([7, 2**64 - 1], np.uint64)))
    assert (shown([7, 2**64 - 1]) != shown([7, 2**32 - 1])).any()
    for index, actual in (([0, -1], -1), ([0, 2**64], 2**64), (3, 3)):
        with refused("index", actual):
            evaluate(lambda images: 1 / 0, IMAGES, np.zeros(2, int), index=index, workdir=tmp_path / "w", batch_size=2)
    assert not (tmp_path / "w").exists()


INDICES = [
    (np.array([0.2, 0.7]), RefusedType, "dtype float64"),
    (np.array([True, False]), RefusedType, "dtype bool"),
    (jnp.array([0.2, 0.7]), RefusedType, "dtype float32"),
    ([0, 0.5], RefusedType, "0.5 in it"),
    ([0, True], RefusedType, "True in it"),
    (3, RefusedType, "3"),
    (np.int64(3), RefusedType, "np.int64(3)"),
    (int, RefusedType, "<class 'int'>"),
    (np.array(3), Refused, ()),
    (["0", "1"], RefusedType, "'0' in it"),
    ([[0], [1]], RefusedType, "[0] in it"),
    (np.array([0, 2**64], object), RefusedType, "dtype object"),
    (jnp.array([0, -1]), Refused, -1),
    (np.array([0, -1], np.int8), Refused, -1),
    ([0, np.int64(-1)], Refused, -1),
    (range(0, -2, -1), Refused, -1),
    (np.array([0, -1]), Refused, -1),
    ([0, -1], Refused, -1),
    ([0, 2**64], Refused, 2**64),
    ([0, 1, 2], Refused, (3,)),
]
SEEDS = [
    *((seed, Refused) for seed in (-1, 2**64, np.int64(-1))),
    *((seed, RefusedType) for seed in (1.0, True, np.bool_(True), np.float32(1), "0", None)),
]


@pytest.mark.parametrize("draw", [corrupt, augment])
@pytest.mark.parametrize(("index", "kind", "actual"), INDICES, ids=range(len(INDICES)))
def test_other_indices_are_refused_in_one_line(draw, index, kind, actual):
    with refused("index", actual, kind):
        draw(index)


def test_an_index_on_the_host_is_looked_at_in_any_case():
    with refused("index", -1):
        keys.image_index(np.array([0, -1]), 2, validate=False)


@pytest.mark.parametrize(("seed", "kind"), SEEDS, ids=range(len(SEEDS)))
def test_other_seeds_are_refused_in_one_line(seed, kind):
    with refused("seed", seed if kind is Refused else repr(seed), kind):
        keys.seed_key(seed)
