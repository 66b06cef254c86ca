"""The embedded dataset: determinism, balance, sizes, and that it can be learnt."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image

import data
from data import shapes

ROOT = Path(__file__).resolve().parents[2]


def test_sizes_balance_and_types():
    loaded = data.load("shapes", train_images=600, test_images=400)
    for split, size in ((loaded.train, 600), (loaded.test, 400)):
        assert split.images.shape == (size, 32, 32, 3) and split.images.dtype == np.uint8
        assert split.labels.dtype == split.index.dtype == np.int32
        assert np.bincount(split.labels).tolist() == [size // 10] * 10
        assert split.index.tolist() == list(range(size))
        assert 90 < split.images.mean() < 160 and split.images.std() > 35
    assert loaded.num_classes == len(set(loaded.class_names)) == 10


def test_the_same_seed_gives_the_same_bits_whatever_is_drawn_with_them():
    whole = data.load("shapes", train_images=320, test_images=20)
    small = data.load("shapes", train_limit=7, test_limit=3)
    np.testing.assert_array_equal(small.train.images, whole.train.images[:7])
    np.testing.assert_array_equal(small.test.images, whole.test.images[:3])
    index = np.array([300, 4, 251, 17])
    some = shapes.draw(shapes.split_key("train"), index, whole.train.labels[index])
    np.testing.assert_array_equal(some, whole.train.images[index])


def test_another_process_with_two_devices_and_another_generator_draws_the_same(tmp_path):
    call, path = "data.load('shapes', train_limit=40, test_limit=10, seed=3).train.images", tmp_path / "images.npy"
    flags = {"JAX_NUM_CPU_DEVICES": "2", "JAX_DEFAULT_PRNG_IMPL": "rbg", "JAX_DEBUG_KEY_REUSE": "1"}
    command = [sys.executable, "-W", "error", "-c", f"import data, numpy, sys; numpy.save(sys.argv[1], {call})", path]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | flags)
    np.testing.assert_array_equal(np.load(path), eval(call))


def test_splits_and_seeds_share_no_picture():
    sets = [data.load("shapes", train_images=200, test_images=200, seed=seed) for seed in (0, 1)]
    pictures = [image.tobytes() for d in sets for split in (d.train, d.test) for image in split.images]
    assert len(set(pictures)) == 800


def test_a_scene_is_the_same_at_every_size():
    key, index = shapes.split_key("test"), np.arange(40)
    small, large = (shapes.draw(key, index, index % 10, size).astype(float) for size in (32, 64))
    averaged = large.reshape(40, 32, 2, 32, 2, 3).mean((2, 4))
    # The rest is fresh pixel noise: at most 0.1 wide, uniform, hence 0.025 on average over both.
    assert np.abs(averaged - small).mean() < 0.025 * 255
    for size in (16, 47):
        assert data.load("shapes", image_size=size, train_limit=5, test_limit=12).image_shape == (size, size, 3)


def test_the_contact_sheet(tmp_path, capsys):
    path = tmp_path / "images" / "shapes.png"
    shapes.main([f"--out={path}"])
    printed = capsys.readouterr().out
    assert path.stat().st_size < 150_000
    with Image.open(path) as sheet:
        assert sheet.size == (8 * 66, 10 * 66)
        shown = np.asarray(sheet.convert("RGB")).astype(int)
    first = data.load("shapes", train_limit=1, test_limit=25).test.images
    # Row 3, column 2 is the test image 2 * 10 + 3, in 32 levels.
    tile = shown[3 * 66 + 1 : 4 * 66 - 1 : 2, 2 * 66 + 1 : 3 * 66 - 1 : 2]
    assert np.abs(tile - first[23]).max() <= 4
    assert all(name in printed for name in ("warm-disc", "warm-star"))


@pytest.mark.slow
@pytest.mark.timeout(1500)  # half a minute of training on two free cores, ten on a loaded machine
def test_the_demos_recipe_learns_it_and_noise_hues_and_frames_hurt(tmp_path):
    """Six epochs of batches of 64, as the demo trains its models and `data.shapes` states accuracies."""
    from flax import nnx

    import train
    from configs import overlap_shapes
    from evaluation import trained_models
    from runtime import meshes

    config = overlap_shapes.get_config()
    assert train.train_and_evaluate(config, tmp_path / "run") > 0.9
    loaded, mesh = data.load("shapes"), meshes.data_mesh()
    ((graph, state),) = trained_models.read_models(tmp_path / "run", 10, 32, mesh).values()
    model = nnx.merge(graph, state.params, state.statistics)
    predict = jax.jit(lambda images: model(images, False)[0].argmax(-1))
    rng = np.random.default_rng(0)

    def accuracy(images):
        answers = [np.asarray(predict(part)) for part in np.split(images.astype(np.float32), 8)]
        return np.mean(np.concatenate(answers) == loaded.test.labels)

    clean = loaded.test.images / 255
    reached = accuracy(clean)
    assert 0.9 < reached < 1
    framed = rng.random((len(clean), 1, 1, 3)) * np.ones_like(clean)
    for image, original in zip(framed, clean):
        width = rng.integers(4, 8)
        image[width:-width, width:-width] = original[width:-width, width:-width]
    harmed = {
        "noise": np.clip(clean + 0.15 * rng.normal(size=clean.shape), 0, 1),
        "hue": clean[..., [2, 0, 1]],  # a third of a turn
        "frame": framed,
    }
    for name, images in harmed.items():
        assert accuracy(images) < reached - 0.12, name  # 15 points but for three standard errors
