"""AutoAugment: policies, strengths and probabilities as published, transforms equal to Pillow's. Patch Gaussian: geometry
of the patch, moments of the noise, one field per transform.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from corruptions import augment
from corruptions.core.batch import to_float
from tests.corruptions.augment.drawing import NAMES, chain, draws
from tests.corruptions.comparing import assert_frequencies, assert_uniform
from tests.reference.photographs import photographs

# The policies once more, typed from the papers: operation, tenths of probability, magnitude.
CIFAR = """
Invert 1; Contrast 2 6 | Rotate 7 2; TransX 3 9 | Sharpness 8 1; Sharpness 9 3 | ShearY 5 8; TransY 7 9
AutoContrast 5; Equalize 9 | ShearY 2 7; Posterize 3 7 | Color 4 3; Brightness 6 7 | Sharpness 3 9; Brightness 7 9
Equalize 6; Equalize 5 | Contrast 6 7; Sharpness 6 5 | Color 7 7; TransX 5 8 | Equalize 3; AutoContrast 4
TransY 4 3; Sharpness 2 6 | Brightness 9 6; Color 2 8 | Solarize 5 2; Invert 0 | Equalize 2; AutoContrast 6
Equalize 2; Equalize 6 | Color 9 9; Equalize 6 | AutoContrast 8; Solarize 2 8 | Brightness 1 3; Color 7 0
Solarize 4 5; AutoContrast 9 | TransY 9 9; TransY 7 9 | AutoContrast 9; Solarize 8 3 | Equalize 8; Invert 1
TransY 7 9; AutoContrast 9
"""
IMAGENET = """
Posterize 4 8; Rotate 6 9 | Solarize 6 5; AutoContrast 6 | Equalize 8; Equalize 6 | Posterize 6 7; Posterize 6 6
Equalize 4; Solarize 2 4 | Equalize 4; Rotate 8 8 | Solarize 6 3; Equalize 6 | Posterize 8 5; Equalize 10
Rotate 2 3; Solarize 6 8 | Equalize 6; Posterize 4 6 | Rotate 8 8; Color 4 0 | Rotate 4 9; Equalize 6
Equalize 0; Equalize 8 | Invert 6; Equalize 10 | Color 6 4; Contrast 10 8 | Rotate 8 8; Color 10 2
Color 8 8; Solarize 8 7 | Sharpness 4 7; Invert 6 | ShearX 6 5; Equalize 10 | Color 4 0; Equalize 6
Equalize 4; Solarize 2 4 | Solarize 6 5; AutoContrast 6 | Invert 6; Equalize 10 | Color 6 4; Contrast 10 8
Equalize 8; Equalize 6
"""
# Strength at magnitudes 0..10 and the sign rule: "+-" around 0, "1+-" around 1, "" none; pixels for a side of 32.
STRENGTHS = {
    "Rotate": ("+-", np.linspace(0, 30, 11)),
    "ShearX": ("+-", np.linspace(0, 0.3, 11)),
    "ShearY": ("+-", np.linspace(0, 0.3, 11)),
    "TransX": ("+-", np.linspace(0, 14.501511, 11)),
    "TransY": ("+-", np.linspace(0, 14.501511, 11)),
    "Posterize": ("", np.array([4, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8])),
    "Solarize": ("", np.linspace(256, 0, 11)),
}
STRENGTHS |= dict.fromkeys(("Color", "Contrast", "Brightness", "Sharpness"), ("1+-", np.linspace(0, 0.9, 11)))


def parsed(text):
    pairs = [pair for line in text.strip().splitlines() for pair in line.split("|")]
    return [[entry.split() for entry in pair.split(";")] for pair in pairs]


def our_name(name):
    return {"TransX": "translate_x", "TransY": "translate_y", "ShearX": "shear_x", "ShearY": "shear_y"}.get(
        name, name.lower()
    )


def possible(name, magnitude):
    """Strengths that an operation may be drawn with."""
    if magnitude is None:
        return {None}
    rule, scale = STRENGTHS[name]
    value = scale[int(magnitude)]
    return {"+-": {-value, value}, "1+-": {1 - value, 1 + value}, "": {value}}[rule]


def carried_out(policy, released):
    """The cases ((code 1, strength 1), (code 2, strength 2)) and their probabilities, strengths rounded."""
    cases = {}
    for number, pair in enumerate(parsed(CIFAR if policy == "cifar" else IMAGENET), start=1):
        options = []
        for place, entry in enumerate(pair, start=1):
            name, tenths, magnitude = (*entry, None)[:3]
            strengths = possible(name, magnitude)
            if released and (policy, number, place) == ("cifar", 22, 1):
                strengths = {max(strengths)}
            if released and (policy, number, place) == ("imagenet", 19, 1):
                strengths = {0.55, 1.45}
            done = int(tenths) / 10
            weighted = [((our_name(name), key(s)), done / len(strengths)) for s in strengths]
            options.append([*weighted, ((None, None), 1 - done)])
        for first, p in options[0]:
            for second, q in options[1]:
                if p * q > 0:
                    cases[first, second] = cases.get((first, second), 0) + p * q / 25
    return cases


def key(strength):
    return None if strength is None else round(float(strength), 3)


WITHOUT = ("autocontrast", "equalize", "invert")


@pytest.mark.parametrize("released", [True, False])
@pytest.mark.parametrize("policy", ["cifar", "imagenet"])
def test_cases_have_the_probabilities_of_the_policy(policy, released):
    options = {} if released else {"released": False}
    params = draws(f"autoaugment_{policy}", 40_000, **options)
    expected = carried_out(policy, released)
    assert sum(expected.values()) == pytest.approx(1)
    found = []
    for codes, strengths in zip(params["operation"], params["strength"], strict=True):
        names = [NAMES[code] for code in codes]
        found.append(
            tuple(
                (name, None if name is None or name in WITHOUT else key(strength))
                for name, strength in zip(names, strengths, strict=True)
            )
        )
    number = {case: i for i, case in enumerate(expected)}
    unknown = set(found) - set(number)
    assert not unknown, f"not in the policy: {sorted(map(str, unknown))[:4]}"
    assert_frequencies(np.array([number[case] for case in found]), {number[c]: p for c, p in expected.items()})


@pytest.mark.parametrize("policy", ["cifar", "imagenet"])
def test_equals_pillow(policy):
    images = photographs(40, 32, 32)
    params = draws(f"autoaugment_{policy}", 40, seed=2)
    found = np.round(np.asarray(apply(to_float(jnp.asarray(images)), params)) * 255).astype(int)
    unequal = 0
    for i, image in enumerate(images):
        names = [NAMES[code] for code in params["operation"][i]]
        expected = chain(names, params["strength"][i], image).astype(int)
        difference = np.abs(found[i] - expected)
        if set(names) & {"rotate", "shear_x", "shear_y", "translate_x", "translate_y"}:
            # Slopes such as 0.24 put many values on whole levels but for Pillow's own float64 rounding.
            assert (difference > 1).mean() <= 2e-3
            unequal += (difference > 0).mean() > 1e-3
        else:
            assert difference.max() == 0
    assert unequal <= 4


@jax.jit
def apply(images, params):
    return jax.lax.map(lambda args: augment.get("autoaugment_cifar").apply(*args), (images, params))


def test_translations_scale_with_the_image():
    params = draws("autoaugment_cifar", 4000, shape=(224, 112, 3))
    for name, side in (("translate_y", 224), ("translate_x", 112)):
        strength = params["strength"][params["operation"] == NAMES.index(name)]
        assert np.abs(strength).max() == pytest.approx(150 / 331 * side * (0.9), rel=1e-5)


PATCH = augment.get("patch_gaussian")
apply_patch = jax.jit(PATCH.apply)
GREY = jnp.full((32, 32, 3), 0.5, jnp.float32)


def patch(**changes):
    base = {"row": 10, "column": 20, "width": np.float32(25), "sigma": np.float32(0.1), "seed": np.uint32([1, 2])}
    return base | changes


@pytest.mark.parametrize(
    ("row", "column", "width"),
    [(16, 16, 25), (0, 31, 25), (3, 30, 25), (12, 9, 4), (12, 9, 4.2), (8, 8, 0.4), (1, 1, 99)],
)
def test_patch_covers_the_stated_rows_and_columns(row, column, width):
    inside = np.zeros((32, 32), bool)
    before, after = int(np.floor(width / 2)), int(np.ceil(width / 2))
    inside[max(0, row - before) : row + after, max(0, column - before) : column + after] = True
    found = apply_patch(GREY, patch(row=row, column=column, width=np.float32(width)))
    np.testing.assert_array_equal((np.asarray(found) != 0.5).any(-1), inside)


def test_noise_is_normal_with_the_drawn_sigma():
    seeds = jax.random.bits(jax.random.key(0), (200, 2), jnp.uint32)
    fields = jax.jit(jax.vmap(lambda seed: PATCH.apply(GREY, patch(seed=seed, width=jnp.float32(99)))))(seeds)
    standard = (np.asarray(fields, np.float64) - 0.5) / 0.1
    assert scipy.stats.kstest(standard[0].reshape(-1), "norm").pvalue > 1e-4
    inner = standard[np.abs(standard) < 4.9]  # the clip to [0, 1] lies at 5
    assert abs(inner.mean()) < 4 / np.sqrt(inner.size) and abs(inner.std() - 1) < 3e-3
    flat = standard.reshape(200, -1)
    correlations = [
        np.mean(flat[:, :-1] * flat[:, 1:]),
        np.mean(flat[:-1] * flat[1:]),
        np.mean(standard[..., 0] * standard[..., 1]),
    ]
    assert np.abs(correlations).max() < 0.01


def test_result_is_clipped_and_not_rounded():
    found = np.asarray(
        apply_patch(jnp.ones((32, 32, 3), jnp.float32), patch(sigma=np.float32(1.0), width=np.float32(99)))
    )
    assert found.min() == 0.0 and found.max() == 1.0
    between = found[(found > 0) & (found < 1)] * 255
    assert (np.abs(between - np.round(between)) > 1e-3).mean() > 0.9


def test_one_transform_shows_one_field_to_all_images():
    images = jnp.linspace(0.3, 0.6, 4)[:, None, None, None] * jnp.ones((4, 32, 32, 3), jnp.float32)
    found = jax.jit(jax.vmap(PATCH.apply, (0, None)))(images, patch(sigma=np.float32(0.04)))
    fields = np.asarray(found - images)
    np.testing.assert_allclose(fields, np.broadcast_to(fields[:1], fields.shape), atol=1e-6)
    other = apply_patch(images[0], patch(sigma=np.float32(0.04), seed=np.uint32([1, 3])))
    assert np.abs(np.asarray(other) - np.asarray(found[0])).max() > 0.01


def test_draws_for_cifar():
    drawn = draws("patch_gaussian")
    assert np.all(drawn["width"] == 25)
    assert_uniform(drawn["sigma"], 0, 1)
    for place in ("row", "column"):
        assert_frequencies(drawn[place], {k: 1 / 32 for k in range(32)})
    assert len(np.unique(drawn["seed"], axis=0)) == len(drawn["seed"])
    assert abs(np.corrcoef(drawn["row"], drawn["column"])[0, 1]) < 0.03


def test_draws_for_imagenet():
    drawn = draws("patch_gaussian_imagenet", shape=(224, 224, 3))
    assert_uniform(drawn["width"], 0, 250)
    assert_uniform(drawn["sigma"], 0, 1)
    assert abs(np.corrcoef(drawn["width"], drawn["sigma"])[0, 1]) < 0.03
    assert (drawn["row"].max(), drawn["column"].min()) == (223, 0)


def test_width_scales_with_the_image_unless_given():
    assert np.all(draws("patch_gaussian", 4, shape=(64, 96, 3))["width"] == 50)
    assert np.all(draws("patch_gaussian", 4, shape=(64, 96, 3), width=9.0)["width"] == 9)
    assert draws("patch_gaussian", 2000, sigma=0.3)["sigma"].max() <= 0.3
