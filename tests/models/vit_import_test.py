"""Vision transformers in timm's and torchvision's names: names, shapes, values, and the publishers' own logits."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file

from models import torchvision

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
    assert sum(int(np.prod(shape)) for shape in found.values()) == 5_717_416


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


def drawn(layout=0, classes=3, size=None):
    shapes = torchvision.shapes("small_vit", classes, torchvision.LAYOUTS["small_vit"][layout], image_size=size)
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("layout, size", [(0, None), (1, 16)])
def test_a_file_gives_its_arrays_its_classes_and_the_size_of_its_images(layout, size, tmp_path):
    arrays = drawn(layout, size=size)
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
    with pytest.raises(ValueError, match=r"wrong shape .*pos_embed: expected \[1, 26, 96\], found \[1, 65, 96\]"):
        torchvision.from_state_dict("small_vit", drawn(), image_size=20)
    with pytest.raises(ValueError, match=r"missing \(1\): pos_embed"):
        torchvision.from_state_dict("small_vit", {k: v for k, v in drawn().items() if k != "pos_embed"})


def python_with_timm():
    """The Python of JAXC_TIMM, or this one."""
    python = os.environ.get("JAXC_TIMM", sys.executable)
    if subprocess.run([python, "-c", "import timm"], capture_output=True).returncode:
        pytest.skip("timm is not installed; JAXC_TIMM names another Python that has it")
    return python


@pytest.mark.slow
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
    command = [python_with_timm(), "-c", RANDOM_WEIGHTS, json.dumps((mean, std)), theirs, str(tmp_path)]
    subprocess.run(command, check=True)
    seen = load_file(pathlib.Path(tmp_path) / "seen.safetensors")
    model, classes = torchvision.load(name, tmp_path / "model.safetensors", dtype="float32")
    images = jnp.asarray(seen["images"].transpose(0, 2, 3, 1))
    logits = nnx.jit(lambda model, images: model(images, train=False)[0])(model, images)
    assert classes == 7 and np.ptp(seen["logits"]) > 0.01
    np.testing.assert_allclose(logits, seen["logits"], rtol=0, atol=1e-5 * np.abs(seen["logits"]).max())
