"""What `models.build` promises: names, published sizes, shapes, dtypes, initial values, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models

PUBLISHED = {  # parameters: torchvision's model table; the CIFAR ResNets and WRNs as widely reported
    ("resnet18", 1000): 11_689_512,
    ("resnet34", 1000): 21_797_672,
    ("resnet50", 1000): 25_557_032,
    ("cifar_resnet18", 10): 11_173_962,
    ("wrn_40_2", 10): 2_243_546,
    ("wrn_16_4", 10): 2_748_890,
    ("wrn_28_10", 10): 36_479_194,
}


def shapes_of(name, num_classes=10, image_size=32, **options):
    """Abstract forward pass: no arithmetic, any size."""
    graphdef, state = nnx.split(models.build(name, num_classes, **options))
    images = jax.ShapeDtypeStruct((2, image_size, image_size, 3), jnp.float32)
    return jax.eval_shape(lambda s, x: nnx.merge(graphdef, s)(x, train=False), state, images)


@pytest.mark.parametrize("name, classes", PUBLISHED)
def test_number_of_parameters_is_the_published_one(name, classes):
    parameters = nnx.state(models.build(name, classes), nnx.Param)
    assert sum(leaf.size for leaf in jax.tree.leaves(parameters)) == PUBLISHED[name, classes]


@pytest.mark.parametrize(
    "name, image_size, stages, penultimate",
    [
        ("resnet18", 224, [(56, 64), (28, 128), (14, 256), (7, 512)], 512),
        ("resnet50", 224, [(56, 256), (28, 512), (14, 1024), (7, 2048)], 2048),
        ("cifar_resnet34", 32, [(32, 64), (16, 128), (8, 256), (4, 512)], 512),
        ("wrn_40_2", 32, [(32, 32), (16, 64), (8, 128)], 128),
        ("wrn_28_10", 32, [(32, 160), (16, 320), (8, 640)], 640),
        ("small_resnet", 32, [(8, 48), (4, 96)], 96),
        ("fast_cifar", 32, [(15, 64), (7, 256), (3, 256)], 256),
    ],
)
def test_shapes_of_features(name, image_size, stages, penultimate):
    logits, features = shapes_of(name, 7, image_size)
    assert logits.shape == (2, 7)
    assert features["penultimate"].shape == (2, penultimate)
    found = [features[f"stage{i}"].shape for i in range(1, len(stages) + 1)]
    assert found == [(2, side, side, channels) for side, channels in stages]


@pytest.mark.parametrize("name", models.names())
def test_sizes_down_to_8_and_odd_ones_work(name):
    for size in (8, 33):
        logits, _ = shapes_of(name, image_size=size)
        assert logits.shape == (2, 10)


@pytest.mark.parametrize("name", ["small_resnet", "wrn_16_4", "resnet18"])
def test_bfloat16_keeps_parameters_statistics_and_logits_float32(name):
    model = models.build(name, 10, dtype="bfloat16")
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(model))} == {jnp.dtype("float32")}
    logits, features = shapes_of(name, dtype="bfloat16")
    assert logits.dtype == features["penultimate"].dtype == jnp.float32
    assert features["stage1"].dtype == jnp.bfloat16
    _, features = shapes_of(name, dtype="")
    assert features["stage1"].dtype == (jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16)


def test_bfloat16_gives_nearly_the_same_logits():
    images = jnp.asarray(np.random.default_rng(0).random((4, 8, 8, 3)), jnp.float32)
    exact, coarse = (
        nnx.jit(lambda m, x: m(x, train=False)[0])(models.build("small_resnet", 10, dtype=dtype), images)
        for dtype in ("float32", "bfloat16")
    )
    np.testing.assert_allclose(coarse, exact, atol=0.05 * float(jnp.abs(exact).max()))


def test_the_seed_determines_the_parameters_and_nothing_else():
    (graph_a, a), (graph_b, b), (_, c) = (nnx.split(models.build("wrn_16_4", 10, seed=s)) for s in (3, 3, 4))
    jax.tree.map(np.testing.assert_array_equal, a, b)
    other = models.build("wrn_16_4", 10, seed=4)
    assert graph_a == graph_b == nnx.graphdef(other) and hash(graph_a) == hash(nnx.graphdef(other))
    assert not np.array_equal(a["stem"]["kernel"][...], c["stem"]["kernel"][...])


def test_initial_values_follow_the_recipes():
    he = models.build("cifar_resnet18", 100, init="he")
    kernel = np.asarray(he.stages[3][1].conv2.kernel[...])
    np.testing.assert_allclose(kernel.std(), np.sqrt(2 / (9 * 512)), rtol=0.01)
    assert abs(kernel.mean()) < 1e-4
    head = np.asarray(he.head.kernel[...])
    assert np.abs(head).max() <= 512**-0.5 and np.abs(head).max() > 0.99 * 512**-0.5
    xavier = models.build("cifar_resnet18", 100, init="xavier")
    kernel, bound = np.asarray(xavier.stages[3][1].conv2.kernel[...]), np.sqrt(6 / (9 * 1024))
    assert 0.99 * bound < np.abs(kernel).max() <= bound * (1 + 1e-6)
    np.testing.assert_allclose(kernel.std(), bound / np.sqrt(3), rtol=0.01)
    np.testing.assert_array_equal(xavier.head.bias[...], np.float32(0.01))
    gammas = np.asarray(xavier.stages[3][1].norm2.scale[...])
    assert abs(gammas.mean() - 1) < 0.005 and 0.017 < gammas.std() < 0.023
    goyal = models.build("cifar_resnet50", 100, init="goyal")
    for blocks in goyal.stages:
        for block in blocks:
            assert not block.norm3.scale[...].any() and block.norm2.scale[...].all()
    np.testing.assert_allclose(np.asarray(goyal.head.kernel[...]).std(), 0.01, rtol=0.02)


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match=r"found 'wrn_40-2'; did you mean 'wrn_40_2'\?"):
        models.build("wrn_40-2", 10)
    with pytest.raises(ValueError, match="expected options of resnet18 among mean, std, init, conv, found dropout"):
        models.build("resnet18", 10, dropout=0.3)
    with pytest.raises(ValueError, match="expected init among he, xavier, goyal, found 'zeros'"):
        models.build("resnet18", 10, init="zeros")
    with pytest.raises(ValueError, match="expected images of at least 8 pixels, found 4"):
        models.build("resnet18", 10, image_size=4)
    with pytest.raises(ValueError, match=r"expected dropout in \[0, 1\), found 1"):
        models.build("wrn_16_4", 10, dropout=1)
    with pytest.raises(ValueError, match="expected three means"):
        models.build("small_resnet", 10, mean=(0.5,))
    with pytest.raises(ValueError, match=r"expected images \[N, H, W, 3\], found \(32, 32, 3\)"):
        models.build("small_resnet", 10)(jnp.zeros((32, 32, 3)), train=False)
