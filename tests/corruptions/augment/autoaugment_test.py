"""AutoAugment: policies, strengths and probabilities as published, and transforms equal to Pillow's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions import augment
from corruptions.batch import to_float
from tests.corruptions.augment import pillow_reference
from tests.corruptions.augment.drawing import NAMES, assert_frequencies, draws
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
        expected = pillow_reference.chain(names, params["strength"][i], image).astype(int)
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


def test_unknown_table():
    with pytest.raises(ValueError, match="table among cifar, imagenet, found 'svhn'"):
        augment.get("autoaugment_cifar").sample(jax.random.key(0), (32, 32, 3), table="svhn")
