"""The pages of docs/howto: every recipe in Python is executed by a test; those that no other file has, here."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image

import corruptions
from tests.pages import HOWTO, ROOT, example_of, examples_of

KEY = jax.random.key(0)
IMAGES = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3)).astype(np.uint8)


def test_every_recipe_in_python_is_executed():
    sections = [(page, section) for page in HOWTO for section in page.read_text().split("\n## ")[1:]]
    headings = [(page, section.partition("\n")[0]) for page, section in sections if "```python" in section]
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    assert len(headings) > 20
    executed = re.findall(r'examples?_of\(\s*"([^"]+)", "([^"]+)"', tests)
    assert {(str(page.relative_to(ROOT)), heading) for page, heading in headings} <= set(executed)


def test_batches_of_your_own_code():
    recipe = example_of("docs/howto/corrupt.md", "Corrupt images in your own JAX code").replace(
        "snow", "gaussian_noise"
    )
    found = {"corruptions": corruptions, "jax": jax, "np": np, "images": IMAGES, "positions": np.arange(4)}
    before = corruptions.core.batch._corrupt._cache_size()
    exec(recipe, found)
    assert (
        corruptions.core.batch._corrupt._cache_size() - before <= 2
    )  # programs of two corruptions, called three times
    ranged = corruptions.corrupt(KEY, IMAGES, "imagenet_c/gaussian_noise", jnp.int32(4), index=range(4))
    np.testing.assert_array_equal(found["same"], found["fixed"])
    np.testing.assert_array_equal(ranged, found["fixed"])
    assert found["drawn"].shape == IMAGES.shape and (found["fixed"] != IMAGES).any((1, 2, 3)).all()


def test_large_images(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PIL.Image.fromarray(IMAGES[0]).save("street.png")
    found = {"corruptions": corruptions, "PIL": PIL, "np": np, "key": KEY, "position": 2}
    exec(example_of("docs/howto/corrupt.md", "Corrupt large images"), found)
    batch = corruptions.corrupt(KEY, IMAGES[[1, 0]], "noc/border", 0.5, index=[7, 2])
    np.testing.assert_array_equal(found["corrupted"], batch[1])


def test_what_there_is_and_its_halves():
    given = {"corruptions": corruptions, "key": KEY, "image": IMAGES[0] / np.float32(255)}
    exec(example_of("docs/howto/corrupt.md", "Find out what there is"), given)
    exec(example_of("docs/howto/corrupt.md", "Take a corruption apart").replace("fog", "contrast"), given)
    assert given["corrupted"].shape == (32, 32, 3) and given["corrupted"].dtype == jnp.float32


def test_a_benchmark_of_your_own(own_registry):
    seen = []

    def predict(batch):
        seen.append(len(batch))
        return jnp.eye(2)[(batch.mean((1, 2, 3)) > 0.5).astype(int)]

    found = {"corruptions": corruptions, "key": KEY, "images": IMAGES, "labels": np.array([0, 1, 0, 1])}
    found |= {"predict": predict, "other": lambda batch: 1 - predict(batch)}
    exec("\n".join(examples_of("docs/howto/corrupt.md", "Make a benchmark of your own")), found)
    assert corruptions.names("indoor_small") == ("indoor_small/ripple", "indoor_small/contrast")
    strongest = corruptions.corrupt(KEY, IMAGES, "imagenet_c/contrast", 5, table="cifar")
    np.testing.assert_array_equal(found["corrupted"], strongest)
    shown = {count.corruption for count in found["counts"]}
    assert shown == {"clean", "imagenet_c/brightness", "camera/dark", "noc/border"} and seen


def test_augmentation_schemes():
    """Shapes alone: their pixels have tests of their own."""
    found = {"key": KEY, "jnp": jnp}

    def recipe(images):
        exec(example_of("docs/howto/corrupt.md", "Augment"), found | {"images": images}, found)
        return found["images"]

    assert jax.eval_shape(recipe, IMAGES[:2]).shape == (2, 32, 32, 3)
