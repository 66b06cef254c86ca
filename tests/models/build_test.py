"""`models.build`: names, published sizes and multiply-adds, shapes, dtypes, initial values, errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from models import costs, multigrid
from models.densenet import DENSENETS
from tests.models import tiny
from tests.refusing import refuses

# Numbers of parameters: the forms of the papers on structural robustness, ImageNet-C and ICONS-50; timm's transformers
# and its ResNet with GroupNorm; networks for CIFAR as widely reported.
_PUBLISHED = {
    1000: """
    resnet50=25_557_032 resnext101_32x4d=44_177_704 resnext101_64x4d=83_455_272 densenet264_k48=72_686_632
    condensenet74_4_converted=4_773_944 condensenet74_8_converted=2_935_416 msdnet=62_314_472
    msdnet_step4=23_958_440 multigrid34=32_899_176
    deit_tiny=5_717_416 deit_small=22_050_664 deit_base=86_567_656 vit_tiny=5_717_416 vit_small=22_050_664
    vit_base=86_567_656 resnet50_gn=25_557_032
    efficientnet_lite0=4_652_008 efficientnet_lite1=5_416_680 efficientnet_lite2=6_092_072
    """,
    10: """
    cifar_resnet18=11_173_962 cifar_vgg19_bn=20_040_522 wrn_40_2=2_243_546 wrn_16_4=2_748_890 wrn_28_10=36_479_194
    cifar_vit_tiny=5_362_762
    """,
}
PUBLISHED = {
    (name, classes): int(number)
    for classes, text in _PUBLISHED.items()
    for name, number in (word.split("=") for word in text.split())
}
# Others of their kind are counted always.
ALIKE = ("resnext101_32x4d", "resnext101_64x4d", "densenet264_k48", "condensenet74_4_converted", "msdnet_step4")
ALIKE += ("vit_tiny", "vit_small", "vit_base")


@functools.cache
def abstract(name, num_classes=10, **options):
    return models.abstract(name, num_classes, **options)


def shapes_of(name, num_classes=10, image_size=32, **options):
    """Abstract forward pass: no arithmetic, any size."""
    graphdef, state = nnx.split(abstract(name, num_classes, **options))
    images = jax.ShapeDtypeStruct((2, image_size, image_size, 3), jnp.float32)
    return jax.eval_shape(lambda s, x: nnx.merge(graphdef, s)(x, train=False), state, images)


def parameters(name, classes):
    """Counts the parameters of a network."""
    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(abstract(name, classes), nnx.Param)))


@pytest.mark.parametrize(
    "name, classes", [pytest.param(*key, marks=[pytest.mark.slow] if key[0] in ALIKE else []) for key in PUBLISHED]
)
def test_number_of_parameters_is_the_published_one(name, classes):
    assert parameters(name, classes) == PUBLISHED[name, classes]


def test_cifar_stems_differ_from_the_published_networks_by_the_first_kernel_alone():
    """7 x 7 against 3 x 3 weights for each colour and channel; bottlenecks have no other layer of that shape."""
    for name in ("resnet50", "resnext50", "densenet121"):
        assert parameters(name, 1000) - parameters(f"cifar_{name}", 1000) == 3 * 64 * (49 - 9)


SHAPES = [  # name, side of the images, (side, channels) of each stage, features before the last layer
    ("resnet18", 224, [(56, 64), (28, 128), (14, 256), (7, 512)], 512),
    ("resnet50", 224, [(56, 256), (28, 512), (14, 1024), (7, 2048)], 2048),
    ("resnext50", 224, [(56, 256), (28, 512), (14, 1024), (7, 2048)], 2048),
    ("densenet121", 224, [(56, 256), (28, 512), (14, 1024), (7, 1024)], 1024),
    ("vgg11", 224, [(112, 64), (56, 128), (28, 256), (14, 512), (7, 512)], 4096),
    ("multigrid34", 224, [(56, 64), (28, 128), (14, 256), (7, 512)], 512),
    ("condensenet74_8_converted", 224, [(112, 48), (56, 144), (28, 400), (14, 1040), (7, 2064)], 1032),
    ("alexnet", 224, [(27, 64), (13, 192), (6, 256)], 4096),
    ("squeezenet1_0", 224, [(109, 96), (54, 256), (27, 512), (13, 512)], 512),
    ("squeezenet1_1", 224, [(111, 64), (55, 128), (27, 256), (13, 512)], 512),
    ("efficientnet_lite0", 224, list(zip([112, 56, 28, 14, 14, 7, 7], [16, 24, 40, 80, 112, 192, 320])), 1280),
    ("efficientnet_lite2", 260, list(zip([130, 65, 33, 17, 17, 9, 9], [16, 24, 48, 88, 120, 208, 352])), 1280),
    ("cifar_vgg19_bn", 32, [(16, 64), (8, 128), (4, 256), (2, 512), (1, 512)], 512),
    ("cifar_resnext50", 32, [(32, 256), (16, 512), (8, 1024), (4, 2048)], 2048),
    ("cifar_densenet121", 32, [(32, 256), (16, 512), (8, 1024), (4, 1024)], 1024),
    ("cifar_resnet34", 32, [(32, 64), (16, 128), (8, 256), (4, 512)], 512),
    ("wrn_40_2", 32, [(32, 32), (16, 64), (8, 128)], 128),
    ("wrn_28_10", 32, [(32, 160), (16, 320), (8, 640)], 640),
    ("small_resnet", 32, [(8, 48), (4, 96)], 96),
    ("fast_cifar", 32, [(15, 64), (7, 256), (3, 256)], 256),
    ("fast_cifar_cpu", 32, [(8, 64), (4, 128), (2, 256)], 256),
]


@pytest.mark.parametrize(
    "name, image_size, stages, penultimate",
    [pytest.param(*row, marks=[pytest.mark.slow] if row[0][:5] in ("multi", "conde") else []) for row in SHAPES],
)
def test_shapes_of_features(name, image_size, stages, penultimate):
    logits, features = shapes_of(name, 7, image_size)
    assert logits.shape == (2, 7)
    assert features["penultimate"].shape == (2, penultimate)
    found = [features[f"stage{i}"].shape for i in range(1, len(stages) + 1)]
    assert found == [(2, side, side, channels) for side, channels in stages]


def test_widths_inside_bottlenecks_are_the_published_ones():
    """Table 1 of arXiv:1611.05431; twice the ResNet-50's for the wide network."""
    for name, groups, widths in (
        ("wide_resnet50_2", 1, (128, 256, 512, 1024)),
        ("resnext50", 32, (128, 256, 512, 1024)),
        ("resnext101", 32, (256, 512, 1024, 2048)),
        ("resnext101_64x4d", 64, (256, 512, 1024, 2048)),
    ):
        convs = [blocks[0].conv2 for blocks in abstract(name).stages]
        assert [conv.kernel.shape for conv in convs] == [(3, 3, width // groups, width) for width in widths]


@pytest.mark.parametrize(
    "name",
    [
        "small_resnet",
        "wrn_16_4",
        "cifar_resnet18",
        "resnet50",
        "cifar_resnext50",
        "efficientnet_lite0",
        "densenet121",
        "cifar_densenet121",
    ]
    + ["vgg11", "cifar_vgg19_bn", "alexnet", "squeezenet1_0", "squeezenet1_1"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("multigrid34", "condensenet74_8", "msdnet_step4")],
)
def test_smallest_and_odd_sizes_work(name):
    smallest = models.smallest_size(name)
    for size in (smallest, smallest + 33):
        logits, _ = shapes_of(name, image_size=size)
        assert logits.shape == (2, 10)
    if smallest > 8:
        refuses(lambda: shapes_of(name, image_size=smallest - 1), "maps of at least")


@pytest.mark.parametrize(
    "name, size, feature",
    [(name, 64, "stage1") for name in ("small_resnet", "wrn_16_4", "resnet18", "cifar_vgg19_bn", "squeezenet1_1")]
    + [("small_vit", 32, "tokens")],
)
def test_bfloat16_keeps_parameters_statistics_and_logits_float32(name, size, feature):
    model = abstract(name, 10, dtype="bfloat16")
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(model))} == {jnp.dtype("float32")}
    logits, features = shapes_of(name, image_size=size, dtype="bfloat16")
    assert logits.dtype == features["penultimate"].dtype == jnp.float32
    assert features[feature].dtype == jnp.bfloat16
    _, features = shapes_of(name, image_size=size, dtype="")
    assert features[feature].dtype == (jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16)


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


def test_gains_of_batch_norms_follow_the_recipes(monkeypatch):
    """Kernels and biases are tested in layers_test.py."""
    xavier, goyal = (tiny.build(monkeypatch, "wide_resnet", init=init) for init in ("xavier", "goyal"))
    gains = np.asarray(xavier.stages[3][0].norm3.scale[...])
    assert abs(gains.mean() - 1) < 0.005 and 0.017 < gains.std() < 0.023
    for (block,) in goyal.stages:
        assert not block.norm3.scale[...].any() and block.norm2.scale[...].all()


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("wrn_40-2", {}, r"found 'wrn_40-2'; did you mean 'wrn_40_2'\?"),
        ("resnet18", {"dropout": 0.3}, "expected options of resnet18 among mean, std, init, conv, found dropout"),
        ("resnet18", {"init": "zeros"}, "expected init among he, xavier, goyal, found 'zeros'"),
        ("resnet18", {"image_size": 4}, "expected images of at least 8 pixels for resnet18, found 4"),
        ("alexnet", {"image_size": 32}, "expected images of at least 63 pixels for alexnet, found 32"),
        ("vgg11", {"dropout": -0.1}, r"expected dropout in \[0, 1\), found -0\.1"),
        ("wrn_16_4", {"dropout": 1}, r"expected dropout in \[0, 1\), found 1"),
        ("small_resnet", {"mean": (0.5,)}, "expected three means"),
        ("deit_tiny", {"image_size": 40}, "a multiple of 16 pixels, a patch, found 40"),
        ("msdnet", {"base": 0}, "exits, step and base of at least 1, found 5, 7 and 0"),
    ],
)
def test_what_is_wrong_is_named(name, options, message):
    for build in (models.abstract, models.build)[: 1 if name in ("vgg11", "msdnet") else 2]:
        with pytest.raises(ValueError, match=message):
            build(name, 10, **options)


def test_one_image_is_no_batch():
    refuses(lambda: models.build("small_resnet", 10)(jnp.zeros((32, 32, 3)), train=False), "(32, 32, 3)")


def test_a_vision_transformer_takes_the_images_that_it_was_built_for():
    assert shapes_of("cifar_vit_tiny")[0].shape == (2, 10) and shapes_of("small_vit")[1]["tokens"].shape == (2, 65, 96)
    assert abstract("deit_tiny").pos_embed.shape == (1, 197, 192)
    refuses(lambda: shapes_of("cifar_vit_tiny", image_size=40), "32 x 32 pixels", "40 x 40")


def test_vit_and_deit_differ_in_the_normalisation_alone():
    vit, deit = (nnx.state(models.build(name, 2)) for name in ("vit_tiny", "deit_tiny"))
    np.testing.assert_array_equal(vit["normalize"]["std"][...], np.float32([0.5] * 3))
    np.testing.assert_allclose(deit["normalize"]["mean"][...], [0.485, 0.456, 0.406])
    for state in (vit, deit):
        del state["normalize"]
    jax.tree.map(np.testing.assert_array_equal, vit, deit)


@pytest.mark.parametrize(
    "name, scales, channels",
    [
        ("msdnet", [4] * 9 + [3] * 9 + [2] * 9 + [1] * 8, [576, 640, 608, 528, 976]),
        pytest.param(
            "msdnet_step4", [4] * 5 + [3] * 5 + [2] * 5 + [1] * 5, [384, 384, 352, 304, 560], marks=pytest.mark.slow
        ),
    ],
)
def test_msdnet_drops_its_finest_scale_after_each_quarter(name, scales, channels):
    """The exits' channels are those of the released networks; each transition halves them."""
    model = abstract(name, 1000)
    layers = [layer for block in model.blocks for layer in block]
    assert [len(layer.scales) for layer in layers if type(layer).__name__ == "Layer"] == scales
    assert sum(type(layer).__name__ == "Transition" for layer in layers) == 3
    assert [classify.head.kernel.shape[0] for classify in model.exits] == channels


def test_grids_of_a_multigrid_network_are_pooled_then_merged_twice(monkeypatch):
    """224 pixels; each block reads its neighbours twice."""
    sides, gather = [], multigrid.gather

    def seen(grids):
        sides.append([grid.shape[1] for grid in grids])
        return gather(grids)

    monkeypatch.setattr(multigrid, "gather", seen)
    shapes_of("multigrid34", 10, 224)
    assert sides == 6 * [[56, 28, 14]] + 8 * [[28, 14, 7]] + 12 * [[14, 7]] + 6 * [[7]]


def test_a_converted_condensenet_reads_by_as_many_indices_as_its_inputs():
    flat = nnx.to_flat_state(nnx.state(abstract("condensenet74_8_converted", 1000)))
    assert sum(variable.size for path, variable in flat if path[-1] == "index") == 22_504


# 10^9 multiply-adds at 224 pixels, four digits: counted from the papers' definitions.
MULTIPLY_ADDS = {
    "condensenet74_8_converted": 0.262,
    "multigrid34": 5.760,
    "resnet50": 4.089,
    "resnext50": 4.230,
    "resnext101_32x4d": 7.970,
    "resnext101_64x4d": 15.46,
    "densenet121": 2.834,
    "densenet161": 7.728,
    "densenet264_k48": 12.85,
    "condensenet74_4_converted": 0.517,
}
EXITS = {  # 10^6, up to each exit
    "msdnet": (612.0, 1430.8, 2276.4, 2959.9, 3246.2),
    "msdnet_step4": (337.2, 681.7, 1003.7, 1249.6, 1355.6),
}


def saved_by_transitions(name):
    """DenseNets' transitions take the mean before the convolution, which leaves a quarter of it."""
    growth, sizes = DENSENETS[name]
    channels, side, saved = 2 * growth, 56, 0
    for layers in sizes[:-1]:
        channels += layers * growth
        saved += 3 / 4 * side**2 * channels * (channels // 2)
        channels, side = channels // 2, side // 2
    return saved


@pytest.mark.slow
@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_multiply_adds_are_the_published_ones(name):
    counted = costs.multiply_adds(name) + (saved_by_transitions(name) if name.startswith("densenet") else 0)
    assert float(f"{counted / 1e9:.4g}") == pytest.approx(MULTIPLY_ADDS[name], abs=6e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXITS)
def test_multiply_adds_up_to_each_exit_are_the_published_ones(name):
    assert [round(cost / 1e6, 1) for cost in costs.at_exits(name)] == list(EXITS[name])


def test_products_are_those_of_the_layers():
    """Counts for a network with one linear layer at its end; its stem sees 2x2 pixels as 12 channels."""
    found = costs.products("small_resnet", 32, 7)
    assert [product.linear for product in found] == [False] * (len(found) - 1) + [True]
    assert found[0].multiply_adds == 16 * 16 * 9 * 12 * 24 and found[-1].multiply_adds == 96 * 7


def test_attention_counts_every_pair_of_tokens():
    """197 tokens of 192 channels in 12 blocks, three heads of 64: four linear layers, scores and sums of values."""
    linear, pairs = 192 * (576 + 192 + 2 * 768), 2 * 197**2 * 192
    assert costs.multiply_adds("deit_tiny") == 12 * (197 * linear + pairs) + 196 * 768 * 192 + 192 * 1000
