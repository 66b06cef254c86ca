"""The classes of the embedded dataset: a cue tells every pair apart; figures and textures are what they are called."""

import colorsys
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image, ImageDraw

from data import shapes

PAIRS = list(itertools.combinations(range(10), 2))
SCENES = 60


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


def test_hsv_to_rgb_agrees_with_the_standard_library():
    hsv = np.float32([(0.0, 1.0, 1.0), (0.3, 0.5, 0.8), (0.95, 0.2, 0.4), (1.04, 0.7, 0.9), (-0.4, 0.6, 1.0)])
    expected = [colorsys.hsv_to_rgb(hue % 1, *others) for hue, *others in hsv.tolist()]
    np.testing.assert_allclose(shapes.hsv_to_rgb(*jnp.asarray(hsv.T)), expected, atol=1e-5)


def test_scene_parameters_stay_in_their_ranges():
    scenes = jax.vmap(shapes.sample)(jax.random.split(jax.random.key(0), 500))
    assert set(scenes) == set(shapes.RANGES)
    for name, (low, high, count) in shapes.RANGES.items():
        values = np.asarray(scenes[name])
        assert values.shape == ((500,) if count == 1 else (500, count))
        width = high - low
        assert low <= values.min() < low + 0.05 * width and high - 0.05 * width < values.max() <= high
