"""Corruptions as artifacts of `jax.export`, of a symbolic number of images, for three platforms."""

import pathlib

import jax
import numpy as np
import pytest
from jax import export

import corruptions
from tests.pages import example_of
from tests.reference.photographs import photographs

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


@pytest.mark.slow
@pytest.mark.parametrize("name", corruptions.names())
def test_every_corruption_exports(name):
    assert exported(name, None).out_avals[0].dtype == np.uint8
