"""Names of schemes, their canonical spelling, and the table of coincidences."""

import numpy as np
import pytest

import corruptions
from corruptions import augment

SIX = (
    "augmix",
    "augmix_imagenet",
    "autoaugment_cifar",
    "autoaugment_imagenet",
    "patch_gaussian",
    "patch_gaussian_imagenet",
)


def test_published_schemes():
    assert augment.names() == SIX
    for name in SIX:
        assert augment.get(name).name == augment.canonical(name) == name
        assert augment.get(augment.get(name)) is augment.get(name)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("augmix=rotate+equalize", "augmix=equalize+rotate"),
        ("augmix= rotate + equalize ", "augmix=equalize+rotate"),
        ("augmix=", "augmix="),
        ("augmix=" + "+".join(reversed(augment.BASE)), "augmix"),
        ("augmix_imagenet=shear_y+shear_x", "augmix_imagenet=shear_x+shear_y"),
        ("op=rotate", "op=rotate"),
        ("op_imagenet=translate_x", "op_imagenet=translate_x"),
    ],
)
def test_canonical_spelling(given, expected):
    assert augment.canonical(given) == augment.get(given).name == expected
    assert augment.canonical(expected) == expected
    assert augment.get(given) is augment.get(expected)


def test_powerset():
    names = augment.subsets()
    assert len(set(names)) == len(names) == 512
    assert names[0] == "augmix=" and names[1] == "augmix=autocontrast" and names[-1] == "augmix"
    sizes = [len(augment.get(name).operations) for name in names]
    assert sizes == sorted(sizes) and np.bincount(sizes).tolist() == [1, 9, 36, 84, 126, 126, 84, 36, 9, 1]
    assert augment.subsets("augmix_imagenet")[-1] == "augmix_imagenet"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("augmx", "unknown augmentation scheme 'augmx'; did you mean 'augmix'"),
        ("fog", "unknown augmentation scheme 'fog'"),
        ("op", "unknown augmentation scheme 'op'"),
        ("autoaugment_cifar=rotate", "unknown augmentation scheme 'autoaugment_cifar=rotate'"),
        ("augmix=rotat", "unknown operation 'rotat' in 'augmix=rotat'; did you mean 'rotate'"),
        ("augmix=rotate+", r"unknown operation '' in 'augmix=rotate\+'"),
        ("augmix=rotate+rotate", "expected every operation once"),
        ("op=brightness", "unknown operation 'brightness'"),
        ("op=", "expected one operation after op="),
        ("op=rotate+equalize", "expected one operation after op="),
        (3, "expected the name of an augmentation scheme, found 3"),
    ],
)
def test_errors(name, message):
    with pytest.raises(ValueError, match=message):
        augment.get(name)


def test_known_tells_schemes_from_corruptions():
    assert all(augment.known(name) for name in (*SIX, "augmix=", "augmix=rotat", "op=rotate"))
    assert not any(
        augment.known(name) for name in ("fog", "noc/rotation", "standard", "mixture=noc", None, *corruptions.names())
    )


def test_table_names_operations_and_corruptions_that_exist():
    assert set(augment.COINCIDES_WITH) == {*augment.OPERATIONS, "patch_gaussian"}
    for found in augment.COINCIDES_WITH.values():
        for name in found:
            assert corruptions.get(name).qualified_name == name


def test_coinciding():
    tested = ("noc/rotation", "fog", "noc/shear", "noc/quantization")
    assert augment.coinciding("augmix", tested) == [
        ("posterize", "noc/quantization"),
        ("shear_x", "noc/shear"),
        ("shear_y", "noc/shear"),
        ("rotate", "noc/rotation"),
    ]
    assert augment.coinciding("augmix=solarize", tested) == []
    assert augment.coinciding("op=rotate", tested) == [("rotate", "noc/rotation")]
    assert augment.coinciding("augmix", corruptions.names("imagenet_c")) == []
    assert ("brightness", "imagenet_c/brightness") in augment.coinciding("autoaugment_cifar", ["imagenet_c/brightness"])
    assert augment.coinciding("patch_gaussian", ["gaussian_noise"]) == [("patch_gaussian", "imagenet_c/gaussian_noise")]
    with pytest.raises(ValueError, match="unknown corruption 'fgo'"):
        augment.coinciding("augmix", ["fgo"])
