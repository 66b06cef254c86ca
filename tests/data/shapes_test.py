"""The embedded dataset: determinism, balance, sizes; a cue tells every pair of classes apart, and they can be learnt."""

import itertools
import math
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image, ImageDraw

import data
from data import hosts, shapes
from data.dataset import same_images
from tests.processes import ROOT

PAIRS = list(itertools.combinations(range(10), 2))
SCENES = 60


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
    flags |= {"JAX_ENABLE_X64": "1"}
    command = [sys.executable, "-W", "error", "-c", f"import data, numpy, sys; numpy.save(sys.argv[1], {call})", path]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | flags)
    np.testing.assert_array_equal(np.load(path), eval(call))


def test_pictures_with_other_lowest_bits_are_the_same_and_other_pictures_are_not(monkeypatch):
    draw = shapes.draw

    def facts(change, **given):
        monkeypatch.setattr(shapes, "draw", lambda *args: change(draw(*args)))
        return data.load("shapes", train_limit=40, test_limit=10, **given)

    def lowest(images):
        images[::3, 4, ::5] ^= 1
        return images

    one, two = facts(lambda images: images), facts(lowest)
    assert one.provenance["train"]["sha256"]["images"] != two.provenance["train"]["sha256"]["images"]
    for split in ("train", "test"):
        assert same_images(one.provenance[split], two.provenance[split])
        for other in (facts(lambda images: images ^ 8), facts(lambda images: images, seed=1)):
            assert not same_images(one.provenance[split], other.provenance[split])
    earlier = {"sha256": one.provenance["test"]["sha256"]}  # as earlier versions recorded it
    assert same_images(earlier, one.provenance["test"]) and not same_images(earlier, two.provenance["test"])
    compared = []  # what processes of one run must have alike
    monkeypatch.setattr(hosts.distributed, "from_main", lambda function: [dict(one.provenance), {}])
    monkeypatch.setattr(hosts.distributed, "all_equal", lambda value: compared.append(value) or True)
    for dataset in (one, two, facts(lambda images: images ^ 8)):
        hosts.check_dataset(dataset)
    assert compared[0] == compared[1] != compared[2]


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


@pytest.fixture(scope="module")
def same_scenes():
    """[class, scene, H, W, 3]: the same 60 scenes with an object of every class."""
    key = shapes.split_key("train", seed=5)
    index = np.arange(SCENES)
    return np.stack([shapes.draw(key, index, np.full(SCENES, label)) for label in range(10)]).astype(int)


def cues(a, b):
    return [kind for kind, x, y in zip(("colour", "texture", "shape"), a, b) if x != y]


def test_every_class_has_a_neighbour_and_every_cue_decides_alone_somewhere():
    alone = {(a, b): cues(shapes.CLASSES[a], shapes.CLASSES[b]) for a, b in PAIRS}
    single = {pair: kinds[0] for pair, kinds in alone.items() if len(kinds) == 1}
    assert all(kinds for kinds in alone.values())
    assert {label for pair in single for label in pair} == set(range(10))
    for kind in ("colour", "texture", "shape"):
        assert sum(cue == kind for cue in single.values()) >= 3


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_every_pair_differs_where_the_object_is_and_nowhere_else(same_scenes, a, b):
    difference = np.abs(same_scenes[a] - same_scenes[b]).max(-1)
    changed = difference > 0
    # The scene carries nothing of the class: outside the object the pixels, noise included, are the same.
    assert np.all(changed.mean((1, 2)) < 0.45)
    assert np.median(changed.mean((1, 2))) > 0.02
    # Where something changed it is well above the pixel noise (0.1 wide, a quarter of that on average).
    strength = (difference * changed).sum((1, 2)) / changed.sum((1, 2))
    assert np.quantile(strength, 0.1) > 0.04 * 255


def test_colour_alone_tells_warm_from_cool(same_scenes):
    for a, b in PAIRS:
        first, second = shapes.CLASSES[a], shapes.CLASSES[b]
        if cues(first, second) == ["colour"]:
            warm, cool = (same_scenes[a], same_scenes[b]) if first[0] == "warm" else (same_scenes[b], same_scenes[a])
            inside = np.abs(warm - cool).max(-1) > 0
            red_minus_blue = [(x[..., 0] - x[..., 2])[inside].mean() for x in (warm, cool)]
            assert red_minus_blue[0] > 30 and red_minus_blue[1] < -30


def outline(name):
    """Corners of the silhouette for radius 1, x to the right and y down, from its plane geometry."""
    if name == "disc":
        return [(0.80 * math.cos(t), 0.80 * math.sin(t)) for t in np.linspace(0, 2 * math.pi, 200)]
    if name == "square":
        return [(-0.71, -0.71), (0.71, -0.71), (0.71, 0.71), (-0.71, 0.71)]
    if name == "triangle":  # equilateral, incircle 0.54, hence corners at 1.08, one of them up
        return [(1.08 * math.sin(t), -1.08 * math.cos(t)) for t in (0, 2 * math.pi / 3, 4 * math.pi / 3)]
    tips = [(1.20 if i % 2 == 0 else 0.48, i * math.pi / 5) for i in range(10)]
    return [(r * math.sin(t), -r * math.cos(t)) for r, t in tips]


@pytest.mark.parametrize("name", shapes.SILHOUETTES)
def test_silhouettes_are_the_figures_they_are_called(name):
    size, radius = 400, 0.7
    polygon = Image.new("1", (size, size))
    points = [((x * radius + 1) * size / 2 - 0.5, (y * radius + 1) * size / 2 - 0.5) for x, y in outline(name)]
    ImageDraw.Draw(polygon).polygon(points, fill=1)
    axis = (jnp.arange(size, dtype=jnp.float32) + 0.5) * 2 / size - 1
    y, x = jnp.meshgrid(axis, axis, indexing="ij")
    kind = shapes.SILHOUETTES.index(name)
    distance = np.asarray(shapes.silhouette_distance(kind, x, y, radius))
    assert np.mean((distance < 0) != np.asarray(polygon)) < 0.005
    # The areas are alike beside the range of radii (a factor of two in area): size does not give the shape away.
    assert 1.5 < np.mean(distance < 0) * 4 / radius**2 < 2.1


@pytest.mark.parametrize("name", shapes.TEXTURES)
def test_textures_are_what_they_are_called(name):
    axis = (jnp.arange(400, dtype=jnp.float32) + 0.5) / 200 - 1
    y, x = jnp.meshgrid(axis, axis, indexing="ij")
    scene = {"texture_angle": jnp.float32(0), "texture_period": jnp.float32(0.25), "texture_phase": jnp.zeros(2)}
    pattern = np.asarray(shapes.texture_pattern(shapes.TEXTURES.index(name), scene, x, y))
    along_x, along_y = np.abs(np.diff(pattern, axis=1)).mean(), np.abs(np.diff(pattern, axis=0)).mean()
    if name == "plain":
        assert not pattern.any()
        return
    assert abs(pattern.mean()) < 0.2 and pattern.std() > 0.5 and np.abs(pattern).max() <= 1.3
    if name == "striped":
        assert along_y == 0 and along_x > 0
        assert np.sum(np.diff(np.sign(pattern[0])) > 0) in (7, 8)  # 2 / 0.25 = 8 periods, one may start at the edge
    else:
        assert along_x == pytest.approx(along_y, rel=0.02)
    if name == "dotted":  # separate bright dots before a darker ground: bright parts are the smaller ones
        assert np.mean(pattern > 0.5) < 0.4


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
    ((graph, state),) = trained_models.read_models(tmp_path / "run", loaded, mesh).values()
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
