"""Arrays of unusual dtypes at every public call: big-endian ones count as themselves, others are refused in one line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import augment, camera, enhance, laion_c
from corruptions.core.errors import Refused
from tests.corruptions.comparing import refused

KEY = jax.random.key(0)
IMAGES = np.random.default_rng(0).random((2, 32, 32, 3), np.float32)
RIG = np.stack([IMAGES] * 3, 1)
MASKS = np.random.default_rng(1).integers(0, 200, (2, 32, 32)).astype(np.uint16)
BOXES = np.array([[[1, 2, 8, 9]]] * 2, np.float32)
WHERE = np.asarray(corruptions.coordinates(KEY, IMAGES, "noc/rotation", 0.7))
LOGITS = np.random.default_rng(2).normal(size=(2, 1000)).astype(np.float32)
PICTURES, LABELS = (255 * IMAGES).astype(np.uint8), np.array([3, 1])


def answers(logits):
    return corruptions.evaluate(
        lambda images: logits, PICTURES, LABELS, corruptions="noc/hue", severity=1, batch_size=2
    )


def rotated(**given):
    images = given.pop("images", IMAGES)
    return corruptions.corrupt(KEY, images, "noc/rotation", given.pop("severity", 0.5), **given)


# Each call with an array that it takes.
CALLS = {
    "corrupt": (lambda x: rotated(images=x), IMAGES),
    "corrupt float64": (lambda x: rotated(images=x), IMAGES.astype(np.float64)),
    "corrupt float16": (lambda x: rotated(images=x), IMAGES.astype(np.float16)),
    "value_range": (lambda x: rotated(images=x, value_range=(-1, 1)), 2 * IMAGES - 1),
    "time": (lambda x: rotated(images=x, axis="time"), RIG),
    "cameras": (lambda x: rotated(images=x, axis="camera"), RIG),
    "where": (lambda x: rotated(images=x, where=MASKS > 99), IMAGES),
    "index": (lambda x: rotated(index=x), np.array([2**40, 3], np.uint64)),
    "severity": (lambda x: rotated(severity=x), np.array([0.25, 0.5], np.float32)),
    "corrupt_image": (lambda x: corruptions.corrupt_image(x[0], "noc/rotation", 0.5, seed=0), IMAGES),
    "corrupt_each": (lambda x: np.stack(list(corruptions.corrupt_each(KEY, x, "noc/rotation", 0.5))), IMAGES),
    "one image": (lambda x: corruptions.noc.rotation(KEY, x[0], 0.5), IMAGES),
    "store": (lambda x: corruptions.imagenet_c.store(x[0]), IMAGES),
    "coordinates": (lambda x: corruptions.coordinates(KEY, x, "noc/rotation", 0.5), IMAGES),
    "augment": (lambda x: augment.augment(KEY, x, "augmix"), IMAGES),
    "enhance": (lambda x: enhance.enhance(x, "clahe"), IMAGES),
    "camera_crash": (lambda x: camera.camera_crash(KEY, x, 3), RIG),
    "frame_lost": (lambda x: camera.frame_lost(KEY, x, 3), RIG),
    "masks": (lambda x: corruptions.move_masks(x, WHERE), MASKS),
    "depths": (lambda x: corruptions.move_masks(x, WHERE), MASKS / np.float32(7)),
    "positions": (lambda x: corruptions.move_masks(MASKS, x), WHERE),
    "positions of boxes": (lambda x: corruptions.move_boxes(BOXES, x), WHERE),
    "boxes": (lambda x: corruptions.move_boxes(x, WHERE), BOXES),
    "points": (lambda x: corruptions.move_points(x, WHERE), BOXES[..., :2]),
    "logits": (answers, LOGITS),
    "superclass_scores": (laion_c.superclass_scores, LOGITS),
    "superclass_labels": (laion_c.superclass_labels, LABELS),
    "labels": (
        lambda x: corruptions.evaluate(
            lambda images: LOGITS, PICTURES, x, corruptions="noc/hue", severity=1, batch_size=2
        ),
        LABELS,
    ),
    "labels to write": (lambda x: corruptions.write.from_arrays(PICTURES, x).labels, LABELS),
}


@pytest.mark.parametrize("name", CALLS)
def test_big_endian_arrays_count_as_their_values(name):
    call, array = CALLS[name]
    other = call(array.astype(array.dtype.newbyteorder(">")))
    expected = call(array)
    if name in ("logits", "labels"):
        assert other == expected
        return
    np.testing.assert_array_equal(other, expected)
    assert other.dtype == expected.dtype


OF_OTHERS = {
    "object": lambda x: x.astype(object),
    "strings": lambda x: x.astype(str),
    "complex": lambda x: x.astype(np.complex64),
    "long double": lambda x: x.astype(np.longdouble),
    "records": lambda x: np.zeros(x.shape, [("a", np.uint8)]),
    "dates": lambda x: x.astype(np.int64).astype("M8[s]"),
    "masked": lambda x: np.ma.array(x, mask=np.arange(x.size).reshape(x.shape) == 0),
}
# Where NumPy's largest floats and complex labels have their values all the same.
TAKEN = {("severity", "long double"), ("masks", "complex"), ("depths", "complex")}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", OF_OTHERS)
def test_arrays_of_other_things_are_refused_in_one_line(name, kind):
    if (name, kind) in TAKEN:
        return
    call, array = CALLS[name]
    with pytest.raises(Refused) as refusal:
        call(OF_OTHERS[kind](array))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("masks", "fills", "wrong"),
    [
        (
            np.uint8,
            (0, 255, 7.0, True, np.float32(2), np.int64(9)),
            (0.5, -1 / 300, -1, 256, float("nan"), "a", None, 1j),
        ),
        (np.int32, (-1, 2**31 - 1), (0.5, 2**31, 2**70, float("inf"), [1, 2])),
        (np.float16, (0.5, -1e4, float("nan"), float("inf")), (1e6, -1e300, "a", 1j)),
        (np.float32, (0.1, 2**40, float("nan")), (1e39, None)),
        (bool, (True, 0, 1), (2, 0.5, -1, float("nan"), "a")),
    ],
)
def test_the_fill_is_a_value_that_the_masks_hold(masks, fills, wrong):
    outside = np.full((1, 16, 16, 2), -9, np.float32)
    labels = np.ones((1, 16, 16), masks)
    for fill in fills:
        found = corruptions.move_masks(labels, outside, fill=fill)
        assert (found.dtype == masks and (np.asarray(found) == np.array(fill).astype(masks)).all()) or fill != fill
    for fill in wrong:
        with refused("fill", repr(fill)):
            corruptions.move_masks(labels, outside, fill=fill)


def test_a_fill_for_each_of_the_last_axis_and_a_traced_one():
    outside = np.full((1, 16, 16, 2), np.nan, np.float32)  # positions that are no numbers lie outside, too
    labels = np.ones((1, 16, 16, 2), np.int32)
    assert (np.asarray(corruptions.move_masks(labels, outside, fill=np.array([4, 5]))) == [4, 5]).all()
    with refused("fill", (3,)):
        corruptions.move_masks(labels, outside, fill=np.array([4, 5, 6]))
    moved = jax.jit(lambda fill: corruptions.move_masks(labels, outside, fill=fill))
    assert (np.asarray(moved(4)) == 4).all()
    with refused("fill", "dtype float32"):
        moved(0.5)


def test_labels_of_more_than_31_bits_are_refused_at_both_ends():
    where = np.zeros((1, 16, 16, 2), np.float32)
    for label in (2**40, -(2**40), -(2**63)):
        with refused("masks", label):
            corruptions.move_masks(np.full((1, 16, 16), label, np.int64), where)


def test_lists_of_numbers_are_arrays_and_lists_of_several_lengths_are_refused():
    found = corruptions.move_masks(MASKS.tolist(), WHERE.tolist())
    np.testing.assert_array_equal(found, corruptions.move_masks(MASKS, WHERE))
    with refused("masks", "lists of different lengths"):
        corruptions.move_masks([[1, 2], [3]], WHERE)
    assert jnp.asarray(corruptions.move_boxes(BOXES.tolist(), WHERE)).dtype == jnp.float32
