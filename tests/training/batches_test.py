"""The images of training steps: order, mirroring, crops and boxes, schemes, the corrupted part of a batch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import corruptions
from corruptions import augment
from corruptions import enhance as enhancements
from corruptions.core import registry
from data.dataset import Split
from runtime import meshes
from tests.refusing import refuses
from tests.training import tiny
from training import augmentation, batches, states, steps, study
from training.batches import Plan
from training.steps import Loss

MESH = meshes.data_mesh()
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 40, 52, 3), np.uint8)
random_box = jax.jit(batches.random_box, static_argnums=(1, 2))


@pytest.fixture(scope="module")
def split(dataset):
    return dataset.train.to_device()


@pytest.fixture(scope="module")
def original(split):
    return np.asarray(split.images)


def test_standard_batches_are_the_shuffled_epoch_with_flips(split, original):
    plan, order, images, labels = tiny.block(split)
    assert plan.steps_per_epoch == plan.block_steps == 5
    assert sorted(order) == list(range(160))
    shown = original[order].reshape(5, 32, 32, 32, 3)
    np.testing.assert_array_equal(labels, np.asarray(split.labels)[order].reshape(5, 32))
    same = (images == shown).all((2, 3, 4))
    mirrored = (images == shown[:, :, :, ::-1]).all((2, 3, 4))
    assert np.all(same | mirrored)
    assert 50 <= np.sum(mirrored & ~same) <= 110  # binomial(160, 1/2), six standard deviations are 38


def test_paper_reading_corrupts_the_first_half_of_every_batch(split):
    clean = tiny.block(split)[2]
    corrupted = tiny.block(split, corruption="noc/border")[2]
    changed = (clean != corrupted).any((2, 3, 4))
    assert changed[:, :16].all() and not changed[:, 16:].any()


def test_code_reading_shows_every_image_clean_and_corrupted(split, original):
    plan, order, images, _ = tiny.block(split, corruption="noc/border", reading="code", flip=False)
    assert plan.steps_per_epoch == 10 and sorted(order) == list(range(320))
    views = order[: plan.block_steps * 32]
    shown = images.reshape(-1, 32, 32, 3)
    changed = (shown != original[views % 160]).any((1, 2, 3))
    np.testing.assert_array_equal(changed, views >= 160)


@pytest.mark.parametrize("benchmark", ["three", pytest.param("imagenet_noc", marks=pytest.mark.slow)])
def test_mixture_deals_all_members(benchmark, original, monkeypatch):
    monkeypatch.setitem(registry._BENCHMARKS, "three", dict.fromkeys(("noc/border", "noc/hue", "imagenet_c/contrast")))
    images, index, key = jnp.asarray(original[:32]), jnp.arange(32), jax.random.key(0)
    mixed = np.asarray(augmentation.corrupt_or_mix(MESH, f"mixture={benchmark}", key, images, index))
    members = augmentation.members(f"mixture={benchmark}")
    assert len(members) == {"three": 3, "imagenet_noc": 8}[benchmark]
    for turn, name in enumerate(members):
        of_turn = slice(turn, None, len(members))
        own = jax.random.fold_in(key, turn), images[of_turn], index[of_turn]
        alone = augmentation.corrupt_or_mix(MESH, name, *own)
        np.testing.assert_array_equal(mixed[of_turn], np.asarray(alone))


def test_corrupting_a_batch_reads_no_value_of_it():
    """Reading one waits for the device, which then stands still between two blocks; a check would refuse these images."""
    images, index = jnp.full((2, 32, 32, 3), 2.0), jnp.arange(2)
    refuses(lambda: corruptions.corrupt(jax.random.key(0), images, "noc/hue", index=index), "values in [0, 1]")
    augmentation.corrupt_on_mesh(MESH, jax.random.key(0), images, "noc/hue", None, index, {})


def test_mixture_of_a_selected_benchmark_draws_its_levels(original, monkeypatch):
    monkeypatch.setitem(registry._BENCHMARKS, "bar", {"cbar/color_balance": (2, 3), "cbar/technicolor": (9,)})
    images, index, key = jnp.asarray(original[:24]), jnp.arange(24), jax.random.key(0)
    mixed = np.asarray(augmentation.corrupt_or_mix(MESH, "mixture=bar", key, images, index))
    met = []
    for turn, name in enumerate(augmentation.members("mixture=bar")):
        own, at = jax.random.fold_in(key, turn), slice(turn, None, 2)
        levels = [corruptions.corrupt(own, images[at], name, k, index=index[at]) for k in range(1, 11)]
        same = np.array([(np.asarray(one) == mixed[at]).all((1, 2, 3)) for one in levels])
        assert (same.sum(0) == 1).all()
        met.append(set(np.nonzero(same.any(1))[0] + 1))
    assert met == [{2, 3}, {9}]


def test_alternating_flips_show_both_sides_of_every_image_in_two_epochs(split, original):
    mirrored, symmetric = [], (original == original[:, :, ::-1]).all((1, 2, 3))
    for epoch in range(3):
        order = batches.epoch_order(jax.random.key(epoch), 160)
        _, order, images, _ = tiny.block(split, 5 * epoch, order, flip_alternates=True)
        shown = np.empty(split.images.shape, np.uint8)
        shown[order] = images.reshape(shown.shape)
        flipped = (shown == original[:, :, ::-1]).all((1, 2, 3))
        assert np.all(flipped | (shown == original).all((1, 2, 3)))
        mirrored.append(flipped & ~symmetric)
    assert symmetric.sum() < 10 and 50 <= mirrored[0].sum() <= 110  # binomial(160, 1/2)
    np.testing.assert_array_equal(mirrored[1], ~mirrored[0] & ~symmetric)
    np.testing.assert_array_equal(mirrored[2], mirrored[0])


def test_crops_are_windows_of_the_padded_image(split, original):
    _, order, images, _ = tiny.block(split, crop=3, flip=False)
    originals = original[order]
    images = images.reshape(-1, 32, 32, 3)
    padded = np.pad(originals, ((0, 0), (3, 3), (3, 3), (0, 0)))
    places = []
    for found, image in zip(images, padded, strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(image, (32, 32, 3))[:, :, 0]
        places.append(np.argwhere((windows == found).all((2, 3, 4)))[0])
    assert len({tuple(place) for place in places}) > 40  # of 49


def test_the_scheme_works_on_every_image_after_mirror_and_crop(split):
    plain = tiny.block(split, crop=2)[2]
    found = tiny.block(split, crop=2, scheme="augmix=rotate+posterize")[2]
    shown = plain.reshape(-1, 32, 32, 3)
    expected = augment.augment(tiny.KEYS.scheme, shown, "augmix=rotate+posterize", dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.reshape(-1, 32, 32, 3), expected, atol=1e-5)
    assert (np.abs(found - plain / 255.0).max((2, 3, 4)) > 0.02).mean() > 0.8


@pytest.mark.parametrize("name", ["clahe", "clahe:clip=4,grid=4x2"])
def test_training_shows_enhanced_images(split, name):
    plain, found = (tiny.block(split, **train)[2] for train in ({}, {"enhance": name}))
    assert found.shape == plain.shape and found.dtype == np.uint8
    flat, of_default = plain.reshape(-1, 32, 32, 3), "clahe"
    np.testing.assert_array_equal(found.reshape(-1, 32, 32, 3), enhancements.enhance(flat, name))
    assert (found != plain).mean() > 0.5
    assert name == of_default or (found.reshape(flat.shape) != enhancements.enhance(flat, of_default)).mean() > 0.3


def test_patch_gaussian_comes_before_the_crop(split):
    """Only then can the noise of an image be cut off, so that the border of zeros stays black."""
    found = tiny.block(split, crop=8, scheme="patch_gaussian", flip=False)[2]
    plain = tiny.block(split, crop=8, flip=False)[2]
    assert found.dtype == np.uint8 and (found != plain).mean() > 0.2
    border = (plain == 0).all((3, 4), keepdims=True) & np.ones_like(plain, bool)  # whole rows of padding
    assert border.sum() > 1000 and (found[border] == 0).all()


def test_views_of_the_jsd_loss(split):
    plain = tiny.block(split)[2]
    views = tiny.block(split, scheme="augmix", jsd_weight=12.0)[2]
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
        images = tiny.block(split, **train)[2]
        labels = np.arange(160).reshape(5, 32) % 10
        state = states.initial_state(params, statistics, optimizer)
        block_of = functools.partial(steps.train_block, graphdef, optimizer, loss=Loss(train.get("jsd_weight", 0.0)))
        state, metrics = jax.jit(block_of)(state, images, labels, jax.random.key(0))
        ends.append((np.asarray(metrics["loss"]), jax.tree.leaves(state.params)))
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=2e-3)
    for one, other in zip(*(leaves for _, leaves in ends), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)


def pillow(image, box, size):
    top, left, height, width = (int(number) for number in box)
    cut = Image.fromarray(image[top : top + height, left : left + width])
    return np.asarray(cut.resize((size, size), Image.Resampling.BILINEAR)).astype(int)


@pytest.mark.parametrize("box", [(0, 0, 40, 52), (3, 7, 11, 9), (10, 20, 30, 32), (39, 0, 1, 5), (5, 5, 32, 32)])
def test_a_box_is_resized_as_pillow_does(box):
    found = jax.jit(batches.resize_box, static_argnames="size")(IMAGES[0], jnp.array(box), size=32)
    # Pillow rounds to 8 bits between the axes.
    assert np.abs(np.asarray(found, int) - pillow(IMAGES[0], box, 32)).max() <= 1


def test_each_image_has_a_box_of_its_own_whatever_the_batch():
    key, identity = jax.random.key(1), jnp.array([5, 0, 77, 3, 4, 1000])
    found = np.asarray(batches.random_resized_crop(IMAGES, key, identity, 24), int)
    boxes = [random_box(jax.random.fold_in(key, i), 40, 52) for i in identity]
    assert len({tuple(map(int, box)) for box in boxes}) == 6
    for image, box, one in zip(IMAGES, boxes, found):
        assert np.abs(one - pillow(image, box, 24)).max() <= 1
    turned = batches.random_resized_crop(IMAGES[::-1], key, identity[::-1], 24)
    np.testing.assert_array_equal(turned, found[::-1])


def test_area_and_aspect_have_the_stated_distribution():
    number, side = 20000, 1000  # large, so that rounding does not matter; square, so that most boxes fit at once
    keys = jax.random.split(jax.random.key(2), number)
    top, left, height, width = np.asarray(jax.jit(jax.vmap(lambda key: random_box(key, side, side)))(keys)).T
    assert (height >= 1).all() and (width >= 1).all() and (top >= 0).all() and (left >= 0).all()
    assert (top + height <= side).all() and (left + width <= side).all()
    rng = np.random.default_rng(3)  # the definition: draw until a box fits
    area = rng.uniform(0.08, 1, (number, 30))
    aspect = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3), (number, 30)))
    fits = (np.sqrt(area * aspect) <= 1) & (np.sqrt(area / aspect) <= 1)
    first = np.argmax(fits, 1)
    area, aspect = (array[np.arange(number), first] for array in (area, aspect))
    for ours, theirs in ((height * width / side**2, area), (np.log(width / height), np.log(aspect))):
        # Kolmogorov and Smirnov: 1.95 sqrt(2 / n) is exceeded with probability 0.001.
        points = np.sort(np.concatenate([ours, theirs]))
        gap = [np.searchsorted(np.sort(sample), points, side="right") / number for sample in (ours, theirs)]
        assert np.abs(gap[0] - gap[1]).max() < 1.95 * np.sqrt(2 / number)
    room = top[height < side] / (side - height[height < side])
    assert abs(room.mean() - 0.5) < 0.01


def test_what_never_fits_becomes_the_largest_centre_box():
    key = jax.random.key(0)
    assert np.asarray(random_box(key, 10, 1000)).tolist() == [0, (1000 - 13) // 2, 10, 13]
    assert np.asarray(random_box(key, 1000, 10)).tolist() == [(1000 - 13) // 2, 0, 13, 10]


def test_training_batches_are_made_of_boxes():
    images = np.random.default_rng(4).integers(0, 256, (32, 32, 32, 3), np.uint8)
    split = Split(images, np.zeros(32, np.int32), np.arange(32)).to_device()
    plan, order, images, _ = tiny.block(split, random_resized_crop=24, flip=False)
    assert plan.image_size == 24 and images.shape == (1, 32, 24, 24, 3) and images.dtype == jnp.uint8
    box = random_box(jax.random.fold_in(tiny.KEYS.crop, 7), 32, 32)
    expected = pillow(np.asarray(split.images[order[7]]), box, 24)
    assert np.abs(np.asarray(images[0, 7], int) - expected).max() <= 1


def test_boxes_that_are_not_resized_are_parts_of_the_images():
    rows, columns = np.mgrid[:32, :32].astype(np.uint8)
    number = np.arange(32, dtype=np.uint8)[:, None, None]
    images = np.stack(np.broadcast_arrays(number, rows, columns), axis=-1)  # each pixel says where it is
    split = Split(images, np.zeros(32, np.int32), np.arange(32)).to_device()
    plan, _, found, _ = tiny.block(split, random_crop=24, flip=False)
    assert plan.image_size == 24 and found.shape == (1, 32, 24, 24, 3)
    corners = found[0, :, 0, 0].astype(int)
    assert sorted(corners[:, 0]) == list(range(32)) and {*corners[:, 1:].ravel()} == set(range(9))
    for image, (number, row, column) in zip(found[0], corners):
        np.testing.assert_array_equal(image, images[number, row : row + 24, column : column + 24])


def test_boxes_larger_than_the_images_are_refused():
    """The check of settings knows config.dataset alone; these are the images themselves."""
    refuses(lambda: Plan(tiny.recipe(random_crop=33), (100, 32, 32, 3)), "to the side 32", "config.train.crop 0")


@pytest.mark.parametrize(
    "changed", [{"corrupted_fraction": 0.01}, {"corrupted_fraction": 0.5, "batch_norm": "groups=32"}]
)
def test_a_share_that_corrupts_no_image_is_refused(changed):
    refuses(lambda: Plan(tiny.recipe(corruption="noc/border", **changed), (100, 32, 32, 3)), "image of each batch")
    Plan(tiny.recipe(**changed), (100, 32, 32, 3))  # the standard model corrupts none
