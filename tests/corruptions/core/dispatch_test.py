"""Devices and processes: forked children are told to be spawned, batches share work and tables; artifacts of `jax.export`,
of a symbolic number of images, for three platforms.
"""

import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import corruptions
from corruptions.primitives import staging
from runtime import meshes
from tests.corruptions.comparing import assert_same
from tests.pages import example_of
from tests.reference.photographs import photographs

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

# The child's code; the parent's key and images come with the fork.
USES = {
    "corrupt": "corruptions.corrupt(key, images, 'noc/brightness', 0.5)",
    "one image": "corruptions.noc.brightness(key, image, 0.5)",
    "augment": "corruptions.augment.augment(key, images, 'augmix')",
    "boxes": "corruptions.move_boxes(np.zeros((2, 1, 4)), np.zeros((2, 16, 16, 2)))",
    "points": "corruptions.move_points(np.zeros((2, 1, 2)), np.zeros((2, 16, 16, 2)))",
    "masks": "corruptions.move_masks(np.zeros((2, 16, 16)), np.zeros((2, 16, 16, 2)))",
    "positions": "corruptions.noc.rotation.coordinates((16, 16, 3), {})",
    "write": "corruptions.write_dataset('unused', (images, [0, 1]))",
    "key": "corruptions.core.keys.seed_key(1)",
}
START = """
import os, sys, signal, subprocess, warnings
import numpy as np, jax, corruptions, corruptions.core.keys
warnings.simplefilter("ignore")
images = np.zeros((2, 16, 16, 3), np.uint8)
image = np.zeros((16, 16, 3), np.float32)

def in_child(use):
    sys.stdout.flush()
    if not (child := os.fork()):
        signal.alarm(90)  # one that hangs all the same ends
        try:
            use()
            print("done", flush=True)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        print(f"child ended with status {status}")
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@forks
def test_the_first_use_in_a_child_of_a_process_that_computes_is_refused():
    uses = "".join(f"in_child(lambda: {use})\n" for use in USES.values())
    lines = run(f"key = jax.random.key(0)\n{uses}in_child(lambda: in_child(lambda: {USES['corrupt']}))\n")
    refused = "RuntimeError: expected a process in which JAX can compute, found a child that was forked after JAX"
    for what, line in zip(USES, lines):
        assert line.startswith(refused) and "spawn" in line and "in the parent" in line, (what, line)
    assert len(lines) == len(USES) + 2 and lines[-2].startswith(refused) and lines[-1] == "done"  # a child's child too


@forks
def test_children_that_never_compute_or_that_exec_are_let_through():
    exec_child = "lambda: subprocess.run([sys.executable, '-c', 'from corruptions import devices; devices.refuse_forked()'], check=True)"
    assert run(
        "in_child(corruptions.core.forks.refuse_forked)\n"  # before JAX has started, a child may start it itself
        "jax.devices()\n"
        f"in_child({exec_child})\n"
        "in_child(lambda: corruptions.names('imagenet_c') + (corruptions.get('fog').family,))\n"
        "corruptions.core.forks.refuse_forked()\n"  # the parent goes on
        "print('parent')\n"
    ) == ["done", "done", "done", "parent"]


@forks
@pytest.mark.parametrize(
    "release", ["del xla_bridge.backends_are_initialized", "xla_bridge.backends_are_initialized = None"]
)
def test_a_release_of_jax_that_does_not_tell_whether_it_started_refuses_nothing(release):
    use = "corruptions.core.forks.refuse_forked"
    assert run(f"from jax._src import xla_bridge\njax.devices()\n{release}\nin_child({use})\n{use}()") == ["done"]


def test_a_batch_shares_its_largest_count():
    def twice(count):
        return 2 * staging.largest(count)

    counts = jnp.array([[3, 1], [0, 7]], jnp.int32)
    assert int(jax.jit(twice)(counts[1, 0])) == 0
    np.testing.assert_array_equal(jax.jit(jax.vmap(twice))(counts[0]), [6, 6])
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(twice)))(counts), np.full((2, 2), 14))
    assert jax.vmap(twice)(counts[0, :0]).shape == (0,)


def test_what_none_of_a_batch_needs_is_a_branch_that_is_not_run():
    def corrupt(count, x):
        return jax.lax.cond(staging.largest(count) > 0, jnp.sin, lambda x: x, x)

    found = jax.make_jaxpr(jax.vmap(corrupt))(jnp.zeros(2, jnp.int32), jnp.zeros(2))
    # With a count per image `cond` would run both branches and choose between the results.
    assert "cond[" in str(found) and "select_n" not in str(found)


KEY = jax.random.key(7)
IMAGES, INDEX = photographs(3, 32, 32), np.arange(5, 8, dtype=np.int32)
PLATFORMS = ("cpu", "cuda", "tpu")


def exported(name, severity):
    def run(key, images, severity, index):
        return corruptions.corrupt(key, images, name, severity, index=index)

    (number,) = export.symbolic_shape("n")
    images = jax.ShapeDtypeStruct((number, *IMAGES.shape[1:]), IMAGES.dtype)
    index = jax.ShapeDtypeStruct((number,), np.int32)
    return export.export(jax.jit(run), platforms=PLATFORMS)(KEY, images, severity, index)


@pytest.mark.parametrize("severity", [np.float32(0.5), None])
def test_one_artifact_serves_batches_of_any_number(severity):
    artifact = exported("noc/border", severity)
    assert artifact.platforms == PLATFORMS
    for number in (3, 1):
        images, index = IMAGES[:number], INDEX[:number]
        expected = corruptions.corrupt(KEY, images, "noc/border", severity, index=index)
        np.testing.assert_array_equal(artifact.call(KEY, images, severity, index), expected)


def test_an_artifact_is_saved_and_loaded_as_the_how_to_says(tmp_path, monkeypatch):
    pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers to make bytes of artifacts")
    monkeypatch.chdir(tmp_path)
    given = {"jax": jax, "corruptions": corruptions, "pathlib": pathlib, "key": KEY, "images": IMAGES}
    exec(example_of("docs/howto/corrupt.md", "Export a corruption"), given | {"index": INDEX})
    artifact = export.deserialize((tmp_path / "border.bin").read_bytes())
    found = artifact.call(KEY, IMAGES, INDEX)
    np.testing.assert_array_equal(found, corruptions.corrupt(KEY, IMAGES, "noc/border", index=INDEX))


@pytest.mark.parametrize(
    "name", ["cbar/plasma_noise", "cbar/caustic_noise", "cbar/pseudocolor", "cbar/perlin_noise", "imagenet_c/fog"]
)
def test_what_is_as_fast_in_one_form_has_one_for_all_platforms(name):
    """Other compilers, such as ONNX's, know no choice by platform."""
    corruption, shape = corruptions.get(name), (64, 64, 3)
    params = jax.eval_shape(lambda key: corruption.sample(key, shape, 3), KEY)
    assert "platform_index" not in str(
        jax.make_jaxpr(corruption.applier)(jax.ShapeDtypeStruct(shape, np.float32), params)
    )


@pytest.mark.parametrize(
    "name",
    [
        *("imagenet_c/defocus_blur", "imagenet_c/gaussian_blur", "imagenet_c/glass_blur", "imagenet_c/motion_blur"),
        *("imagenet_c/pixelate", "imagenet_c/zoom_blur", "imagenet_c/spatter"),
        *("cbar/circular_motion_blur", "cbar/ripple", "cbar/voronoi_noise"),
    ],
)
def test_portable_programs_choose_nothing_by_platform(name):
    """Whatever JAX traced before."""
    corruption, shape = corruptions.get(name), (32, 32, 3)
    params = jax.eval_shape(lambda key: corruption.sample(key, shape, 3), KEY)
    arguments, apply = (jax.ShapeDtypeStruct(shape, np.float32), params), jax.jit(corruption.apply)

    def chooses():
        return "platform_index" in str(jax.make_jaxpr(apply)(*arguments))

    assert chooses()
    with corruptions.portable():
        assert not chooses()
    assert chooses()


@pytest.mark.parametrize("name", ["imagenet_c/gaussian_blur", "cbar/ripple"])
def test_portable_programs_give_the_same_pixels(name):
    expected = corruptions.corrupt(KEY, IMAGES, name, 3)
    with corruptions.portable():
        assert_same(corruptions.corrupt(KEY, IMAGES, name, 3), expected)


@pytest.mark.parametrize("name", ["imagenet_c/shot_noise", "cbar/ripple"])
def test_a_program_that_is_traced_for_this_platform_alone_is_the_one_of_all_forms(name):
    """Kept programs are traced so: in less time, and to the same operations."""
    corruption, shape = corruptions.get(name), (32, 32, 3)
    params = jax.eval_shape(lambda key: corruption.sample(key, shape, 3), KEY)
    arguments, apply = (jax.ShapeDtypeStruct(shape, np.float32), params), jax.jit(corruption.apply)

    def operations():
        traced = apply.trace(*arguments)
        compiled = traced.lower().compile().as_text()
        return str(traced.jaxpr), sorted(re.findall(r"= \S+ ([a-z-]+)\(", compiled))

    (of_all, expected) = operations()
    with staging.on_platform(jax.default_backend()):
        of_one, found = operations()
    assert found == expected
    assert "platform_index" in of_all and "platform_index" not in of_one


@pytest.mark.slow
@pytest.mark.parametrize("name", corruptions.names())
def test_every_corruption_exports(name):
    assert exported(name, None).out_avals[0].dtype == np.uint8


@pytest.mark.parametrize(
    "call",
    [
        lambda seed, image: corruptions.augment.get("augmix")(jax.random.key(seed), image),
        lambda seed, image: corruptions.augment.get("autoaugment_cifar")(jax.random.key(seed), image),
        lambda seed, image: corruptions.imagenet_c.store(image),
        lambda seed, image: corruptions.move_boxes(
            [[(0, 0, 5, seed)]], jnp.moveaxis(jnp.indices((16, 16), dtype=jnp.float32), 0, -1)[None]
        ),
    ],
    ids=["augmix", "autoaugment", "store", "boxes"],
)
def test_a_second_call_on_one_image_compiles_nothing(call):
    images = jnp.asarray(photographs(2, 32, 32), jnp.float32) / 255
    first = call(1, images[0])
    with meshes.counting_compiles() as compiled:
        second = call(2, images[1])
    assert not compiled and not np.array_equal(first, second)
