"""Stored transforms: what a file holds, and a scheme that draws from it."""

import json
import pathlib

import jax
import numpy as np
import pytest

from corruptions import augment
from corruptions.augment import stored
from tests.reference.photographs import photographs

KEY = jax.random.key(5)
IMAGES = photographs(8, 32, 32)
SHAPE = (32, 32, 3)


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


def test_draws_depend_on_the_index_alone(tmp_path):
    scheme = augment.get(save(tmp_path / "ten.npz", drawn("augmix", 10)))
    whole = np.asarray(augment.augment(KEY, IMAGES, scheme))
    order = np.array([6, 1, 3, 0, 7, 2, 4, 5])
    np.testing.assert_array_equal(augment.augment(KEY, IMAGES[order], scheme, index=order), whole[order])
    assert scheme.operations == augment.BASE and scheme.drawn_from == "augmix"


def test_the_name_is_of_the_content(tmp_path):
    one, same = drawn("augmix", 10), drawn("augmix", 10)._replace(origin={"other": 1})
    names = [augment.canonical(save(tmp_path / f"{k}.npz", content)) for k, content in enumerate((one, same))]
    assert names[0] == names[1] == f"stored=some@{one.digest[:12]}" == augment.canonical(names[0])
    others = [one._replace(source="augmix=rotate"), one._replace(shape=(48, 48, 3)), drawn("augmix", 10, seed=1)]
    assert len({content.digest for content in (one, *others)}) == 4
    assert augment.known(names[0]) and augment.coinciding(augment.get(f"stored={tmp_path}/0.npz"), ["noc/rotation"])
    with pytest.raises(ValueError, match="expected stored=FILE"):
        augment.get(names[0])


def test_content_is_read_back(tmp_path):
    content = drawn("autoaugment_cifar", 4)
    stored.write(tmp_path / "x.npz", content)
    found = stored.read(tmp_path / "x.npz")
    assert found._replace(params={}) == content._replace(params={}) and found.number == 4
    for name, value in content.params.items():
        np.testing.assert_array_equal(found.params[name], value, strict=True)


def test_images_of_another_size_are_refused(tmp_path):
    name = save(tmp_path / "x.npz", drawn("augmix", 2))
    with pytest.raises(ValueError, match=r"images of \(32, 32, 3\), which the transforms were drawn for"):
        augment.augment(KEY, photographs(2, 40, 40), name)


def damaged(path):
    path.write_bytes(path.read_bytes()[:200])


def foreign(path):
    np.savez(path, x=np.ones(3))


def uneven(path):
    about = {"source": "augmix", "shape": SHAPE, "label": "x", "origin": {}}
    np.savez(path, about=json.dumps(about), one=np.ones(3), two=np.ones(2))


@pytest.mark.parametrize("spoil", [damaged, foreign, uneven, pathlib.Path.unlink])
def test_what_is_no_such_file_is_refused(tmp_path, spoil):
    path = tmp_path / "x.npz"
    stored.write(path, drawn("augmix", 2))
    spoil(path)
    error = ValueError if path.exists() else FileNotFoundError
    with pytest.raises(error, match=r"x\.npz"):
        augment.get(f"stored={path}")


def test_a_label_that_tables_cannot_hold_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected a label of letters"):
        stored.write(tmp_path / "x.npz", drawn("augmix", 2, label="my set, the first"))


@pytest.mark.parametrize("wrong", [99, -1, augment.OPERATIONS.index("invert") + 1])
def test_operations_that_the_source_lacks_are_refused(wrong, tmp_path):
    content = drawn("augmix", 2)
    content.params["operation"] = np.full_like(content.params["operation"], wrong)
    with pytest.raises(ValueError, match=rf"stored=some@.*expected codes of augmix's operations.*found \[{wrong}\]"):
        augment.get(save(tmp_path / "x.npz", content))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_strengths_that_are_no_numbers_are_refused_by_name(wrong, tmp_path):
    content = drawn("augmix", 2)
    content.params["strength"] = np.full_like(content.params["strength"], wrong)
    with pytest.raises(ValueError, match="expected finite numbers as the param 'strength'"):
        stored.write(tmp_path / "x.npz", content)
    about = {"source": content.source, "shape": SHAPE, "label": content.label, "origin": {}}
    np.savez(tmp_path / "x.npz", about=json.dumps(about), **content.params)
    with pytest.raises(ValueError, match=r"x\.npz: .*expected finite numbers as the param 'strength'"):
        stored.read(tmp_path / "x.npz")
