"""Weights in the names and layouts of their publishers, imported: outputs of independent networks, and what is refused."""

import hashlib
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file

from models import torchvision
from models.torchvision import LAYOUTS
from tests.models import torch_ports, torch_reference
from tests.refusing import refuses

VGG11 = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")
VGG19 = (64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M")
FIRES_1_0 = ("M", 16, 16, 32, "M", 32, 48, 48, 64, "M", 64)
FIRES_1_1 = ("M", 16, 16, "M", 32, 32, "M", 48, 48, 64, 64)
NETWORKS = {  # name: (side of the images, forward pass)
    "resnet18": (33, lambda n, x, c: torch_reference.resnet(n, x, c, (2, 2, 2, 2), False)),
    "alexnet": (110, torch_reference.alexnet),
    "squeezenet1_0": (49, lambda n, x, c: torch_reference.squeezenet(n, x, c, 96, 7, FIRES_1_0)),
    "squeezenet1_1": (49, lambda n, x, c: torch_reference.squeezenet(n, x, c, 64, 3, FIRES_1_1)),
}
LARGE = {
    "resnet50": (32, lambda n, x, c: torch_reference.resnet(n, x, c, (3, 4, 6, 3), True)),
    "resnext50": (32, lambda n, x, c: torch_reference.resnet(n, x, c, (3, 4, 6, 3), True, groups=32, width=128)),
    "densenet121": (40, lambda n, x, c: torch_reference.densenet(n, x, c, (6, 12, 24, 16), 32)),
    "resnet101": (32, lambda n, x, c: torch_reference.resnet(n, x, c, (3, 4, 23, 3), True)),
    "wide_resnet50_2": (32, lambda n, x, c: torch_reference.resnet(n, x, c, (3, 4, 6, 3), True, width=128)),
    "resnext101": (32, lambda n, x, c: torch_reference.resnet(n, x, c, (3, 4, 23, 3), True, groups=32, width=256)),
    "resnext101_64x4d": (32, lambda n, x, c: torch_reference.resnet(n, x, c, (3, 4, 23, 3), True, 64, 256)),
    "densenet161": (40, lambda n, x, c: torch_reference.densenet(n, x, c, (6, 12, 36, 24), 48)),
    "vgg11_bn": (70, lambda n, x, c: torch_reference.vgg(n, x, c, VGG11, True)),
    "vgg19": (70, lambda n, x, c: torch_reference.vgg(n, x, c, VGG19, False)),
}
# Number of arrays, without num_batches_tracked, and sha256 of the lines "name shape" in sorted order, of torchvision
# 0.29.2: '\n'.join(f'{k} {tuple(v.shape)}' for k, v in sorted(get_model(name).state_dict().items()) if v.ndim).
# There resnext50 is resnext50_32x4d, resnext101 resnext101_32x8d.
_PUBLISHED = """
resnet18=102:2bb53b15765c4651 resnet34=182:b945021fb00b779b resnet50=267:cf11dad974eadeaa
resnet101=522:d916ed2068e1af5d resnet152=777:2fe195791c8ffb5f wide_resnet50_2=267:5b22ca8fa50e0423
resnext50=267:f6c1ee50d9878439 resnext101=522:682c26d7ce488af8 densenet121=606:222a58d1fd8d2818
densenet161=806:9d03c4eb4e4ceb81 densenet169=846:a9eb5c1c253d9342 densenet201=1006:aaf6c59d276cc495
vgg11=22:b11acd4f90d9643f vgg11_bn=54:eb52f2d89ad478d4 vgg19=38:393fac8b08b63fbe vgg19_bn=102:8f342fea647d72df
alexnet=16:935c1ea73a7869ee squeezenet1_0=52:142983e4c19c76ad squeezenet1_1=52:3fbd2a746421cada
"""
PUBLISHED = dict(word.split("=") for word in _PUBLISHED.split())


@pytest.mark.parametrize("name", PUBLISHED)
def test_names_and_shapes_are_torchvisions(name):
    lines = [f"{key} {shape}" for key, shape in sorted(torchvision.shapes(name, 1000).items())]
    assert f"{len(lines)}:{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]}" == PUBLISHED[name]


PORTS = {  # (model, place of its layout): a tree of modules of another publisher, and options of ours
    ("resnext50", 1): (lambda: torch_ports.resnext((3, 4, 6, 3), 32, 128), {}),
    ("condensenet74_8_converted", 0): (lambda: torch_ports.condensenet(8), {}),
    ("msdnet", 0): (lambda: torch_ports.msdnet((2, 1, 1)), {"base": 2, "step": 1, "exits": 3}),
}
LARGE_PORTS = {
    ("resnext101_32x4d", 1): (lambda: torch_ports.resnext((3, 4, 23, 3), 32, 128), {}),
    ("resnext101_64x4d", 1): (lambda: torch_ports.resnext((3, 4, 23, 3), 64, 256), {}),
    ("densenet264_k48", 0): (lambda: torch_ports.densenet((6, 12, 64, 48), 48), {}),
    ("condensenet74_4_converted", 0): (lambda: torch_ports.condensenet(4), {}),
    ("msdnet", 0): (lambda: torch_ports.msdnet((7,) * 5), {}),
    ("msdnet_step4", 0): (lambda: torch_ports.msdnet((4,) * 5), {}),
}


@pytest.mark.parametrize(
    "name, place, tree, options",
    [(*key, *port) for key, port in PORTS.items()]
    + [pytest.param(*key, *port, marks=pytest.mark.slow) for key, port in LARGE_PORTS.items()],
)
def test_names_and_shapes_are_those_of_other_publishers(name, place, tree, options):
    assert torchvision.shapes(name, 1000, LAYOUTS[name][place], **options) == torch_ports.named(tree())


@pytest.mark.slow
def test_the_layout_of_a_file_is_known_by_its_first_convolution():
    """All three of a ResNeXt give the same network."""
    arrays, kernels = drawn("resnext50"), []
    for layout in LAYOUTS["resnext50"]:
        given = dict(zip(torchvision.shapes("resnext50", 3, layout), arrays.values(), strict=True))
        model, number = torchvision.from_state_dict("resnext50", given)
        kernels.append(np.asarray(model.stages[1][0].conv2.kernel[...]))
        assert number == 3
    for kernel in kernels:
        np.testing.assert_array_equal(kernel, arrays["layer2.0.conv2.weight"].transpose(2, 3, 1, 0))


@pytest.mark.parametrize(
    "name, side, forward",
    [(name, *network) for name, network in NETWORKS.items()]
    + [pytest.param(name, *network, marks=pytest.mark.slow) for name, network in LARGE.items()],
)
def test_an_imported_model_computes_what_the_original_does(name, side, forward):
    images = np.random.default_rng(1).random((2, side, side, 3), np.float32)
    network = torch_reference.Network()
    expected = forward(network, images, 7)
    model, num_classes = torchvision.from_state_dict(name, network.arrays, dtype="float32")
    found = nnx.jit(lambda model, images: model(images, train=False)[0])(model, jnp.asarray(images))
    assert num_classes == 7 and np.ptp(expected) > 0.01
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.slow
def test_indices_are_imported_as_they_are():
    rng, layer = np.random.default_rng(0), "features.denseblock_3.denselayer_2.conv_1"
    arrays = {
        key: rng.integers(0, s, s) if key.endswith("index") else rng.random(s, np.float32)
        for key, s in torchvision.shapes("condensenet74_8_converted", 3).items()
    }
    model, _ = torchvision.from_state_dict("condensenet74_8_converted", arrays)
    found = values(model)
    for key, path in ((layer, "blocks/2/1/conv1/read"), ("classifier", "head_read")):
        np.testing.assert_array_equal(found[path + "/index"], arrays[key + ".index"])
        assert found[path + "/index"].dtype == np.int32


def drawn(name, layout=0, classes=3, **options):
    """Arrays with the names and shapes of a layout, values from 0 to 1, as variances are not negative."""
    rng, shapes = np.random.default_rng(0), torchvision.shapes(name, classes, LAYOUTS[name][layout], **options)
    return {key: rng.random(shape, np.float32) for key, shape in shapes.items()}


@pytest.fixture(scope="module")
def squeezenet():
    return drawn("squeezenet1_1", classes=7)


def values(model):
    return {"/".join(map(str, path)): np.asarray(v[...]) for path, v in nnx.to_flat_state(nnx.state(model))}


def test_everything_that_does_not_fit_is_listed_at_once(squeezenet, tmp_path):
    wrong = dict(squeezenet) | {"fc.weight": np.zeros((7, 512), np.float32)}
    del wrong["features.4.squeeze.bias"], wrong["features.0.bias"]
    wrong["features.3.squeeze.weight"] = wrong["features.3.squeeze.weight"].transpose(2, 3, 1, 0)
    save_file({k: np.ascontiguousarray(v) for k, v in wrong.items()}, tmp_path / "squeezenet.safetensors")
    with pytest.raises(ValueError, match=rf"in {tmp_path}/squeezenet\.safetensors") as caught:
        torchvision.load("squeezenet1_1", tmp_path / "squeezenet.safetensors")
    for line in (
        "missing (2): features.0.bias, features.4.squeeze.bias",
        "unexpected (1): fc.weight",
        "of the wrong shape (1): features.3.squeeze.weight: expected [16, 64, 1, 1], found [1, 1, 64, 16]",
    ):
        assert f"  {line}" in str(caught.value).splitlines()


def test_another_architecture_is_refused_briefly(squeezenet):
    with pytest.raises(ValueError, match=r"missing \(102\)(.|\n)*and 82 more") as caught:
        torchvision.from_state_dict("resnet18", squeezenet)
    assert len(str(caught.value)) < 3000
    refuses(
        lambda: torchvision.from_state_dict(
            "squeezenet1_1", squeezenet | {"classifier.1.bias": np.zeros(8, np.float32)}
        ),
        "wrong shape",
        "classifier",
    )
    refuses(
        lambda: torchvision.from_state_dict("squeezenet1_1", squeezenet | {"classifier.1.bias": np.float32(0)}),
        "wrong shape",
        "classifier.1.bias: expected [7]",
    )
    refuses(lambda: torchvision.from_state_dict("cifar_resnet18", squeezenet), "can be imported", "'cifar_resnet18'")


@pytest.mark.parametrize(
    "changed, message",
    [
        (lambda array: np.where(np.arange(array.size) == 3, np.nan, array), "expected finite weights"),
        (lambda array: array + np.float32(np.inf), "expected finite weights"),
        (lambda array: array.astype(np.int8), "expected floating weights .*found int8 in classifier.1.bias; quantised"),
    ],
)
def test_weights_that_are_no_finite_numbers_are_refused_by_name(changed, message, squeezenet):
    wrong = {"classifier.1.bias": changed(squeezenet["classifier.1.bias"])}
    with pytest.raises(ValueError, match=f"{message}.* in classifier.1.bias" if "finite" in message else message):
        torchvision.from_state_dict("squeezenet1_1", squeezenet | wrong, source="file")


def test_a_negative_variance_is_refused_by_name():
    arrays = {key: np.ones(shape, np.float32) for key, shape in torchvision.shapes("resnet18", 3).items()}
    arrays["bn1.running_var"][2] = -0.5
    refuses(lambda: torchvision.from_state_dict("resnet18", arrays, source="file"), "-0.5 in bn1.running_var")


def test_what_training_scripts_add_changes_nothing(squeezenet, tmp_path):
    save_file({f"module.{key}": array for key, array in squeezenet.items()}, tmp_path / "wrapped.safetensors")
    wrapped = values(torchvision.load("squeezenet1_1", tmp_path / "wrapped.safetensors")[0])
    direct = values(torchvision.from_state_dict("squeezenet1_1", squeezenet)[0])
    assert wrapped.keys() == direct.keys()
    for key, array in direct.items():
        np.testing.assert_array_equal(wrapped[key], array)


def test_densenet_files_of_2017_are_read():
    arrays, old = drawn("densenet121"), {}
    for key, array in arrays.items():
        head, dot, tail = key.partition("denselayer")
        for new in ("norm1", "norm2", "conv1", "conv2"):
            tail = tail.replace(f".{new}.", f".{new[:-1]}.{new[-1]}.")
        old[head + dot + tail] = array
    assert "features.denseblock1.denselayer1.norm.1.weight" in old and "features.norm0.weight" in old
    model, _ = torchvision.from_state_dict("densenet121", old)
    kernel = arrays["features.denseblock3.denselayer2.conv2.weight"]
    np.testing.assert_array_equal(values(model)["blocks/2/1/conv2/kernel"], kernel.transpose(2, 3, 1, 0))


def test_published_vision_transformers_are_read():
    """`vit_b_16-c867db91.pth` has the names of torchvision's MLP before its version 2."""
    arrays = drawn("small_vit", 1)
    old = {
        key.replace(".mlp.0.", ".mlp.linear_1.").replace(".mlp.3.", ".mlp.linear_2."): a for key, a in arrays.items()
    }
    assert "encoder.layers.encoder_layer_2.mlp.linear_2.weight" in old
    model, _ = torchvision.from_state_dict("small_vit", old)
    for number, place in ((1, 0), (2, 3)):
        kernel = arrays[f"encoder.layers.encoder_layer_2.mlp.{place}.weight"]
        np.testing.assert_array_equal(values(model)[f"blocks/2/fc{number}/kernel"], kernel.T)


def test_a_class_stride_keeps_every_so_many_th_logit(squeezenet):
    model, number = torchvision.from_state_dict("squeezenet1_1", squeezenet, class_stride=3)
    assert number == 3
    kernel = squeezenet["classifier.1.weight"][[0, 3, 6]]
    np.testing.assert_array_equal(values(model)["head/kernel"], kernel.transpose(2, 3, 1, 0))
    np.testing.assert_array_equal(values(model)["head/bias"], squeezenet["classifier.1.bias"][[0, 3, 6]])
    refuses(
        lambda: torchvision.from_state_dict("squeezenet1_1", squeezenet, class_stride=0), "class_stride of at least 1"
    )


def test_half_precision_weights_become_float32(squeezenet):
    import ml_dtypes

    for dtype in (np.float16, ml_dtypes.bfloat16):
        model, _ = torchvision.from_state_dict("squeezenet1_1", {k: v.astype(dtype) for k, v in squeezenet.items()})
        kernel = values(model)["stem/kernel"]
        expected = squeezenet["features.0.weight"].astype(dtype).astype(np.float32).transpose(2, 3, 1, 0)
        assert kernel.dtype == np.float32
        np.testing.assert_array_equal(kernel, expected)


# Vision transformers, in timm's and in torchvision's names.

ATTENTION = {"qkv": 3, "proj": 1}
RANDOM_WEIGHTS = """
import json, sys
import torch, timm, torchvision
from safetensors.torch import save_file
ours, theirs, folder = sys.argv[1:]
torch.manual_seed(0)
make = torchvision.models.vit_b_16 if theirs == "vit_b_16" else lambda **k: timm.create_model(theirs, **k)
model = make(num_classes=7).eval()
with torch.no_grad():
    for name, value in model.named_parameters():  # far from the initial values, in which many are 0 or 1
        value.add_(.05 * torch.randn_like(value))
    images = torch.rand(2, 3, 224, 224)
    shape = (1, 3, 1, 1)
    normal = (images - torch.tensor(json.loads(ours)[0]).view(shape)) / torch.tensor(json.loads(ours)[1]).view(shape)
    logits = model.double()(normal.double())
save_file({k: v.float().contiguous() for k, v in model.state_dict().items()}, folder + "/model.safetensors")
save_file({"images": images, "logits": logits}, folder + "/seen.safetensors")
"""


def timm_names(width=192, depth=12, classes=1000, tokens=197):
    """timm's names and shapes, as its module says; [out, in]."""
    names = {"cls_token": (1, 1, width), "pos_embed": (1, tokens, width)}
    linear = {"patch_embed.proj": (width, 3, 16, 16), "head": (classes, width)}
    for block in range(depth):
        before = f"blocks.{block}."
        linear |= {before + f"attn.{name}": (times * width, width) for name, times in ATTENTION.items()}
        linear |= {before + "mlp.fc1": (4 * width, width), before + "mlp.fc2": (width, 4 * width)}
    for name, shape in linear.items():
        names |= {name + ".weight": shape, name + ".bias": shape[:1]}
    norms = ["norm", *(f"blocks.{block}.norm{i}" for block in range(depth) for i in (1, 2))]
    return names | {f"{name}.{kind}": (width,) for name in norms for kind in ("weight", "bias")}


def test_names_and_shapes_are_timms():
    found = torchvision.shapes("deit_tiny", 1000)
    assert found == timm_names() and len(found) == 152


def test_names_of_the_other_publisher_are_torchvisions():
    found = torchvision.shapes("deit_base", 1000, torchvision.LAYOUTS["deit_base"][1])
    assert len(found) == 152
    block = "encoder.layers.encoder_layer_11."
    expected = {
        "class_token": (1, 1, 768),
        "conv_proj.weight": (768, 3, 16, 16),
        "encoder.pos_embedding": (1, 197, 768),
        block + "ln_1.weight": (768,),
        block + "self_attention.in_proj_weight": (2304, 768),
        block + "self_attention.in_proj_bias": (2304,),
        block + "self_attention.out_proj.weight": (768, 768),
        block + "mlp.0.weight": (3072, 768),
        block + "mlp.3.bias": (768,),
        "encoder.ln.bias": (768,),
        "heads.head.weight": (1000, 768),
    }
    assert expected.items() <= found.items()


@pytest.mark.parametrize("layout, size", [(0, None), (1, 16)])
def test_a_file_gives_its_arrays_its_classes_and_the_size_of_its_images(layout, size, tmp_path):
    arrays = drawn("small_vit", layout, image_size=size)
    save_file(arrays, tmp_path / "model.safetensors")
    model, classes = torchvision.load("small_vit", tmp_path / "model.safetensors")
    names = dict(zip(torchvision.shapes("small_vit", 3), arrays, strict=True))
    assert classes == 3 and model.pos_embed.shape == (1, 65 if size is None else 17, 96)
    np.testing.assert_array_equal(model.pos_embed[...], arrays[names["pos_embed"]])
    np.testing.assert_array_equal(model.blocks[2].qkv.kernel[...], arrays[names["blocks.2.attn.qkv.weight"]].T)
    kernel = arrays[names["patch_embed.proj.weight"]]
    np.testing.assert_array_equal(model.stem.kernel[...], kernel.transpose(2, 3, 1, 0))
    images = jnp.zeros((1, size or 32, size or 32, 3))
    assert jax.eval_shape(lambda images: model(images, train=False)[0], images).shape == (1, 3)


def test_positions_of_another_size_are_refused():
    arrays = drawn("small_vit")
    refuses(lambda: torchvision.from_state_dict("small_vit", arrays, image_size=20), "wrong shape", "[1, 65, 96]")
    del arrays["pos_embed"]
    refuses(lambda: torchvision.from_state_dict("small_vit", arrays), "missing (1): pos_embed")


@pytest.mark.slow
@pytest.mark.needs("timm", "torchvision")
@pytest.mark.parametrize(
    "name, theirs",
    [
        ("deit_tiny", "deit_tiny_patch16_224"),
        ("deit_small", "deit_small_patch16_224"),
        ("deit_base", "vit_b_16"),
        ("vit_base", "vit_base_patch16_224"),
        ("resnet50_gn", "resnet50_gn"),
    ],
)
def test_logits_are_the_publishers(name, theirs, tmp_path):
    """Random weights, the publisher's module in float64."""
    mean, std = (0.5,) * 3, (0.5,) * 3
    if name != "vit_base":
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    command = [sys.executable, "-c", RANDOM_WEIGHTS, json.dumps((mean, std)), theirs, str(tmp_path)]
    subprocess.run(command, check=True)
    seen = load_file(tmp_path / "seen.safetensors")
    model, classes = torchvision.load(name, tmp_path / "model.safetensors", dtype="float32")
    images = jnp.asarray(seen["images"].transpose(0, 2, 3, 1))
    logits = nnx.jit(lambda model, images: model(images, train=False)[0])(model, images)
    assert classes == 7 and np.ptp(seen["logits"]) > 0.01
    np.testing.assert_allclose(logits, seen["logits"], rtol=0, atol=1e-5 * np.abs(seen["logits"]).max())
