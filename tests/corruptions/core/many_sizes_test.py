"""Images of many sizes: the exact way gives what `corrupt` gives, padding what the exact way gives."""

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image
import pytest

import corruptions
from corruptions.core import many_sizes, severity_tables
from corruptions.core.corruption import Corruption
from corruptions.core.severity import Fraction
from corruptions.primitives import padded
from corruptions.primitives.padded import Padding
from runtime import meshes
from tests.corruptions.comparing import refused
from tests.pages import example_of
from tests.reference.photographs import photograph

KEY = jax.random.key(5)


def pictures(shapes):
    return [photograph(*shape, seed) for seed, shape in enumerate(shapes)]


SHAPES = ((30, 41), (52, 33), (33, 52), (60, 50))  # of one square; the last one of another severity table
IMAGES = pictures(SHAPES)


def each(images, name, severity=None, sizes="bucket", **given):
    return list(corruptions.corrupt_each(KEY, images, name, severity, sizes, **given))


@pytest.mark.parametrize("given, table", [({}, "imagenet"), ({"table": "by_size"}, None), ({"table": "tiny"}, "tiny")])
def test_exact_is_a_batch_of_one(given, table):
    found = each(IMAGES, "imagenet_c/contrast", 3, "exact", **given)
    for k, image in enumerate(IMAGES):
        alone = corruptions.corrupt(KEY, image[None], "imagenet_c/contrast", 3, index=[k], table=table)[0]
        np.testing.assert_array_equal(found[k], alone)
        assert type(found[k]) is np.ndarray and found[k].flags.writeable


SIDES = ((44, 100), (48, 100), (300, 200))  # of three severity tables


@pytest.mark.parametrize("sizes", ["bucket", "exact"])
@pytest.mark.parametrize("name", ["imagenet_c/gaussian_noise", "choice", "compose"])
def test_one_severity_has_one_strength_at_all_sizes(name, sizes, caplog):
    severity_tables.say_one_for_all.cache_clear()
    if name == "choice":
        name = corruptions.random_choice(["imagenet_c/gaussian_noise"])
    elif name == "compose":
        name = corruptions.compose("imagenet_c/gaussian_noise", "noc/hue")
    grey = [np.full((*side, 3), 128, np.uint8) for side in SIDES]
    found = each(grey, name, 5 if not isinstance(name, corruptions.Corruption) else 1.0, sizes)
    strengths = [image[..., 1].std() for image in found]
    assert max(strengths) < 1.1 * min(strengths)
    (line,) = (record.getMessage() for record in caplog.records)
    assert "by_size" in line
    alone = each(grey[1:2], name, 5 if not isinstance(name, corruptions.Corruption) else 1.0, sizes, index=[1])[0]
    np.testing.assert_array_equal(alone, found[1])


def test_a_table_by_size_is_that_of_the_shorter_side(caplog):
    severity_tables.say_one_for_all.cache_clear()
    grey = [np.full((*side, 3), 128, np.uint8) for side in SIDES]
    found = each(grey, "imagenet_c/gaussian_noise", 5, table="by_size")
    assert [image.std() for image in found] == pytest.approx([25.5, 45.9, 82], rel=0.05)
    assert not caplog.records
    fixed = each(grey, "robodepth/gaussian_noise", 5)
    assert max(image.std() for image in fixed) < 1.1 * min(image.std() for image in fixed) and not caplog.records


def test_an_image_of_another_table_than_its_program():
    """A square of 512 is built after `inception`, whose pixels are larger; 120 rows are `imagenet`'s."""
    exact, found = (
        each(pictures([(120, 260)]), "imagenet_c/pixelate", 3, sizes, table="by_size")[0]
        for sizes in ("exact", "bucket")
    )
    difference = np.abs(exact.astype(int) - found)
    assert difference.max() <= 1 and np.count_nonzero(difference) <= 0.005 * difference.size


def test_the_statistics_are_those_of_the_image_not_of_its_padding():
    """A bright strip at the lower border is all that reflection repeats."""
    image = np.zeros((48, 60, 3), np.uint8)
    image[-8:] = 240
    exact, found = (each([image], "imagenet_c/contrast", 5, sizes, table="cifar")[0] for sizes in ("exact", "bucket"))
    assert np.abs(exact.astype(int) - found).max() <= 1
    squared = np.pad(image, ((0, 16), (0, 4), (0, 0)), "reflect")
    whole = np.asarray(corruptions.corrupt(KEY, squared[None], "imagenet_c/contrast", 5, table="cifar"))[0, :48, :60]
    assert np.abs(exact.astype(int) - whole).max() > 10


@pytest.mark.parametrize("sizes", ["bucket", "exact"])
def test_an_image_does_not_depend_on_its_neighbours(sizes):
    whole = each(IMAGES, "imagenet_c/gaussian_noise", 1, sizes)
    turned = each(IMAGES[::-1], "imagenet_c/gaussian_noise", 1, sizes, index=[3, 2, 1, 0])
    alone = each(IMAGES[1:2], "imagenet_c/gaussian_noise", 1, sizes, index=jnp.array([1]))
    for k in range(4):
        np.testing.assert_array_equal(turned[3 - k], whole[k])
    np.testing.assert_array_equal(alone[0], whole[1])
    assert not np.array_equal(each(IMAGES[1:2], "imagenet_c/gaussian_noise", 1, sizes, index=[2**40])[0], whole[1])


def test_one_program_for_a_square():
    each(IMAGES, "imagenet_c/contrast", 3)
    with meshes.counting_compiles() as compiled:
        each(pictures([(40, 40 + k) for k in range(5)]), "imagenet_c/contrast", 1)
        each([IMAGES[0][..., 0]], "imagenet_c/contrast", 2)
    assert not compiled["_corrupt_padded"]


def test_squares_depend_on_the_size_alone():
    sides = {(16, 16): 32, (32, 32): 32, (33, 20): 64, (480, 640): 640, (513, 20): 640, (700, 700): 768, (770, 9): 1024}
    assert {shape: padded.side_of(shape) for shape in sides} == sides
    assert padded.side_of((1025, 1)) == 1280 and padded.side_of((3000, 4000)) == 4096
    assert [padded.side_of((n, 64), 12) for n in (52, 53, 64)] == [64, 128, 64]


def test_any_image_comes_back_as_it_came():
    image = IMAGES[0]
    with_alpha = np.dstack([image, image[..., :1]])
    floats = (image / np.float64(255), (image / 255).astype(np.float16))
    given = [image[..., 0], with_alpha, *floats, PIL.Image.fromarray(image)]
    found = each(iter(given), "imagenet_c/contrast", 2)
    assert [x.shape for x in found] == [(30, 41), (30, 41, 4), (30, 41, 3), (30, 41, 3), (30, 41, 3)]
    assert [x.dtype for x in found] == [np.uint8, np.uint8, np.float64, np.float16, np.uint8]
    np.testing.assert_array_equal(found[1][..., 3], image[..., 0])
    np.testing.assert_array_equal(found[4], each([image], "imagenet_c/contrast", 2)[0])


def test_images_are_read_a_window_at_a_time(monkeypatch):
    monkeypatch.setattr(many_sizes, "_WINDOW", 2)
    read = []

    def stream():
        for k in range(5):
            read.append(k)
            yield IMAGES[0]

    results = corruptions.corrupt_each(KEY, stream(), "imagenet_c/contrast", 3)
    assert read == []
    next(results)
    assert read == [0, 1]
    assert len(list(results)) == 4 and read == list(range(5))


def test_a_square_too_large_for_the_memory_is_named(monkeypatch):
    pad = np.pad

    def padded(array, width, mode):
        if max(np.ravel(width)) > 99_000:
            raise MemoryError
        return pad(array, width, mode)

    monkeypatch.setattr(np, "pad", padded)
    results = corruptions.corrupt_each(KEY, [IMAGES[0], np.zeros((16, 100_000, 3), np.uint8)], "imagenet_c/contrast", 1)
    message = r"image 1: expected memory for the 131072x131072 pixels that 16x100000 are padded to, .*sizes='exact'"
    with pytest.raises(MemoryError, match=message):
        list(results)


def test_a_quick_compile_gives_the_same_bits(monkeypatch):
    names = ("imagenet_c/motion_blur", "imagenet_c/snow", "imagenet_c/contrast")
    quick = [each([IMAGES[0], IMAGES[0] / np.float32(255)], name, 1) for name in names]
    monkeypatch.setattr(many_sizes, "_QUICK_SIDE", 0)
    for name, expected in zip(names, quick):
        for found, same in zip(each([IMAGES[0], IMAGES[0] / np.float32(255)], name, 1), expected):
            np.testing.assert_array_equal(found, same)


def test_what_comes_before_a_bad_image_is_given():
    results = corruptions.corrupt_each(KEY, [IMAGES[0], IMAGES[0][:8]], "imagenet_c/contrast", 1)
    assert next(results).shape == IMAGES[0].shape
    with refused("images", "8x41 in shape (1, 8, 41, 3)") as refusal:
        next(results)
    assert refusal.value.place == "image 1"


def test_what_comes_before_a_file_that_cannot_be_read_is_given(tmp_path):
    files = [tmp_path / name for name in ("whole.png", "truncated.png", "missing.png")]
    PIL.Image.fromarray(IMAGES[0]).save(files[0])
    files[1].write_bytes(files[0].read_bytes()[:-200])
    for second, error in ((files[1], "image 1: .*truncated"), (files[2], "image 1: .*No such file")):
        results = corruptions.corrupt_each(KEY, map(PIL.Image.open, (files[0], second)), "imagenet_c/contrast", 1)
        assert next(results).shape == IMAGES[0].shape
        with pytest.raises(OSError, match=error):
            next(results)


def test_a_corruption_of_ones_own_with_a_range_and_padding():
    def sample(key, shape, severity, *, table=None):
        return {"share": severity}

    def apply(image, params):
        return image * (1 - params["share"])

    padding = Padding(lambda shape, table, side: ("cifar", np.int32(0)))
    darken = Corruption("darken", "mine", "colour", sample, apply, Fraction(), "nearest", (), padding=padding)
    (found,) = each(IMAGES[:1], darken, 0.5)
    np.testing.assert_array_equal(found, np.round(IMAGES[0] * 0.5).astype(np.uint8))


def test_the_example_of_the_how_to_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, image in zip(("photo.png", "other.png"), IMAGES[:2], strict=True):
        PIL.Image.fromarray(image).save(path)
    example = example_of("docs/howto/corrupt.md", "Corrupt images of many sizes").replace("motion_blur", "contrast")
    assert len(example.splitlines()) <= 10
    found = {"corruptions": corruptions, "PIL": PIL, "key": KEY, "arrays": IMAGES[:1]}
    exec(example.replace("cbar/ripple", "imagenet_c/contrast"), found)
    assert np.asarray(PIL.Image.open("corrupted_other.png")).shape == IMAGES[1].shape
    assert next(found["exact"]).shape == IMAGES[0].shape
