"""Weights of torchvision's models in ours: `load("resnet50", "resnet50-0676ba61.pth")`.

A layout names the modules of a family as torchvision does, or as other published files of the same network do: a tuple
of regular expressions with their replacements, which turn the path of one of our modules ("stages.0.1.conv2") into its
name there ("layer1.1.conv2"). A network may have several layouts. Names and axes of the arrays follow for all families:

* the class token and the positions of a vision transformer keep their axes;
* kernel -> weight: convolutions OIHW -> HWIO, linear layers [out, in] -> [in, out];
* BatchNorm: scale -> weight, mean -> running_mean, var -> running_var; `num_batches_tracked` is of
  no use here;
* linear layers read flattened maps channels first, as in PyTorch, so that nothing is permuted.
"""

import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import models
from models import efficientnet, torch_files, vit
from models.densenet import DENSENETS
from models.vgg import VGG11, VGG19

_ARRAYS = {
    "kernel": "weight",
    "bias": "bias",
    "scale": "weight",
    "mean": "running_mean",
    "var": "running_var",
    "index": "index",
}

_RESNET = (
    (r"^stem$", "conv1"),
    (r"^stem_norm$", "bn1"),
    (r"^stages\.(\d+)", lambda m: f"layer{int(m[1]) + 1}"),
    (r"\.norm(\d)$", r".bn\1"),
    (r"\.shortcut\.conv$", ".downsample.0"),
    (r"\.shortcut\.norm$", ".downsample.1"),
    (r"^head$", "fc"),
)

_DENSENET = (
    (r"^stem$", "features.conv0"),
    (r"^stem_norm$", "features.norm0"),
    (r"^blocks\.(\d+)\.(\d+)", lambda m: f"features.denseblock{int(m[1]) + 1}.denselayer{int(m[2]) + 1}"),
    (r"^transitions\.(\d+)", lambda m: f"features.transition{int(m[1]) + 1}"),
    (r"^norm$", "features.norm5"),
    (r"^head$", "classifier"),
)


def _vgg(sizes, batch_norm):
    """torchvision numbers all in `features`: a layer takes 2, 3 with BatchNorm, a pooling takes 1."""
    places = 3 if batch_norm else 2

    def number(match):
        stage, layer = int(match[1]), int(match[2])
        return f"features.{sum(sizes[:stage]) * places + stage + layer * places + (match[3] == 'norm')}"

    return (
        (r"^stages\.(\d+)\.(\d+)\.(conv|norm)$", number),
        (r"^hidden\.(\d+)$", lambda m: f"classifier.{3 * int(m[1])}"),
        (r"^head$", "classifier.6"),
    )


_ALEXNET = (
    (r"^convs\.(\d+)$", lambda m: f"features.{(0, 3, 6, 8, 10)[int(m[1])]}"),
    (r"^hidden\.(\d+)$", lambda m: f"classifier.{1 + 3 * int(m[1])}"),
    (r"^head$", "classifier.6"),
)


def _squeezenet(pools):
    """`features`: convolution, ReLU, then Fire modules, a pooling before those numbered in `pools`."""
    return (
        (r"^stem$", "features.0"),
        (r"^fires\.(\d+)", lambda m: f"features.{2 + int(m[1]) + sum(pool <= int(m[1]) for pool in pools)}"),
        (r"^head$", "classifier.1"),
    )


def _numbered_resnext(before, head):
    """Names the modules of the authors' networks, which were translated from Lua: all by number."""
    inside = {"conv1": "0.0", "norm1": "0.1", "conv2": "0.3", "norm2": "0.4", "conv3": "1", "norm3": "2"}
    return (
        (r"^stem$", before + "0"),
        (r"^stem_norm$", before + "1"),
        (
            r"^stages\.(\d+)\.(\d+)\.shortcut\.(conv|norm)$",
            lambda m: f"{before}{4 + int(m[1])}.{m[2]}.0.1.{int(m[3] == 'norm')}",
        ),
        (r"^stages\.(\d+)\.(\d+)\.(\w+)$", lambda m: f"{before}{4 + int(m[1])}.{m[2]}.0.0.{inside[m[3]]}"),
        (r"^head$", head),
    )


def _numbered_densenet(sizes):
    """The same: layers and transitions in one row, a transition taking four places."""
    first = [4 + sum(sizes[:block]) + 4 * block for block in range(len(sizes) + 1)]
    inside = {"norm1": 0, "conv1": 2, "norm2": 3, "conv2": 5}
    return (
        (r"^stem$", "0"),
        (r"^stem_norm$", "1"),
        (r"^blocks\.(\d+)\.(\d+)\.(\w+)$", lambda m: f"{first[int(m[1])] + int(m[2])}.1.{inside[m[3]]}"),
        (r"^transitions\.(\d+)\.(norm|conv)$", lambda m: f"{first[int(m[1]) + 1] - 4 + 2 * (m[2] == 'conv')}"),
        (r"^norm$", str(first[-1] - 4)),
        (r"^head$", f"{first[-1]}.1"),
    )


def _efficientnet(sizes):
    """Names the modules of `efficientnet-lite-pytorch`, which numbers the blocks of all stages in one row."""
    inside = {"expand": "_expand_conv", "depthwise": "_depthwise_conv", "project": "_project_conv"}
    inside |= {"expand_norm": "_bn0", "depthwise_norm": "_bn1", "project_norm": "_bn2"}
    return (
        (r"^stem$", "_conv_stem"),
        (r"^stem_norm$", "_bn0"),
        (
            r"^stages\.(\d+)\.(\d+)\.(\w+)$",
            lambda m: f"_blocks.{sum(sizes[: int(m[1])]) + int(m[2])}.{inside[m[3]]}",
        ),
        (r"^last$", "_conv_head"),
        (r"^last_norm$", "_bn1"),
        (r"^head$", "_fc"),
    )


_MSDNET = (  # the PyTorch port's names
    (r"^blocks\.0\.0\.stem\.(conv|norm)$", lambda m: f"blocks.0.0.layers.0.{int(m[1] == 'norm')}"),
    (r"^blocks\.0\.0\.downs\.(\d+)", lambda m: f"blocks.0.0.layers.{int(m[1]) + 1}.net"),
    (r"\.scales\.(\d+)\.(conv|norm)$", r".m.\1.net.\2"),  # a transition
    (r"\.scales\.(\d+)\.(down|same)", lambda m: f".layers.{m[1]}.conv_{'down' if m[2] == 'down' else 'normal'}"),
    (r"\.(reduce|expand)\.(conv|norm)$", lambda m: f".net.{3 * (m[1] == 'expand') + (m[2] == 'norm')}"),
    (r"^exits\.(\d+)\.(first|second)", lambda m: f"classifier.{m[1]}.m.{int(m[2] == 'second')}.net"),
    (r"^exits\.(\d+)\.head$", r"classifier.\1.linear"),
    (r"\.net\.(conv|norm)$", lambda m: f".net.{int(m[1] == 'norm')}"),
)

_CONDENSENET = (  # the authors' names of converted networks
    (r"^stem$", "features.init_conv"),
    (r"^blocks\.(\d+)\.(\d+)", lambda m: f"features.denseblock_{int(m[1]) + 1}.denselayer_{int(m[2]) + 1}"),
    (r"\.conv1", ".conv_1"),
    (r"\.read$", ""),
    (r"\.norm2$", ".conv_2.norm"),
    (r"\.conv2$", ".conv_2.conv"),
    (r"^norm$", "features.norm_last"),
    (r"^head$", "classifier.linear"),
    (r"^head_read$", "classifier"),
)

_TIMM_VIT = (
    (r"^stem$", "patch_embed.proj"),
    (r"(\d)\.(qkv|proj)$", r"\1.attn.\2"),
    (r"(\d)\.(fc\d)$", r"\1.mlp.\2"),
)
_TORCHVISION_VIT = (
    (r"^cls_token$", "class_token"),
    (r"^pos_embed$", "encoder.pos_embedding"),
    (r"^stem$", "conv_proj"),
    (r"^blocks\.(\d+)", r"encoder.layers.encoder_layer_\1"),
    (r"\.norm(\d)$", r".ln_\1"),
    (r"\.qkv$", ".self_attention.in_proj_"),  # its arrays' names have no dot
    (r"\.proj$", ".self_attention.out_proj"),
    (r"\.fc(\d)$", lambda m: f".mlp.{3 * int(m[1]) - 3}"),
    (r"^norm$", "encoder.ln"),
    (r"^head$", "heads.head"),
)

_OLD_NAMES = (
    (r"(denselayer\d+\.(?:norm|conv))\.(\d)\.", r"\1\2."),  # `norm.1` for `norm1`: DenseNet files of 2017
    (r"\.mlp\.linear_1\.", ".mlp.0."),  # of the published vision transformers
    (r"\.mlp\.linear_2\.", ".mlp.3."),
)
_RESNETS = (
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "wide_resnet50_2",
    "resnext101",
    "resnet50_gn",
)
_NUMBERED_RESNEXT = _numbered_resnext("", "10.1"), _numbered_resnext("features.", "last_linear")
_CONDENSENETS = ("condensenet74_4_converted", "condensenet74_8_converted")
LAYOUTS = {
    **dict.fromkeys(_RESNETS, (_RESNET,)),
    **dict.fromkeys(("resnext50", "resnext101_32x4d", "resnext101_64x4d"), (_RESNET, *_NUMBERED_RESNEXT)),
    **dict.fromkeys(("densenet121", "densenet161", "densenet169", "densenet201"), (_DENSENET,)),
    "densenet264_k48": (_numbered_densenet(DENSENETS["densenet264_k48"][1]),),
    "vgg11": (_vgg(VGG11, False),),
    "vgg11_bn": (_vgg(VGG11, True),),
    "vgg19": (_vgg(VGG19, False),),
    "vgg19_bn": (_vgg(VGG19, True),),
    "alexnet": (_ALEXNET,),
    "squeezenet1_0": (_squeezenet((0, 3, 7)),),
    "squeezenet1_1": (_squeezenet((0, 2, 4)),),
    **{name: (_efficientnet(efficientnet.blocks(depth)),) for name, (_, depth, _) in efficientnet.SIZES.items()},
    **dict.fromkeys(("msdnet", "msdnet_step4"), (_MSDNET,)),
    **dict.fromkeys(_CONDENSENETS, (_CONDENSENET,)),
    **dict.fromkeys(vit.FAMILY, (_TIMM_VIT, _TORCHVISION_VIT)),
    **{name: (_TIMM_VIT,) for name in vit.FAMILY if name.startswith("vit_")},  # torchvision's has deit's normalisation
}
"""{model: its layouts, torchvision's first where it has the model}; of vision transformers timm's come first."""
_TOKENS = ("cls_token", "pos_embed")  # arrays that belong to the network itself


def torch_name(layout, path):
    """Names an array: ("stages", 0, 1, "conv2", "kernel") -> "layer1.1.conv2.weight"."""
    own = path[-1] in _TOKENS
    module = ".".join(map(str, path if own else path[:-1]))
    for pattern, replacement in layout:
        module = re.sub(pattern, replacement, module)
    if own:
        return module
    return f"{module}{'' if module.endswith('_') else '.'}{_ARRAYS[path[-1]]}"


def names():
    """Models whose weights can be imported, as a tuple."""
    return tuple(LAYOUTS)


def load(name, path, *, class_stride=1, **options):
    """Builds one of our models with torchvision's weights: (nnx.Module as of `models.build`, number of its logits).

    Args:
      name: one of `names()`.
      path: a .safetensors, .pth or .pt file with torchvision's state_dict of this model, see
        `torch_files.read`; or a file of another publisher, see `LAYOUTS`.
      class_stride: k keeps the logits of every k-th class, the file's number divided by k and rounded up; 10 makes a
        model of ImageNet-100, every tenth class of ImageNet by WordNet ID, the order of torchvision's logits.
      **options: options of `models.build`: dtype, mean, std, conv ...

    Raises:
      ValueError: unknown name, unreadable file, or one whose names or shapes are not exactly those
        of the model; one message lists missing and unexpected arrays and wrong shapes.
      FileNotFoundError, RuntimeError: see `torch_files.read`.
    """
    _check_name(name)
    return from_state_dict(name, torch_files.read(path), class_stride=class_stride, source=path, **options)


def from_state_dict(name, arrays, *, class_stride=1, source="state_dict", **options):
    """`load` from {torchvision's name: array}; `source` names it in errors."""
    _check_name(name)
    if class_stride < 1:
        raise ValueError(f"expected a class_stride of at least 1, found {class_stride}")
    arrays = {key: array for key, array in arrays.items() if not key.endswith("num_batches_tracked")}
    for old, new in _OLD_NAMES:
        arrays = {re.sub(old, new, key): array for key, array in arrays.items()}
    layout = _closest_layout(name, arrays)
    options = {"image_size": _image_size(layout, arrays)} | options
    num_classes = -(-1000 // class_stride)
    for head, leaf in itertools.product(_heads(layout, arrays), ("kernel", "bias")):
        key = torch_name(layout, (*head, leaf))
        if np.ndim(arrays.get(key)):
            arrays[key] = arrays[key][::class_stride]
            num_classes = len(arrays[key])
    refuse_others(name, source, arrays, shapes(name, num_classes, layout, **options))
    model = models.build(name, num_classes, **options)
    state = nnx.state(model)
    fill(_named(layout, state), arrays)
    nnx.update(model, state)
    return model, num_classes


def shapes(name, num_classes, layout=None, **options):
    """Lists {name: shape} of a model's arrays, without num_batches_tracked; the first of `LAYOUTS` is the default."""
    _check_name(name)
    layout = layout or LAYOUTS[name][0]
    return torch_shapes(_named(layout, nnx.state(models.abstract(name, num_classes, **options))))


def _image_size(layout, arrays):
    """The side of the images whose positions a vision transformer's file holds; None of other networks."""
    positions, kernel = (arrays.get(torch_name(layout, path)) for path in (("pos_embed",), ("stem", "kernel")))
    if np.ndim(positions) != 3 or np.ndim(kernel) != 4:
        return None
    return math.isqrt(max(0, positions.shape[1] - 1)) * kernel.shape[-1] or None


def _heads(layout, arrays):
    """Where logits are made: at the end, or at each exit of a network of several."""
    exits = (("exits", number, "head") for number in itertools.count())
    return ("head",), *itertools.takewhile(lambda path: torch_name(layout, (*path, "kernel")) in arrays, exits)


def _closest_layout(name, arrays):
    """The layout in which the first convolution has its name among the arrays; else the first."""
    fitting = [layout for layout in LAYOUTS[name] if torch_name(layout, ("stem", "kernel")) in arrays]
    return (*fitting, LAYOUTS[name][0])[0]


def _named(layout, state):
    """{name: variable} of the parameters and statistics of a model."""
    flat = nnx.to_flat_state(state)
    return {torch_name(layout, path): variable for path, variable in flat if path[0] != "normalize"}


def _check_name(name):
    if name not in LAYOUTS:
        raise ValueError(f"expected a model whose weights can be imported ({', '.join(LAYOUTS)}), found {name!r}")


_OUR_AXES = {1: (0,), 2: (1, 0), 3: (0, 1, 2), 4: (2, 3, 1, 0)}  # rank: axes of PyTorch's array in our order


def torch_shapes(named):
    """{name: shape that PyTorch gives its array} of {name: variable of ours}."""
    shapes = {name: variable.shape for name, variable in named.items()}
    return {name: tuple(np.array(shape)[np.argsort(_OUR_AXES[len(shape)])].tolist()) for name, shape in shapes.items()}


def fill(named, arrays):
    """Gives each of {name: variable} its array of PyTorch's, in our layout and the variable's dtype."""
    for name, variable in named.items():
        array = arrays[name].transpose(_OUR_AXES[arrays[name].ndim])
        variable[...] = jax.device_put(np.asarray(array, variable.dtype))


def refuse_others(what, source, arrays, expected):
    """Refuses (ValueError) arrays that have not exactly the names and shapes of `expected`, the weights of `what`, or
    are no finite floating-point numbers, and negative variances; an `index` holds whole numbers."""
    given = {key: np.shape(array) for key, array in arrays.items()}
    wrong = [
        f"{key}: expected {list(shape)}, found {list(given[key])}"
        for key, shape in sorted(expected.items())
        if key in given and given[key] != shape
    ]
    lists = {"missing": sorted(expected.keys() - given), "unexpected": sorted(given.keys() - expected)}
    if lines := [
        f"  {name} ({len(some)}): {', '.join(some[:20])}{f', ... and {len(some) - 20} more' if len(some) > 20 else ''}"
        for name, some in (lists | {"of the wrong shape": wrong}).items()
        if some
    ]:
        text = "\n".join(lines)
        raise ValueError(f"expected the weights of {what} in {source}, found names or shapes differ:\n{text}")
    for key, array in sorted(arrays.items()):
        kind = jnp.integer if key.endswith(".index") else jnp.floating
        if not jnp.issubdtype(array.dtype, kind):
            raise ValueError(
                f"expected {kind.__name__} weights of {what} in {source}, found {array.dtype} in {key}; quantised weights "
                "cannot be imported"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"expected finite weights of {what} in {source}, found NaN or infinity in {key}")
        if key.endswith("running_var") and np.min(array, initial=0) < 0:
            raise ValueError(f"expected variances of {what} in {source} from 0 up, found {np.min(array):g} in {key}")
