"""Training with an augmentation scheme: what a batch holds, and the JSD loss in the training
step."""

import functools

import jax
import numpy as np
import pytest

import data
from corruptions import augment
from runtime import meshes
from tests.training import tiny
from training import batches, states, steps, study
from training.plan import Plan
from training.steps import Loss


@pytest.fixture(scope="module")
def split():
    return data.load("shapes", train_limit=160, test_limit=70).train.to_device()


def block(split, **train):
    recipe = tiny.config(**train).train
    plan = Plan(recipe, split.images.shape)
    order = batches.epoch_order(jax.random.key(5), plan.views)
    keys = batches.Keys(*(jax.random.key(k) for k in (6, 7, 8, 9)))
    images, _ = batches.block(plan, split, order, 0, keys, meshes.data_mesh(32))
    return np.asarray(images), np.asarray(split.images)[np.asarray(order)]


def test_crops_are_windows_of_the_padded_image(split):
    images, originals = block(split, crop=3, flip=False)
    images = images.reshape(-1, 32, 32, 3)
    padded = np.pad(originals, ((0, 0), (3, 3), (3, 3), (0, 0)))
    places = []
    for found, image in zip(images, padded, strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(image, (32, 32, 3))[:, :, 0]
        places.append(np.argwhere((windows == found).all((2, 3, 4)))[0])
    assert len({tuple(place) for place in places}) > 40  # of 49


def test_the_scheme_works_on_every_image_after_mirror_and_crop(split):
    plain, _ = block(split, crop=2)
    found, _ = block(split, crop=2, scheme="augmix=rotate+posterize")
    expected = augment.augment(
        jax.random.key(9), plain.reshape(-1, 32, 32, 3), "augmix=rotate+posterize", dtype=np.float32
    )
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.reshape(-1, 32, 32, 3), expected, atol=1e-5)
    assert (np.abs(found - plain / 255.0).max((2, 3, 4)) > 0.02).mean() > 0.8


def test_patch_gaussian_comes_before_the_crop(split):
    """Only then can the noise of an image be cut off, so that the border of zeros stays black."""
    found, _ = block(split, crop=8, scheme="patch_gaussian", flip=False)
    plain, _ = block(split, crop=8, flip=False)
    assert found.dtype == np.uint8 and (found != plain).mean() > 0.2
    border = (plain == 0).all((3, 4), keepdims=True) & np.ones_like(plain, bool)  # whole rows of padding
    assert border.sum() > 1000 and (found[border] == 0).all()


def test_views_of_the_jsd_loss(split):
    plain, _ = block(split)
    views, _ = block(split, scheme="augmix", jsd_weight=12.0)
    assert views.shape == (5, 32, 3, 32, 32, 3)
    np.testing.assert_allclose(views[:, :, 0], plain / np.float32(255), atol=1e-6)
    different = np.abs(views[:, :, 1] - views[:, :, 2]).max((2, 3, 4)) > 0.02
    assert different.mean() > 0.8


def test_equal_views_train_as_cross_entropy_alone(split):
    """The consistency of three equal views is zero, and BatchNorm sees the same statistics."""
    config = study.model_config(tiny.config(), "standard", 0)
    optimizer = states.make_optimizer(config.train, 5)
    ends = []
    for train in ({}, {"scheme": "augmix=", "jsd_weight": 12.0}):
        graphdef, params, statistics = states.build_model(config, 10, 32)
        images, _ = block(split, **train)
        labels = np.arange(160).reshape(5, 32) % 10
        state = states.initial_state(params, statistics, optimizer)
        block_of = functools.partial(steps.train_block, graphdef, optimizer, loss=Loss(train.get("jsd_weight", 0.0)))
        state, metrics = jax.jit(block_of)(state, images, labels, jax.random.key(0))
        ends.append((np.asarray(metrics["loss"]), jax.tree.leaves(state.params)))
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=2e-3)
    for one, other in zip(*(leaves for _, leaves in ends), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)
