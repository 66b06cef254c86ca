"""Forward passes and BatchNorm statistics against the independent NumPy/SciPy networks, with the same weights.

ResNet-18, AlexNet and SqueezeNets are compared with torchvision's, in torchvision_test.py.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from evaluation.correctness import network_logits
from models.layers import Options
from models.norms import GroupNorm
from models.resnet import Bottleneck, ResNet
from models.vit import ViT
from tests.models import tiny
from tests.models.reference import OfGroups, Reference

NETWORKS = {"small_resnet": lambda r, x: r.small_resnet(x), "wrn_16_4": lambda r, x: r.wide_resnet(x, 2)}
TINY = {
    "wide_resnet": lambda r, x: r.resnet(x, tiny.SIZES, bottleneck=True, imagenet=False),
    "resnext": lambda r, x: r.resnet(x, tiny.SIZES, bottleneck=True, imagenet=True, groups=32),
    "densenet": lambda r, x: r.densenet(x, (3, 2, 2, 2), imagenet=True),
    "cifar_densenet": lambda r, x: r.densenet(x, (2, 2, 2, 2), imagenet=False),
    "vgg": lambda r, x: r.vgg(x, (1, 1, 1, 1, 1), batch_norm=False, imagenet=True),
    "vgg_bn": lambda r, x: r.vgg(x, (1, 1, 2, 1, 1), batch_norm=True, imagenet=True),
    "cifar_vgg_bn": lambda r, x: r.vgg(x, (1, 1, 1, 1, 1), batch_norm=True, imagenet=False),
}
OF_SIDES = {  # sides of 2^n pixels
    "msdnet": lambda r, x: r.msdnet(x, (2, 1)),
    "multigrid": lambda r, x: r.multigrid(x, tiny.GRIDS),
    "condensenet": lambda r, x: r.condensenet(x, (2, 1), 4),
}


def randomised(model):
    """The model with BatchNorms that are not the identity and biases that are not zero."""
    rng = np.random.default_rng(2)
    graphdef, state = nnx.split(model)

    def draw(path, leaf):
        kind = str(getattr(path[-2], "key", ""))
        if kind in ("scale", "var"):
            return jnp.asarray(rng.uniform(0.7, 1.3, leaf.shape), jnp.float32)
        if kind == "cls_token":
            return jnp.asarray(rng.normal(0, 0.2, leaf.shape), jnp.float32)
        if kind in ("bias", "mean") and leaf.ndim == 1 and leaf.shape != (3,):
            return jnp.asarray(rng.normal(0, 0.2, leaf.shape), jnp.float32)
        return leaf

    return nnx.merge(graphdef, jax.tree_util.tree_map_with_path(draw, state))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
def test_forward_pass_is_the_papers_network(name, train):
    check(models.build(name, 10, dtype="float32", seed=1), NETWORKS[name], (16, 16), train, 1e-3)


@pytest.mark.parametrize(
    "name, train",
    [(name, False) for name in TINY]
    + [(name, True) for name in ("wide_resnet", "resnext", "densenet", "vgg_bn")]  # the others have nothing new in it
    + [pytest.param(name, train, marks=pytest.mark.slow) for name in OF_SIDES for train in (False, True)],
)
def test_forward_pass_of_a_small_member_is_the_familys(name, train, monkeypatch):
    side = tiny.NETWORKS[name][1]
    width, tolerance = (2 * side, 1e-3) if name in OF_SIDES else (side + 5, 1e-4)
    check(tiny.build(monkeypatch, name), (TINY | OF_SIDES)[name], (side, width), train, tolerance)


@pytest.mark.parametrize("name", ["alexnet", "cifar_densenet", "condensenet", "multigrid"])
def test_a_network_answers_a_loop_of_batches(name, monkeypatch):
    side = tiny.NETWORKS[name][1]
    graphdef, params, rest = nnx.split(tiny.build(monkeypatch, name), nnx.Param, ...)
    images = jax.ShapeDtypeStruct((2, 3, side, side, 3), np.uint8)
    assert jax.eval_shape(partial(network_logits, graphdef), params, rest, images).shape[:2] == (2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_SIDES)
def test_training_of_a_multi_scale_or_grouped_network_lowers_for_accelerators(name, monkeypatch):
    side = tiny.NETWORKS[name][1]
    graphdef, params, rest = nnx.split(tiny.build(monkeypatch, name, conv="xla"), nnx.Param, ...)

    def loss(params, images):
        return nnx.merge(graphdef, params, rest, copy=True)(images, train=True)[0].sum()

    traced = jax.jit(jax.grad(loss)).trace(params, jax.ShapeDtypeStruct((2, side, side, 3), np.float32))
    for platform in ("cuda", "tpu"):
        assert traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
def test_forward_pass_of_a_vision_transformer_is_the_papers(train):
    model = ViT(10, Options(np.random.default_rng(1), "float32"), patch=4, width=24, depth=2, heads=3, image_size=12)
    check(model, lambda r, x: r.vit(x, 2, 3, 4), (12, 12), train, 1e-5, moves=False)


def test_forward_pass_of_a_resnet_of_groups_is_the_papers():
    build = partial(ResNet, block=Bottleneck, stage_sizes=tiny.SIZES, stem="cifar", norm=GroupNorm)
    model = build(10, Options(np.random.default_rng(1), "float32"))
    network = partial(OfGroups.resnet, sizes=tiny.SIZES, bottleneck=True, imagenet=False)
    check(model, network, (16, 21), False, 1e-4, OfGroups)


def check(model, network, size, train, tolerance, kind=Reference, moves=True):
    """Compares logits, penultimate features and moved statistics of `model` with those of `network`
    in NumPy."""
    model = randomised(model)
    images = np.random.default_rng(0).random((3, *size, 3)).astype(np.float32)
    reference = kind(nnx.to_pure_dict(nnx.state(model)), train)
    expected_logits, expected_features = network(reference, images)
    graphdef, state = nnx.split(model)

    @jax.jit
    def forward(state, images):
        model = nnx.merge(graphdef, state)
        return *model(images, train), nnx.split(model)[1]

    logits, features, after = forward(state, jnp.asarray(images))
    for found, expected in ((features["penultimate"], expected_features), (logits, expected_logits)):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    assert logits.dtype == jnp.float32
    updated = Reference(nnx.to_pure_dict(after), train)
    for path, (mean, var) in reference.running.items():
        np.testing.assert_allclose(updated.get(path + "/mean"), mean, rtol=1e-3, atol=1e-3, err_msg=path)
        np.testing.assert_allclose(updated.get(path + "/var"), var, rtol=2e-3, atol=1e-3, err_msg=path)
    norms = sum(path[-1] == "scale" for path, _ in nnx.to_flat_state(nnx.state(model)))
    assert len(reference.running) == (norms if train and moves else 0)
    if not train or not moves:
        jax.tree.map(np.testing.assert_array_equal, after, state)
