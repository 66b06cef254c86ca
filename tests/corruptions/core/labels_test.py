"""Labels that follow: the map is the one that the corruption uses, masks and boxes are moved by it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions.core import labels
from corruptions.imagenet_c import elastic
from tests.corruptions.comparing import SHAPE, own_positions, refused
from tests.pages import example_of
from tests.reference.photographs import photographs

KEY = jax.random.key(3)


def test_positions_of_a_batch_are_those_of_corrupt_with_the_same_key():
    """A corruption that moves whole pixels gives the same images when they are moved as masks."""
    images, index = photographs(2, 32, 32), [5, 9]
    where = corruptions.coordinates(KEY, images, "noc/rotation", index=index)
    expected = corruptions.corrupt(KEY, images, "noc/rotation", index=index)
    np.testing.assert_array_equal(corruptions.move_masks(images, where), expected)
    described = jax.ShapeDtypeStruct(images.shape, images.dtype)
    traced = jax.eval_shape(lambda key: corruptions.coordinates(key, described, "noc/rotation", index=index), KEY)
    assert traced.shape == where.shape == (2, 32, 32, 2)


def test_corruptions_that_move_nothing_map_every_pixel_to_itself():
    where = corruptions.get("noc/border").coordinates(SHAPE, {})
    np.testing.assert_array_equal(where, own_positions(*SHAPE[:2]))
    assert not corruptions.random_choice(("noc/border", "noc/hue")).moves


def test_masks_take_the_nearest_label_and_boxes_those_that_are_left():
    """Pixel (r, c) shows (r + 2.4, c - 3): content moves up by two, and right by three."""
    where = (own_positions(10, 12) + (2.4, -3))[None]
    mask = np.zeros((1, 10, 12), np.int8)
    mask[0, 4:7, 1:5] = 7
    moved = np.full((10, 12), -1)
    moved[:8, 3:] = 0
    moved[2:5, 4:8] = 7
    found = corruptions.move_masks(mask, where, fill=-1)
    np.testing.assert_array_equal(found[0], moved)
    assert found.dtype == np.int8
    stacked = corruptions.move_masks(np.stack([mask == 7, mask == 0], axis=-1), where)
    np.testing.assert_array_equal(stacked[0], np.stack([moved == 7, moved == 0], axis=-1))
    boxes = [[(1, 4, 5, 7), (10, 0, 12, 10), (8, 0, 12, 4.5), (0, 0, 12, 2)]]
    expected = [[(4, 2, 8, 5), (0, 0, 0, 0), (11, 0, 12, 2), (0, 0, 0, 0)]]
    np.testing.assert_array_equal(corruptions.move_boxes(np.array(boxes), where), expected)


def test_a_moved_box_is_the_box_of_its_moved_mask():
    angle = np.deg2rad(25)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    where = ((own_positions(20, 20) - 9.5) @ turn + 9.5)[None].astype(np.float32)
    boxes = np.array([[(3, 4, 9, 7), (10, 10, 18, 20), (0, 0, 5, 5)]])
    for box, found in zip(boxes[0], np.asarray(corruptions.move_boxes(boxes, where))[0], strict=True):
        mask = np.zeros((1, 20, 20), bool)
        mask[0, box[1] : box[3], box[0] : box[2]] = True
        rows, columns = np.nonzero(np.asarray(corruptions.move_masks(mask, where))[0])
        np.testing.assert_array_equal(found, (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1))


@pytest.mark.parametrize("name", ["imagenet_c/elastic_transform", "camera/elastic_field"])
def test_the_pair_of_coordinates_moves_boxes_and_positions_alone_warn_once(name, monkeypatch):
    monkeypatch.setattr(labels, "_WARNED", False)
    shape, key = jax.ShapeDtypeStruct((4, 64, 64, 3), np.uint8), jax.random.key(0)
    pair = where, mirrored = corruptions.coordinates(key, shape, name, 5, reflected=True)
    boxes, masks = np.tile([[(0, 0, 14, 12)]], (4, 1, 1)), np.ones((4, 64, 64), np.int8)
    np.testing.assert_array_equal(corruptions.move_boxes(boxes, pair), corruptions.move_boxes(boxes, where, mirrored))
    with pytest.warns(UserWarning, match="reflected=True") as said:
        corruptions.move_boxes(boxes, where)
        corruptions.move_boxes(boxes, where)
    assert len(said) == 1
    np.testing.assert_array_equal(corruptions.move_masks(masks, pair), corruptions.move_masks(masks, where))
    filled = corruptions.move_masks(masks, pair, fill=7, reflected=True)
    np.testing.assert_array_equal(filled == 7, np.asarray(mirrored))
    with refused("coordinates", "positions alone"):
        corruptions.move_masks(masks, where, reflected=True)


@pytest.mark.parametrize("name", ["noc/rotation", "noc/shear", "cbar/fish_eye", "imagenet_c/elastic_transform"])
def test_points_lie_where_the_corrupted_image_shows_them(name):
    """Its own position at a found place is the point, by the map between pixels."""
    shape = jax.ShapeDtypeStruct((3, 64, 64, 3), np.uint8)
    pair = where, _ = corruptions.coordinates(jax.random.key(1), shape, name, reflected=True)
    where = np.asarray(where)
    points = np.random.default_rng(0).uniform(8, 56, (3, 40, 2)).astype(np.float32)
    found = np.asarray(corruptions.move_points(points, pair))
    shown = ~np.isnan(found).any(-1)
    assert found.shape == points.shape and shown.mean() > 0.5
    apart = []
    for image, of_points, of_found in zip(where, points, found, strict=True):
        for (x, y), (right, down) in zip(of_points, of_found, strict=True):
            if not np.isnan(right):
                row, column = (int(np.clip(place, 0, 63)) for place in (down, right))
                apart.append(np.abs(image[row, column] + 0.5 - (y, x)).max())
    assert np.mean(np.array(apart) < 1.5) > 0.95
    grid = np.stack(np.meshgrid(np.arange(64), np.arange(64), indexing="ij"), -1).astype(np.float32)[None]
    outside = np.array([[(3.2, 4.7), (64.0, 10.0), (90.0, 5.0)]], np.float32)
    moved = np.asarray(corruptions.move_points(outside, (grid, np.zeros((1, 64, 64), bool))))
    np.testing.assert_allclose(moved[0, :2], outside[0, :2], atol=1e-5)
    assert np.isnan(moved[0, 2]).all()
    with refused("points", points[0].shape):
        corruptions.move_points(points[0], pair)


@pytest.mark.parametrize("name", ["noc/rotation", "noc/shear", "cbar/fish_eye", "cbar/pinch_and_twirl"])
def test_positions_that_only_turn_or_bend_do_not_warn(name, monkeypatch, recwarn):
    monkeypatch.setattr(labels, "_WARNED", False)
    shape = jax.ShapeDtypeStruct((4, 64, 64, 3), np.uint8)
    corruptions.move_boxes(np.zeros((4, 1, 4)), corruptions.coordinates(jax.random.key(0), shape, name))
    assert not [one for one in recwarn if "mirror" in str(one.message)]


def test_a_box_does_not_hold_its_mirror_image():
    images = np.zeros((1, 64, 64, 3), np.uint8)
    where, mirrored = corruptions.coordinates(
        jax.random.key(0), images, "imagenet_c/elastic_transform", 1, index=[10], reflected=True
    )
    np.testing.assert_array_equal(corruptions.move_boxes([[(4, 4, 14, 12)]], where, mirrored), [[(8, 9, 18, 16)]])
    mask = np.zeros((1, 64, 64), bool)
    mask[:, 4:12, 4:14] = True
    seen, own = (np.asarray(corruptions.move_masks(mask, where, reflected=r))[0] for r in (None, mirrored))
    assert own[9:16, 8:18].sum() == own.sum() < seen.sum() - 40
    np.testing.assert_array_equal(seen & ~np.asarray(mirrored)[0], own)


def _unfolded(params, shape):
    """Finds positions beyond the border in float64: by the displacement, then by the affine map of three points."""
    rows, columns = np.mgrid[: shape[0], : shape[1]].astype(float)
    found = [(rows + np.float64(params["dy"]), columns + np.float64(params["dx"]))]
    if "points" in params:
        to = np.float64(elastic.anchors(shape))
        affine = np.linalg.solve(np.c_[np.float64(params["points"]), np.ones(3)], to)  # (x, y, 1) to (x, y)
        x, y = np.moveaxis(np.stack([found[0][1], found[0][0], np.ones(shape[:2])], -1) @ affine, -1, 0)
        found.append((y, x))
    return found


@pytest.mark.parametrize("name", ["imagenet_c/elastic_transform", "camera/elastic_field"])
def test_reflected_positions_are_those_beyond_the_border(name):
    shape, corruption = (48, 64, 3), corruptions.get(name)
    params = corruption.sample(jax.random.key(4), shape, 1)
    found, away = np.asarray(corruption.reflected(shape, params)), np.full(shape[:2], -np.inf)
    for places in _unfolded(params, shape):
        for position, size in zip(places, shape):
            away = np.maximum(away, np.abs(position - (size - 1) / 2) - size / 2)
    clear = np.abs(away) > (0.7 if name == "imagenet_c/elastic_transform" else 1e-3)  # it looks the border up twice
    np.testing.assert_array_equal(found[clear], away[clear] > 0)
    assert found.any() and clear.mean() > 0.8


def test_labels_follow_elastic_transform_beyond_a_border_as_pixels_do():
    """A quarter of a pixel to the left of the first column it shows the second one, by three quarters."""
    shape, corruption = (32, 48, 3), corruptions.get("imagenet_c/elastic_transform")
    still, left = np.zeros(shape[:2], np.float32), np.full(shape[:2], -0.25, np.float32)
    params = {"points": elastic.anchors(shape), "dx": left, "dy": still}
    columns = np.asarray(corruption.coordinates(shape, params))[..., 1]
    np.testing.assert_allclose(columns, np.broadcast_to([0.75, *np.arange(47) + 0.75], columns.shape), atol=1e-4)
    slope = jnp.broadcast_to(jnp.linspace(0, 0.94, 48)[None, :, None], shape)
    np.testing.assert_allclose(corruption.apply(slope, params)[..., 0], 0.02 * columns, atol=1e-4)
    np.testing.assert_array_equal(np.asarray(corruption.reflected(shape, params))[:, :3], [[True, False, False]] * 32)


def test_the_example_of_the_how_to():
    images = photographs(2, 32, 32)
    masks, boxes = jnp.zeros((2, 32, 32), jnp.int32).at[:, 8:20, 8:20].set(3), jnp.array([[(8, 8, 20, 20)]] * 2)
    found = {"corruptions": corruptions, "key": KEY, "images": images, "masks": masks, "boxes": boxes}
    found["points"] = boxes[..., :2].astype(jnp.float32)
    exec(example_of("docs/howto/corrupt.md", "Let masks and boxes follow"), found)
    assert set(np.unique(found["moved"])) == {0, 3, 255}
    assert (
        found["around"].shape == (2, 1, 4) and found["joints"].shape == (2, 1, 2) and "noc/rotation" in found["follow"]
    )
