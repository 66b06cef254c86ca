"""Checks on four devices, each in a function of its own; sharding_test.py runs them by name."""

import contextlib
import functools

import jax
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import corruptions
from runtime import meshes
from tests.checks import run_named
from tests.corruptions.comparing import refused
from tests.pages import example_of
from tests.reference.photographs import photographs

NAME = "noc/border"
KEY = jax.random.key(7)
IMAGES = photographs(4, 32, 32)
ROWS = PartitionSpec("data")


def split(mesh, array, spec=ROWS):
    return jax.device_put(array, NamedSharding(mesh, spec))


def corrupted(name, images=IMAGES, **more):
    return corruptions.corrupt(KEY, images, name, **more)


def assert_same(found, expected, images):
    """The pixels, and where they lie."""
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert found.sharding.is_equivalent_to(images.sharding, 4), (found.sharding, images.sharding)
    assert jax.typeof(found) == jax.typeof(images), (jax.typeof(found), jax.typeof(images))


def the_how_to():
    found = {"jax": jax, "corruptions": corruptions, "key": KEY, "images": IMAGES}
    exec(example_of("docs/howto/corrupt.md", "Corrupt batches that are split over devices"), found)
    assert_same(found["corrupted"], np.asarray(corrupted(NAME)), found["images"])


def split_in_split_alike_out():
    expected = np.asarray(corrupted(NAME))
    for types in (AxisType.Explicit, AxisType.Auto):
        mesh = jax.make_mesh((4,), ("data",), axis_types=(types,))
        images, jitted = split(mesh, IMAGES), jax.jit(lambda x: corrupted(NAME, x))
        for context in (contextlib.nullcontext(), jax.set_mesh(mesh)):
            with context:
                assert_same(corrupted(NAME, images), expected, images)
                assert_same(jitted(images), expected, images)
        assert_same(corrupted(NAME, images, index=split(mesh, np.arange(4))), expected, images)
    by_height = split(jax.make_mesh((2, 2), ("data", "height")), IMAGES, PartitionSpec("data", "height"))
    assert_same(corrupted(NAME, by_height), expected, by_height)


def clips_split_in_split_alike_out():
    clips = np.stack([IMAGES, IMAGES[::-1]], axis=1)
    frames = functools.partial(corrupted, NAME, axis="time")
    expected = np.asarray(frames(clips))
    apart = split(jax.make_mesh((4,), ("data",)), clips)
    for run in (frames, jax.jit(frames)):
        found = run(apart)
        np.testing.assert_array_equal(np.asarray(found), expected)
        assert found.sharding.is_equivalent_to(apart.sharding, 5), found.sharding


def an_explicit_batch_is_augmented_alike():
    images = split(jax.make_mesh((4,), ("data",)), IMAGES)
    found = corruptions.augment.augment(KEY, images, "op=posterize")
    assert_same(found, np.asarray(corruptions.augment.augment(KEY, IMAGES, "op=posterize")), images)


def an_explicit_batch_is_corrupted_without_communication():
    mesh = jax.make_mesh((4,), ("data",))
    images = split(mesh, IMAGES)
    program = jax.jit(lambda x: corrupted("imagenet_c/glass_blur", x)).lower(images).compile()
    np.testing.assert_array_equal(program(images), corrupted("imagenet_c/glass_blur"))
    assert not any(
        word in program.as_text() for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute")
    )


def checkify_of_a_split_batch():
    """Both recipes of the how-to together: a mesh as `jax.make_mesh` makes it, and checks."""
    images = IMAGES / np.float32(255)
    checked = checkify.checkify(
        jax.jit(lambda x, level: corrupted("imagenet_c/fog", x, severity=level, validate="checkify"))
    )
    for types in (AxisType.Explicit, AxisType.Auto):
        apart = split(jax.make_mesh((4,), ("data",), axis_types=(types,)), images)
        error, found = checked(apart, 3)
        error.throw()
        np.testing.assert_allclose(found, corrupted("imagenet_c/fog", images, severity=3), atol=4e-6)
        assert found.sharding.is_equivalent_to(apart.sharding, 4)
        for wrong, level in ((apart, 9), (3 * apart, 3)):
            with pytest.raises(ValueError):
                checked(wrong, level)[0].throw()


def shard_map_and_pmap():
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
    expected, index = np.asarray(corrupted(NAME)), np.arange(4)

    def local(images, index):
        return corrupted(NAME, images, index=index)

    mapped = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=ROWS, out_specs=ROWS))
    np.testing.assert_array_equal(mapped(IMAGES, index), expected)
    np.testing.assert_array_equal(np.asarray(jax.pmap(local)(IMAGES[:, None], index[:, None]))[:, 0], expected)


def traced_in_a_shard_map(names=("imagenet_c/glass_blur", "cbar/circular_motion_blur")):
    """The types say what differs between devices, also of what loops carry and branches give."""
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
    images = jax.ShapeDtypeStruct(IMAGES.shape, IMAGES.dtype)
    for name in (*names, corruptions.random_choice(names[:2])):

        def local(x, index, name=name):
            return corrupted(name, x, index=index)

        mapped = jax.shard_map(local, mesh=mesh, in_specs=ROWS, out_specs=ROWS)
        assert jax.eval_shape(mapped, images, np.arange(4)).shape == IMAGES.shape


def no_index_in_a_shard_map():
    """Refused where devices would repeat their draws: not with a key of each device, or with the same images on all."""
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))

    def of_key(images):
        return corruptions.corrupt(jax.random.fold_in(KEY, jax.lax.axis_index("data")), images, NAME)

    for local, rows in ((of_key, ROWS), (lambda x: corrupted(NAME, x), jax.P())):
        assert (
            jax.eval_shape(jax.shard_map(local, mesh=mesh, in_specs=rows, out_specs=rows), IMAGES).shape == IMAGES.shape
        )
    rigs = np.zeros((4, 2, 8, 8, 3), np.uint8)
    calls = {
        "corrupt": (lambda x: corrupted(NAME, x), IMAGES),
        "coordinates": (lambda x: corruptions.coordinates(KEY, x, "noc/rotation"), IMAGES),
        "augment": (lambda x: corruptions.augment.augment(KEY, x, "augmix"), IMAGES),
        "frame_lost": (lambda x: corruptions.camera.frame_lost(KEY, x, 2), rigs),
    }
    for name, (call, images) in calls.items():
        with refused("index", "none") as refusal:
            jax.eval_shape(jax.shard_map(call, mesh=mesh, in_specs=ROWS, out_specs=ROWS), images)
        assert f"{name}(..., index=positions)" in refusal.value.hint


def all_traced_in_a_shard_map():
    corruptions.laion_c.use_bank(IMAGES)
    traced_in_a_shard_map(corruptions.names())


def arrays_that_were_put_somewhere_meet():
    first, second, third, _ = jax.devices()
    expected = np.asarray(corrupted(NAME))
    for key_on in (None, first, third):
        key = KEY if key_on is None else jax.device_put(KEY, key_on)
        images = jax.device_put(IMAGES, second)
        index, severity = jax.device_put(np.arange(4), third), jax.device_put(np.float32(0.5), first)
        found = corruptions.corrupt(key, images, NAME, index=index)
        np.testing.assert_array_equal(found, expected)
        assert found.devices() == {key_on or second}
        assert corruptions.corrupt(key, images, NAME, severity).devices() == {key_on or second}
    mesh = jax.make_mesh((4,), ("data",))
    images = split(mesh, IMAGES)
    assert_same(corruptions.corrupt(jax.device_put(KEY, third), images, NAME), expected, images)


def one_program_for_any_kind_of_severity():
    put = jax.device_put(np.int32(1), jax.devices()[0])
    kinds = [3, np.int64(2), np.int32(5), np.array(4), 1.0, np.float64(2), jax.numpy.int32(4), put]
    with meshes.counting_compiles() as counts:
        for severity in kinds:
            corrupted("imagenet_c/contrast", severity=severity)
            corruptions.imagenet_c.contrast(KEY, IMAGES[0] / np.float32(255), severity)
    assert {counts[name] for name in ("_corrupt", "sample", "apply")} == {1}, counts


if __name__ == "__main__":
    run_named(globals())
