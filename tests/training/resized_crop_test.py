"""Random resized crops against Pillow, and the distribution of the boxes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from data.dataset import Split
from runtime import meshes
from tests.training import tiny
from training import batches
from training.plan import Plan

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 40, 52, 3), np.uint8)

random_box = jax.jit(batches.random_box, static_argnums=(1, 2))


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
    mesh, keys = meshes.data_mesh(), batches.Keys(*map(jax.random.key, (6, 7, 8, 9)))
    config = tiny.config(random_resized_crop=24, flip=False)
    plan = Plan(config.train, split.images.shape)
    order = batches.epoch_order(jax.random.key(5), plan.views)
    images, _ = batches.block(plan, split, order, 0, keys, mesh)
    assert plan.image_size == 24 and images.shape == (1, 32, 24, 24, 3) and images.dtype == jnp.uint8
    box = random_box(jax.random.fold_in(keys.crop, 7), 32, 32)
    expected = pillow(np.asarray(split.images[order[7]]), box, 24)
    assert np.abs(np.asarray(images[0, 7], int) - expected).max() <= 1


def test_boxes_that_are_not_resized_are_parts_of_the_images():
    rows, columns = np.mgrid[:32, :32].astype(np.uint8)
    number = np.arange(32, dtype=np.uint8)[:, None, None]
    images = np.stack(np.broadcast_arrays(number, rows, columns), axis=-1)  # each pixel says where it is
    split = Split(images, np.zeros(32, np.int32), np.arange(32)).to_device()
    mesh, keys = meshes.data_mesh(), batches.Keys(*map(jax.random.key, (6, 7, 8, 9)))
    config = tiny.config(random_crop=24, flip=False)
    plan = Plan(config.train, split.images.shape)
    order = batches.epoch_order(jax.random.key(5), plan.views)
    found = np.asarray(batches.block(plan, split, order, 0, keys, mesh)[0])
    assert plan.image_size == 24 and found.shape == (1, 32, 24, 24, 3)
    corners = found[0, :, 0, 0].astype(int)
    assert sorted(corners[:, 0]) == list(range(32)) and {*corners[:, 1:].ravel()} == set(range(9))
    for image, (number, row, column) in zip(found[0], corners):
        np.testing.assert_array_equal(image, images[number, row : row + 24, column : column + 24])


@pytest.mark.parametrize(
    "change", [{"random_resized_crop": 33}, {"random_resized_crop": 24, "crop": 4}, {"random_crop": 33}]
)
def test_bad_settings_are_named(change):
    with pytest.raises(ValueError, match=r"random_\w*crop up to the side 32.*config.train.crop 0, found"):
        Plan(tiny.config(**change).train, (100, 32, 32, 3))
