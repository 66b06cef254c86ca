"""MSDNet (Huang et al. 2018, arXiv:1703.09844), the form for ImageNet: four scales, several exits.

Scale s has n times `WIDTHS[s]` channels, and every layer adds `GROWTH` to n. After each quarter of the layers the
finest scale that is left is dropped and a transition halves n. Each exit reads the coarsest scale. The network answers
with the last; `features["exits"]` holds the logits of all, and training sums their losses.
"""

import itertools
from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import max_pool

SCALES = 4
WIDTHS = (1, 2, 4, 4)  # factor of the channels of a scale, and of its bottlenecks
FIRST, GROWTH = 32, 16


class ConvNorm(nnx.Module):
    """relu(bn(conv(x)))."""

    def __init__(self, c_in, c_out, size, stride=1, *, conv, norm, bias=False):
        self.conv, self.norm = conv(c_in, c_out, size, stride=stride, bias=bias), norm(c_out)

    def __call__(self, x, train):
        return nnx.relu(self.norm(self.conv(x), train))


class Unit(nnx.Module):
    """1x1 to at most `width * c_out` channels, then 3x3 with the stride to `c_out`."""

    def __init__(self, c_in, c_out, stride, width, *, make):
        inner = min(c_in, width * c_out)
        self.reduce, self.expand = make(c_in, inner, 1), make(inner, c_out, 3, stride)

    def __call__(self, x, train):
        return self.expand(self.reduce(x, train), train)


class Grown(nnx.Module):
    """The part of a layer at scale `s`: adds new maps to x, half of them from the next finer scale, if any."""

    def __init__(self, n, s, has_finer, *, make):
        new = GROWTH * WIDTHS[s] // (2 if has_finer else 1)
        self.down = Unit(n * WIDTHS[s - 1], new, 2, WIDTHS[s - 1], make=make) if has_finer else None
        self.same = Unit(n * WIDTHS[s], new, 1, WIDTHS[s], make=make)

    def __call__(self, finer, x, train):
        from_finer = () if self.down is None else (self.down(finer, train),)
        return jnp.concatenate((x, *from_finer, self.same(x, train)), -1)


class FirstLayer(nnx.Module):
    """7x7 convolution / 2 and 3x3 max-pooling / 2, then a 3x3 convolution / 2 for each coarser scale."""

    def __init__(self, *, make):
        self.stem = make(3, FIRST, 7, 2, bias=True)
        pairs = itertools.pairwise(WIDTHS)
        self.downs = nnx.List([make(FIRST * finer, FIRST * coarser, 3, 2) for finer, coarser in pairs])

    def __call__(self, x, train):
        maps = [max_pool(self.stem(x, train), 3, 2, 1)]
        for down in self.downs:
            maps.append(down(maps[-1], train))
        return maps


class Layer(nnx.Module):
    """Makes maps of the `after` coarsest scales of maps of `before` scales."""

    def __init__(self, n, before, after, *, make):
        scales = range(SCALES - after, SCALES)
        self.scales = nnx.List([Grown(n, s, s > SCALES - before, make=make) for s in scales])

    def __call__(self, maps, train):
        finer = [None, *maps][-len(self.scales) - 1 : -1]
        kept = maps[-len(self.scales) :]
        return [grown(f, x, train) for grown, f, x in zip(self.scales, finer, kept, strict=True)]


class Transition(nnx.Module):
    """1x1 convolutions to half the channels."""

    def __init__(self, n, scales, *, make):
        widths = WIDTHS[SCALES - scales :]
        self.scales = nnx.List([make(n * width, n // 2 * width, 1) for width in widths])

    def __call__(self, maps, train):
        return [narrow(x, train) for narrow, x in zip(self.scales, maps, strict=True)]


class Exit(nnx.Module):
    """Two 3x3 convolutions / 2, mean over pixels (2x2 of images of 224), linear."""

    def __init__(self, channels, num_classes, *, make, linear):
        self.first, self.second = make(channels, channels, 3, 2), make(channels, channels, 3, 2)
        self.head = linear(channels, num_classes)

    def __call__(self, x, train):
        pooled = self.second(self.first(x, train), train).astype(jnp.float32).mean((1, 2))
        return self.head(pooled), pooled


class MSDNet(nnx.Module):
    """First layer, then layers with exits after `base` of them and each further `step`.

    Args:
      num_classes: number of logits of each exit.
      exits: how many.
      step: layers between two exits.
      base: layers before the first. The released networks have as many as `step`.
    """

    def __init__(self, num_classes, options, *, exits=5, step=7, base=7):
        if min(exits, step, base) < 1:
            raise ValueError(f"expected exits, step and base of at least 1, found {exits}, {step} and {base}")
        make = partial(ConvNorm, conv=options.convs(), norm=options.norms())
        self.normalize = options.normalize("imagenet")
        quarter = -(-(base + step * (exits - 1)) // SCALES)
        n, before, blocks, classifiers = FIRST, SCALES, [], []
        for number in range(exits):
            layers = [] if number else [FirstLayer(make=make)]
            done = base + step * (number - 1) if number else 0
            for position in range(done, done + (step if number else base)):
                after = SCALES - position // quarter
                layers.append(Layer(n, before, after, make=make))
                n += GROWTH
                if after < before:
                    layers.append(Transition(n, after, make=make))
                    n //= 2
                before = after
            blocks.append(nnx.List(layers))
            classifiers.append(Exit(n * WIDTHS[-1], num_classes, make=make, linear=options.linears()))
        self.blocks, self.exits = nnx.List(blocks), nnx.List(classifiers)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `exits` float32 [E, N, num_classes], the last of
        which are the logits; `stage1` ... [N, h, w, C], the coarsest maps at each exit; `penultimate` float32 [N, C] of
        the last exit.
        """
        del key
        maps, answers, features = self.normalize(images), [], {}
        for number, (layers, classify) in enumerate(zip(self.blocks, self.exits, strict=True), 1):
            for layer in layers:
                maps = layer(maps, train)
            features[f"stage{number}"] = maps[-1]
            logits, features["penultimate"] = classify(maps[-1], train)
            answers.append(logits)
        features["exits"] = jnp.stack(answers)
        return answers[-1], features


FAMILY = {"msdnet": MSDNet, "msdnet_step4": partial(MSDNet, step=4, base=4)}
