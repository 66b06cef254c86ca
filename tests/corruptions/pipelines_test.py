"""The recipes for other people's pipelines, and what PyTorch's users are told.

Each recipe runs on a stand-in that has the methods which it calls, as they are documented. It runs on the package too;
where the package is not installed, that test is skipped, visibly.
"""

import functools
import importlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image
import pytest

import corruptions
from tests.pages import example_of
from tests.refusing import refuses

KEY = jax.random.key(0)
IMAGES = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3)).astype(np.uint8)
LABELS = np.arange(4)


class Tensor:
    """A stand-in for a tensor: a class of a module of torch, with a shape and a dtype."""

    __module__ = "torch.nn.parameter"
    shape, dtype = (2, 32, 32, 3), "torch.float32"


@pytest.mark.parametrize(
    "call",
    [
        lambda images: corruptions.corrupt(KEY, images, "noc/border", 0.5),
        lambda images: corruptions.corrupt(KEY, images, "noc/border", 0.5, value_range=(-1, 1)),
        lambda images: corruptions.noc.border(KEY, images, 0.5),
        lambda images: corruptions.augment.augment(KEY, images, "augmix"),
    ],
)
@pytest.mark.parametrize("kind", [Tensor, type("Subclass", (Tensor,), {"__module__": "mine"})])
def test_a_tensor_is_named_with_the_remedy(call, kind):
    refuses(lambda: call(kind()), "(2, 32, 32, 3)", "jax.numpy.from_dlpack", kind=TypeError)


class Rows:
    """A dataset of rows with the one method of Hugging Face's that the recipe calls, as documented: of
    each batch a dictionary of lists, and its positions.
    """

    def __init__(self, rows):
        self.rows = rows

    def map(self, function, batched, with_indices, fn_kwargs, batch_size=3):
        assert batched and with_indices
        changed = []
        for start in range(0, len(self.rows), batch_size):
            chosen = self.rows[start : start + batch_size]
            batch = {key: [row[key] for row in chosen] for key in chosen[0]}
            batch |= function(batch, list(range(start, start + len(chosen))), **fn_kwargs)
            changed += [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        return changed


def of_huggingface(rows):
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    return datasets.Dataset.from_list(rows, features=features)


@pytest.mark.parametrize(
    "dataset", [Rows, pytest.param(of_huggingface, id="datasets", marks=pytest.mark.needs("datasets"))]
)
def test_a_hugging_face_dataset(dataset):
    rows = [{"image": PIL.Image.fromarray(image), "label": int(label)} for image, label in zip(IMAGES, LABELS)]
    recipe = example_of("docs/howto/corrupt.md", "Corrupt a Hugging Face dataset")
    found = {"dataset": dataset(rows), "PIL": PIL, "jax": jax, "corruptions": corruptions}
    exec(recipe.replace("imagenet_c/fog", "imagenet_c/contrast"), found)
    expected = list(corruptions.corrupt_each(KEY, IMAGES, "imagenet_c/contrast", 3))
    assert [row["label"] for row in found["corrupted"]] == list(LABELS)
    for row, image in zip(found["corrupted"], expected, strict=True):
        np.testing.assert_array_equal(np.asarray(row["image"]), image)


@pytest.mark.needs("datasets")
def test_a_worker_of_a_hugging_face_dataset_is_refused_and_does_not_hang():
    jax.devices()  # a child that is forked after JAX has started
    found = {}
    exec(example_of("docs/howto/corrupt.md", "Corrupt a Hugging Face dataset").split("version =")[0], found)
    dataset = of_huggingface([{"image": PIL.Image.fromarray(image), "label": 0} for image in IMAGES])
    refuses(
        lambda: dataset.map(found["corrupt"], batched=True, with_indices=True, fn_kwargs={"version": ""}, num_proc=1),
        "forked",
        kind=RuntimeError,
    )


@pytest.mark.needs("datasets")
def test_a_hugging_face_dataset_is_mapped_again_exactly_for_another_version(tmp_path, monkeypatch):
    """`datasets` reuses a result by a fingerprint of the function and its arguments."""
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    rows = [{"image": PIL.Image.fromarray(image), "label": int(label)} for image, label in zip(IMAGES[:2], LABELS)]
    datasets.Dataset.from_list(rows, features=features).save_to_disk(tmp_path / "saved")
    recipe = example_of("docs/howto/corrupt.md", "Corrupt a Hugging Face dataset")
    calls = []
    each = corruptions.corrupt_each
    monkeypatch.setattr(corruptions, "corrupt_each", lambda *given, **more: calls.append(1) or each(*given, **more))

    def mapped():
        modules = {"PIL": PIL, "jax": jax, "corruptions": corruptions}
        found = {"dataset": datasets.load_from_disk(tmp_path / "saved"), **modules}
        exec(recipe.replace("imagenet_c/fog", "imagenet_c/contrast"), found)
        return found["corrupted"]

    first, again = mapped(), mapped()
    assert first._fingerprint == again._fingerprint and len(calls) == 1
    monkeypatch.setattr(corruptions, "__version__", "99.0")
    assert mapped()._fingerprint != first._fingerprint and len(calls) == 2


class Numbered:
    """A dataset with the three methods of tf.data's that the recipe calls."""

    def __init__(self, elements):
        self.elements = elements

    def enumerate(self):
        return Numbered([(np.int64(i), element) for i, element in enumerate(self.elements)])

    def batch(self, size):
        batches = [self.elements[start : start + size] for start in range(0, len(self.elements), size)]
        return Numbered([jax.tree.map(lambda *rows: np.stack(rows), *batch) for batch in batches])

    def as_numpy_iterator(self):
        return iter(self.elements)


def of_tensorflow(elements):
    import tensorflow

    images, labels = zip(*elements)
    return tensorflow.data.Dataset.from_tensor_slices((np.stack(images), np.stack(labels)))


@pytest.mark.parametrize(
    "dataset", [Numbered, pytest.param(of_tensorflow, id="tensorflow", marks=pytest.mark.needs("tensorflow"))]
)
def test_what_tf_data_reads(dataset):
    shown = []
    recipe = example_of("docs/howto/corrupt.md", "Corrupt what tf.data reads").replace("128", "2")
    given = {
        "dataset": dataset(list(zip(IMAGES, LABELS))),
        "key": KEY,
        "jax": jax,
        "corruptions": corruptions,
        "epochs": 2,
    }
    exec(recipe.replace("imagenet_c/fog", "noc/border").replace(", 3,", ", 0.5,"), given | {"train": shown.append})
    first, second = np.split(np.concatenate(shown), 2)
    np.testing.assert_array_equal(first, corruptions.corrupt(jax.random.fold_in(KEY, 0), IMAGES, "noc/border", 0.5))
    assert (first != second).any(axis=(1, 2, 3)).all()


class Tensors:
    """A PyTorch tensor with only the method that the recipe calls."""

    def __init__(self, array):
        self.array = np.from_dlpack(array)

    def permute(self, *axes):
        return self.array.transpose(axes)


def collated(dataset, batch_size, num_workers, collate_fn):
    """Makes the batches of a DataLoader."""
    return [collate_fn(dataset[start : start + batch_size]) for start in range(0, len(dataset), batch_size)]


LOADERS = types.SimpleNamespace(data=types.SimpleNamespace(DataLoader=collated))
TORCH = types.SimpleNamespace(utils=LOADERS, from_dlpack=Tensors)


@pytest.mark.parametrize(
    "package", [pytest.param(None, id="stand-in"), pytest.param("torch", marks=pytest.mark.needs("torch"))]
)
def test_a_pytorch_loader(package):
    torch = importlib.import_module(package) if package else TORCH
    recipe = example_of("docs/howto/corrupt.md", "Corrupt in a PyTorch DataLoader")
    recipe = recipe.replace("128", "2").replace("imagenet_c/fog", "noc/border").replace(", 3)", ", 0.5)")
    shown = []
    given = {"torch": torch, "np": np, "jax": jax, "corruptions": corruptions, "key": KEY, "train": shown.append}
    exec(recipe, given | {"dataset": list(zip(IMAGES, LABELS)), "epochs": 2})
    first = corruptions.corrupt(jax.random.fold_in(KEY, 0), IMAGES[:2], "noc/border", 0.5)
    assert [tuple(batch.shape) for batch in shown] == 4 * [(2, 3, 32, 32)]
    np.testing.assert_array_equal(np.asarray(shown[0]).transpose(0, 2, 3, 1), first)
    assert (np.asarray(shown[0]) != np.asarray(shown[2])).any()  # the same images, an epoch later


@pytest.mark.needs("keras")
def test_a_keras_layer():
    import keras

    found = {"keras": keras}
    exec(example_of("docs/howto/corrupt.md", "Corrupt in Keras"), found)
    layer, images = found["layers"][1], IMAGES / np.float32(255)
    assert (np.asarray(layer(images, training=True)) != images).any()
    np.testing.assert_array_equal(layer(images, training=False), images)


@pytest.mark.needs("bonsai.models")
def test_a_network_of_bonsai(monkeypatch):
    from bonsai.models.convnext import modeling
    from flax import nnx

    config = modeling.ModelConfig((1, 1), (4, 8), 0.0, num_classes=1000)
    network = modeling.ConvNeXt(config, rngs=nnx.Rngs(0))
    monkeypatch.setattr(modeling.ConvNeXt, "from_pretrained", lambda name: network)
    recipe = example_of("docs/howto/train_evaluate.md", "Evaluate a Flax NNX network of another project")
    assert 'path="convnext"' in recipe
    recipe = recipe.replace('path="convnext"', 'corruptions="imagenet_c/contrast", severity=3').split("print(")[0]
    found = {"jax": jax, "jnp": jnp, "nnx": nnx, "functools": functools, "corruptions": corruptions}
    found |= {"images": IMAGES, "labels": LABELS}
    with jax.numpy_rank_promotion("allow"):
        exec(recipe, found)
    assert [count.total for count in found["counts"]] == [4, 4]
