"""Style transfer by adaptive instance normalisation (Huang and Belongie 2017, arXiv:1703.06868).

An image goes through VGG-19 up to the first layer of its fourth stage (relu4_1). Each channel of that map gets the
mean and standard deviation that it has in the map of a style. A decoder, the encoder turned round, makes an image of
the map. Convolutions are 3x3, of maps mirrored at their edges by one pixel.

The paper's code and the PyTorch port, which made Stylized-ImageNet, differ in their statistics and sums of losses;
`READINGS` has both.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx, traverse_util

from models import torch_files, torchvision
from models.layers import Conv, ShapesOnly, max_pool
from models.vgg import VGG19

SIZES = (*VGG19[:3], 1)  # convolutions in each stage of the encoder
WIDTHS = (64, 128, 256, 512)
EPSILON = 1e-5
_FLOOR = 1e-12  # least variance, so that the slope of the root stays finite where a channel is constant
_MEANS = (103.939, 116.779, 123.68)  # blue, green, red: subtracted from the input of VGG's weights
_SPREAD = 64  # rough spread of levels about these means; initial maps then have size 1, as with the public weights


class Reading(NamedTuple):
    """A way to take statistics and to sum losses."""

    correction: int  # subtracted from the number of pixels in a variance: 0 biased, 1 unbiased
    style_epsilon: float  # added to the variances of a style; variances of a content get `EPSILON`
    summed: bool  # a loss of style is the sum over channels, not their mean


READINGS = {"port": Reading(1, EPSILON, False), "original": Reading(0, 0.0, True)}


def moments(maps, correction, epsilon):
    """Mean and standard deviation over pixels, each float[N, 1, 1, C] of maps float[N, H, W, C].

    The deviation is sqrt(sum (x - mean)^2 / (H W - correction) + epsilon).
    """
    mean = maps.mean((1, 2), keepdims=True)
    squares = jnp.square(maps - mean).sum((1, 2), keepdims=True)
    number = maps.shape[1] * maps.shape[2]
    return mean, jnp.sqrt(jnp.maximum(squares / (number - correction) + epsilon, _FLOOR))


def adain(content, mean, deviation, alpha=1.0, correction=1):
    """Gives maps the statistics of a style: a t + (1 - a) c, t = sd (c - mean(c)) / sd(c) + mean.

    `content` c is float[N, H, W, C]; mean and sd are the style's `moments`, float[N, 1, 1, C]; `alpha` a is the share
    of the style, 0 leaves the content unchanged; `correction` is that of the content's variance (`Reading`).
    """
    own_mean, own_deviation = moments(content, correction, EPSILON)
    styled = deviation * (content - own_mean) / own_deviation + mean
    return alpha * styled + (1 - alpha) * content


class Layer(nnx.Module):
    """3x3 convolution with bias of maps mirrored at their edges by one pixel."""

    def __init__(self, c_in, c_out, **options):
        self.conv = Conv(c_in, c_out, 3, padding=0, bias=True, init="he_in", **options)

    def __call__(self, x):
        return self.conv(jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect"))


def _plan(widths):
    """(channels in, channels out) of each convolution of each stage of the encoder."""
    before = (3, *widths)
    return [
        [(before[stage] if layer == 0 else widths[stage], widths[stage]) for layer in range(size)]
        for stage, size in enumerate(SIZES)
    ]


def _stages(plan, **options):
    return nnx.List([nnx.List([Layer(*channels, **options) for channels in stage]) for stage in plan])


class Encoder(nnx.Module):
    """VGG-19 up to relu4_1; `colors` makes blue, green and red levels without their means."""

    def __init__(self, widths, **options):
        self.colors = Conv(3, 3, 1, bias=True, **options)
        self.colors.kernel[...] = jax.device_put(255 * np.eye(3, dtype=np.float32)[None, None, ::-1])
        self.colors.bias[...] = jax.device_put(-np.array(_MEANS, np.float32))
        self.stages = _stages(_plan(widths), **options)
        first = self.stages[0][0].conv.kernel
        first[...] = first[...] / _SPREAD

    def __call__(self, images):
        """Maps images float[N, H, W, 3] in [0, 1] to relu1_1, relu2_1, relu3_1 and relu4_1.

        They are of 1, 1/2, 1/4 and 1/8 of the size, rounded up.
        """
        x, maps = self.colors(images), []
        for stage, layers in enumerate(self.stages):
            x = max_pool(x, 2, 2, ceil=True) if stage else x
            for number, layer in enumerate(layers):
                x = nnx.relu(layer(x))
                if number == 0:
                    maps.append(x)
        return maps


class Decoder(nnx.Module):
    """The encoder's convolutions the other way, with doubled pixels for its poolings."""

    def __init__(self, widths, **options):
        self.stages = _stages([[pair[::-1] for pair in stage[::-1]] for stage in _plan(widths)[::-1]], **options)

    def __call__(self, x):
        """Maps float[N, h, w, C] like relu4_1 to images float[N, 8 h, 8 w, 3], not cut to [0, 1]."""
        for stage, layers in enumerate(self.stages):
            x = x.repeat(2, 1).repeat(2, 2) if stage else x
            for number, layer in enumerate(layers):
                last = stage == len(self.stages) - 1 and number == len(layers) - 1
                x = layer(x) if last else nnx.relu(layer(x))
        return x


class StyleTransfer(nnx.Module):
    """Encoder and decoder, with these widths (channels) of the four stages.

    `rng`, an np.random.Generator, draws the initial parameters; `conv` is the path of the convolutions
    (`layers.convolve`).
    """

    def __init__(self, widths=WIDTHS, *, rng, conv="auto"):
        self.encoder = Encoder(widths, rng=rng, conv=conv)
        self.decoder = Decoder(widths, rng=rng, conv=conv)

    def __call__(self, images, mean, deviation, alpha=1.0, correction=1):
        """Images float[N, H, W, 3] in [0, 1] in a style; the same shape, not cut to [0, 1].

        Arguments as of `adain`.
        """
        styled = self.decoder(adain(self.encoder(images)[-1], mean, deviation, alpha, correction))
        return styled[:, : images.shape[1], : images.shape[2]]


def arrays_of(network):
    """Lists {"encoder/stages/0/0/conv/kernel": array, ...} of a network."""
    arrays = traverse_util.flatten_dict(nnx.to_pure_dict(nnx.state(network)))
    return {_name(path): array for path, array in arrays.items()}


def from_arrays(arrays):
    """Makes the network whose arrays `arrays_of` listed; raises ValueError for other names or shapes."""
    biases = [f"encoder/stages/{stage}/0/conv/bias" for stage in range(len(SIZES))]
    if missing := [name for name in biases if np.ndim(arrays.get(name)) != 1]:
        raise ValueError(f"expected the arrays of a network of style transfer, found none called {missing[0]}")
    graphdef, state = _abstract(tuple(arrays[name].shape[0] for name in biases))
    named = {_name(path): variable.shape for path, variable in nnx.to_flat_state(state)}
    if wrong := sorted(n for n in named.keys() | arrays.keys() if np.shape(arrays.get(n)) != named.get(n)):
        raise ValueError(f"expected the arrays of a network of style transfer, found others at {', '.join(wrong[:5])}")
    leaves = [jnp.asarray(arrays[name]) for name in named]
    return nnx.merge(graphdef, jax.tree.unflatten(jax.tree.structure(state), leaves))


@functools.cache
def _abstract(widths):
    return nnx.split(nnx.eval_shape(lambda: StyleTransfer(widths, rng=ShapesOnly())))


def _name(path):
    return "/".join(map(str, path))


def load_port(network, part, path):
    """Loads a file of the PyTorch port into a `StyleTransfer`, which it changes in place.

    `part` is `encoder` for vgg_normalised.pth (whose layers after relu4_1 are dropped), or `decoder` for decoder.pth.
    Raises ValueError, which lists the differences, for other names or shapes; and as `torch_files.read`.
    """
    module = getattr(network, part)
    state = nnx.state(module)
    named = {_port_name(part, path): variable for path, variable in nnx.to_flat_state(state)}
    last = max(int(name.partition(".")[0]) for name in named)
    arrays = {
        name: array
        for name, array in torch_files.read(path).items()
        if part == "decoder" or not name.partition(".")[0].isdigit() or int(name.partition(".")[0]) <= last
    }
    torchvision.refuse_others(f"AdaIN's {part} in PyTorch's port", path, arrays, torchvision.torch_shapes(named))
    torchvision.fill(named, arrays)
    nnx.update(module, state)


def _port_name(part, path):
    """("stages", 1, 0, "conv", "kernel") -> "9.weight": the port numbers paddings, convolutions, ReLUs, poolings and
    doublings."""
    leaf = {"kernel": "weight", "bias": "bias"}[path[-1]]
    if path[0] == "colors":
        return f"0.{leaf}"
    sizes = SIZES if part == "encoder" else SIZES[::-1]
    before = sum(sizes[: path[1]]) + path[2]
    return f"{3 * before + path[1] + (2 if part == 'encoder' else 1)}.{leaf}"
