"""Schemes: names and their canonical spelling; batches, each image by itself; transforms that a file holds."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import augment
from corruptions.augment import stored
from corruptions.core.batch import to_float
from runtime import meshes
from tests.reference.photographs import photographs
from tests.refusing import refuses

KEY = jax.random.key(3)
IMAGES = photographs(8, 32, 32)
SHAPE = (32, 32, 3)
NAMES = ("augmix", "patch_gaussian")
SIX = (*NAMES, "augmix_imagenet", "autoaugment_cifar", "autoaugment_imagenet", "patch_gaussian_imagenet")
ALL_OF_AUGMIX = "augmix=" + "+".join(reversed(augment.BASE))
SPELLINGS = {
    **{name: name for name in (*SIX, "augmix=", "op=rotate", "op_imagenet=translate_x")},
    **{"augmix=rotate+equalize": "augmix=equalize+rotate", "augmix= rotate + equalize ": "augmix=equalize+rotate"},
    **{ALL_OF_AUGMIX: "augmix", "augmix_imagenet=shear_y+shear_x": "augmix_imagenet=shear_x+shear_y"},
}


def test_names_have_one_spelling_and_are_told_from_those_of_corruptions():
    assert augment.names() == tuple(sorted(SIX))
    for given, expected in SPELLINGS.items():
        assert augment.canonical(given) == augment.canonical(expected) == augment.get(given).name == expected
        assert augment.get(given) is augment.get(expected) is augment.get(augment.get(given))
    assert all(augment.known(name) for name in (*SPELLINGS, "augmix=rotat"))
    others = ("fog", "noc/rotation", "standard", "mixture=noc", None, *corruptions.names())
    assert not any(augment.known(name) for name in others)


def test_powerset():
    names = augment.subsets()
    assert len(set(names)) == len(names) == 512
    assert names[0] == "augmix=" and names[1] == "augmix=autocontrast" and names[-1] == "augmix"
    sizes = [len(augment.get(name).operations) for name in names]
    assert sizes == sorted(sizes) and np.bincount(sizes).tolist() == [1, 9, 36, 84, 126, 126, 84, 36, 9, 1]
    assert augment.subsets("augmix_imagenet")[-1] == "augmix_imagenet"


def test_coinciding():
    assert set(augment.COINCIDES_WITH) == {*augment.OPERATIONS, "patch_gaussian"}
    for found in augment.COINCIDES_WITH.values():
        assert all(corruptions.get(name).qualified_name == name for name in found)
    tested = ("noc/rotation", "fog", "noc/shear", "noc/quantization")
    assert augment.coinciding("augmix", tested) == [
        *(("posterize", "noc/quantization"), ("shear_x", "noc/shear")),
        *(("shear_y", "noc/shear"), ("rotate", "noc/rotation")),
    ]
    assert augment.coinciding("augmix=solarize", tested) == []
    assert augment.coinciding("op=rotate", tested) == [("rotate", "noc/rotation")]
    assert augment.coinciding("augmix", corruptions.names("imagenet_c")) == []
    assert ("brightness", "imagenet_c/brightness") in augment.coinciding("autoaugment_cifar", ["imagenet_c/brightness"])
    assert augment.coinciding("patch_gaussian", ["gaussian_noise"]) == [("patch_gaussian", "imagenet_c/gaussian_noise")]


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_the_two_halves_of_each_image(name):
    found = np.asarray(augment.augment(KEY, IMAGES, name, dtype=np.float32))
    assert found.shape == IMAGES.shape and found.dtype == np.float32
    assert found.min() >= 0 and found.max() <= 1
    one = jax.jit(augment.get(name))
    for i in (0, 5):
        alone = one(jax.random.fold_in(KEY, i), to_float(jnp.asarray(IMAGES[i])))
        np.testing.assert_allclose(found[i], alone, atol=2e-7)


@pytest.mark.parametrize("name", [*NAMES, "stored"])
def test_depends_on_the_index_alone(name, tmp_path):
    name = save(tmp_path / "ten.npz", drawn("augmix", 10)) if name == "stored" else name
    whole = np.asarray(augment.augment(KEY, IMAGES, name))
    assert whole.dtype == np.uint8
    order = np.array([6, 1, 3, 0, 7, 2, 4, 5])
    np.testing.assert_array_equal(augment.augment(KEY, IMAGES[order], name, index=order), whole[order])
    halves = [augment.augment(KEY, IMAGES[part], name, index=np.arange(8)[part]) for part in (slice(4), slice(4, 8))]
    np.testing.assert_array_equal(np.concatenate(halves), whole)
    assert not np.array_equal(augment.augment(KEY, IMAGES, name, index=np.arange(8) + 8), whole)
    assert not np.array_equal(augment.augment(jax.random.key(4), IMAGES, name), whole)


def test_in_pieces_in_a_program_and_empty(monkeypatch):
    name = "augmix=shear_x+solarize"  # first made inside a trace here: it must not keep traced values
    inside = jax.jit(lambda key, images: augment.augment(key, images, name))(KEY, IMAGES)
    whole = np.asarray(augment.augment(KEY, IMAGES, name))
    np.testing.assert_array_equal(inside, whole)
    assert augment.augment(KEY, IMAGES[:0], name).shape == (0, 32, 32, 3)
    monkeypatch.setattr(corruptions.core.dispatch, "cpu_piece", lambda shape: 3)
    np.testing.assert_array_equal(augment.augment(KEY, jnp.asarray(IMAGES), name), whole)


def test_dtypes():
    floats = np.asarray(to_float(jnp.asarray(IMAGES)))
    unrounded = np.asarray(augment.augment(KEY, IMAGES, "augmix", dtype="float32")) * 255
    assert (np.abs(unrounded - np.round(unrounded)) > 1e-3).mean() > 0.3
    np.testing.assert_array_equal(augment.augment(KEY, IMAGES, "augmix"), np.round(unrounded))
    np.testing.assert_allclose(augment.augment(KEY, floats, "augmix") * 255, unrounded, atol=1e-4)
    np.testing.assert_array_equal(augment.augment(KEY, floats, "augmix", dtype=np.uint8), np.round(unrounded))
    noisy = np.asarray(augment.augment(KEY, IMAGES, "patch_gaussian", dtype=np.float32)) * 255
    np.testing.assert_array_equal(augment.augment(KEY, IMAGES, "patch_gaussian"), np.floor(noisy))


def test_subsets_share_a_program_and_options_act():
    augment.augment(KEY, IMAGES, "augmix=rotate")
    with meshes.counting_compiles() as compiled:
        for name in ("augmix=", "augmix=equalize+solarize", "augmix"):
            augment.augment(KEY, IMAGES, name)
    assert not compiled["_augment"]
    flipped = np.asarray(augment.augment(KEY, IMAGES, "op=solarize", severity=1.0)).astype(int)
    changed = flipped != IMAGES
    assert np.all(flipped[changed] == 255 - IMAGES.astype(int)[changed])
    assert changed.any() and IMAGES[changed].min() >= 231


@pytest.mark.parametrize("width", [64.0, 1e10])
def test_a_patch_wider_than_the_image_covers_it(width):
    images = np.full((2, 32, 32, 3), 0.5, np.float32)
    found = np.asarray(augment.augment(jax.random.key(0), images, "patch_gaussian", width=width))
    assert (found != images).mean() > 0.99


def drawn(source, number, label="some", seed=0):
    scheme = augment.get(source)
    sample = jax.jit(jax.vmap(lambda key: scheme.sample(key, SHAPE)))
    params = sample(jax.random.split(jax.random.key(seed), number))
    params = {name: np.asarray(value) for name, value in params.items()}
    return stored.Stored(scheme.name, SHAPE, label, params, {"seed": seed})


def save(path, content):
    stored.write(path, content)
    return f"stored={path}"


@pytest.mark.parametrize("source", ["patch_gaussian", "op=rotate"])
def test_an_only_transform_is_applied_to_every_image(source, tmp_path):
    content = drawn(source, 1)
    found = augment.augment(KEY, IMAGES, save(tmp_path / "one.npz", content), dtype=np.float32)
    params = {name: value[0] for name, value in content.params.items()}
    expected = jax.jit(jax.vmap(augment.get(source).apply, (0, None)))(IMAGES.astype(np.float32) / 255, params)
    np.testing.assert_allclose(found, expected, atol=2e-7)
    assert np.abs(expected - IMAGES / np.float32(255)).max() > 0.001


def test_images_draw_uniformly(tmp_path):
    """Translations by k pixels: what was drawn can be read off the params."""
    content = drawn("op=translate_x", 7)
    scheme = augment.get(save(tmp_path / "seven.npz", content))
    keys = jax.random.split(KEY, 7000)
    strengths = np.asarray(jax.jit(jax.vmap(lambda key: scheme.sample(key, SHAPE)["strength"]))(keys))
    values, counts = np.unique(strengths, return_counts=True)
    assert set(values) == set(content.params["strength"])
    assert abs(counts - 1000).max() < 150  # 5 standard deviations


def test_the_name_is_of_the_content_which_is_read_back(tmp_path):
    one, same = drawn("augmix", 10), drawn("augmix", 10)._replace(origin={"other": 1})
    names = [augment.canonical(save(tmp_path / f"{k}.npz", content)) for k, content in enumerate((one, same))]
    assert names[0] == names[1] == f"stored=some@{one.digest[:12]}" == augment.canonical(names[0])
    others = [one._replace(source="augmix=rotate"), one._replace(shape=(48, 48, 3)), drawn("augmix", 10, seed=1)]
    assert len({content.digest for content in (one, *others)}) == 4
    scheme = augment.get(f"stored={tmp_path}/0.npz")
    assert scheme.operations == augment.BASE and scheme.drawn_from == "augmix"
    assert augment.known(names[0]) and augment.coinciding(scheme, ["noc/rotation"])
    found = stored.read(tmp_path / "0.npz")
    assert found._replace(params={}) == one._replace(params={}) and found.number == 10
    for name, value in one.params.items():
        np.testing.assert_array_equal(found.params[name], value, strict=True)


def written(path, content, **params):
    """A file of the right form, whatever it holds."""
    about = {"source": content.source, "shape": SHAPE, "label": content.label, "origin": {}}
    np.savez(path, about=json.dumps(about), **params)


def of_code(code):
    def spoil(path, content):
        stored.write(path, content._replace(params=content.params | {"operation": np.full((2, 3, 3), code, np.int32)}))

    return spoil


CODES = r"stored=some@.*expected codes of augmix's operations.*found \[{}\]"
WRONG = {  # what the file becomes, and the refusal
    "damaged": (lambda path, _: path.write_bytes(path.read_bytes()[:200]), r"x\.npz"),
    "foreign": (lambda path, _: np.savez(path, x=np.ones(3)), r"x\.npz"),
    "uneven": (lambda path, content: written(path, content, one=np.ones(3), two=np.ones(2)), r"x\.npz"),
    "missing": (lambda path, _: pathlib.Path.unlink(path), r"x\.npz"),
    **{
        f"code {code}": (of_code(code), CODES.format(code)) for code in (99, -1, augment.OPERATIONS.index("invert") + 1)
    },
    **{
        f"strength {value}": (
            lambda path, content, value=value: written(path, content, strength=np.full((2, 3, 3), value)),
            r"x\.npz: .*expected finite numbers as the param 'strength'",
        )
        for value in (np.nan, np.inf)
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_such_file_is_refused(tmp_path, name):
    path, content = tmp_path / "x.npz", drawn("augmix", 2)
    stored.write(path, content)
    spoil, message = WRONG[name]
    spoil(path, content)
    with pytest.raises(ValueError if path.exists() else FileNotFoundError, match=message):
        augment.get(f"stored={path}")


def test_what_a_file_cannot_hold_and_images_of_another_size_are_refused(tmp_path):
    content = drawn("augmix", 2)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="expected finite numbers as the param 'strength'"):
            params = content.params | {"strength": np.full_like(content.params["strength"], value)}
            stored.write(tmp_path / "x.npz", content._replace(params=params))
    refuses(lambda: stored.write(tmp_path / "x.npz", content._replace(label="my set, the first")), "label of letters")
    refuses(
        lambda: augment.augment(KEY, photographs(2, 40, 40), save(tmp_path / "x.npz", content)),
        "transforms were drawn for",
    )
