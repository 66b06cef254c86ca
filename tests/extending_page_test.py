"""docs/extending.md: its examples run and do what they say."""

import importlib.util
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import corruptions
import data
import models
from tests.pages import FENCE, ROOT


@pytest.fixture
def extending(tmp_path, monkeypatch):
    """The examples of docs/extending.md, {file: module}, the files written to a folder that is
    imported from.
    """
    blocks = [b for b in FENCE.finditer((ROOT / "docs/extending.md").read_text()) if b["head"].startswith("python")]
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {}
    for block in blocks:
        title = re.search(r'title="([^"]+)"', block["head"])
        path = tmp_path / (title[1] if title else "script.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(block["body"])
        specification = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(specification)
        sys.modules[path.stem] = module  # `import my_corruptions` finds the one that is registered
        specification.loader.exec_module(module)
        found[path.relative_to(tmp_path).as_posix()] = module
    yield found
    for module in found.values():
        sys.modules.pop(module.__name__, None)
    corruptions.registry._CORRUPTIONS.pop("mine/shade")
    corruptions.registry._BENCHMARKS.pop("my_benchmark")


def test_extending_examples_do_what_they_say(extending, tmp_path, monkeypatch):
    shaded, alone = np.asarray(extending["script.py"].shaded), np.asarray(extending["script.py"].alone)
    assert shaded.dtype == np.uint8 and set(np.unique(shaded)) <= {130, 200} and len(np.unique(shaded)) == 2
    assert alone.dtype == np.float32 and alone.shape == (32, 32, 3)
    config = extending["configs/shade.py"].get_config()
    assert config.train.corruption == "mine/shade"
    assert corruptions.names(config.eval.corruptions[0])[0] == "mine/shade"

    monkeypatch.setattr(models, "_REGISTRY", models._REGISTRY | extending["models/tiny_net.py"].FAMILY)
    graphdef, state = nnx.split(models.build("tiny_net", 10, dtype="float32"))
    images = jnp.zeros((2, 32, 32, 3))
    logits, features = jax.eval_shape(lambda s, x: nnx.merge(graphdef, s)(x, train=False), state, images)
    assert logits.shape == (2, 10) and features["penultimate"].shape == (2, 16)

    pixels, labels = np.zeros((6, 32, 32, 3), np.uint8), np.arange(6) % 2
    arrays = {
        f"{split}_{what}": x for split in ("train", "test") for what, x in (("images", pixels), ("labels", labels))
    }
    np.savez(tmp_path / "my_dataset.npz", **arrays)
    monkeypatch.setitem(sys.modules, "data.my_dataset", extending["data/my_dataset.py"])
    monkeypatch.setitem(data._LOADERS, "my_dataset", ("data.my_dataset", "load_my_dataset"))
    dataset = data.load("my_dataset", data_dir=tmp_path, train_limit=4)
    assert len(dataset.train) == 4 and len(dataset.test) == 6 and dataset.num_classes == 2
