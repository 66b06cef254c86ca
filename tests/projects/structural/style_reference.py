"""The network of style transfer in float64, from its formula: mirrored rims, images as BGR of 0 to 255."""

import numpy as np

from tests.models.reference import conv, max_pool, relu


def statistics(maps, correction, epsilon):
    return maps.mean((1, 2), keepdims=True), np.sqrt(maps.var((1, 2), ddof=correction, keepdims=True) + epsilon)


def stage(x, arrays, name, number, last=False):
    """`number` convolutions of mirrored maps; [maps after each]."""
    maps = []
    for layer in range(number):
        kernel, bias = (arrays[f"{name}/{layer}/conv/{leaf}"] for leaf in ("kernel", "bias"))
        x = conv(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect"), kernel, padding=0) + bias
        x = x if last and layer == number - 1 else relu(x)
        maps.append(x)
    return maps


def encoded(images, arrays):
    x = 255 * images[..., ::-1] - np.array([103.939, 116.779, 123.68])
    first = []
    for number, size in enumerate((2, 2, 4, 1)):
        maps = stage(max_pool(x, 2, 2, ceil=True) if number else x, arrays, f"encoder/stages/{number}", size)
        x = maps[-1]
        first.append(maps[0])
    return first


def decoded(x, arrays):
    for number, size in enumerate((1, 4, 2, 2)):
        x = np.repeat(np.repeat(x, 2, 1), 2, 2) if number else x
        x = stage(x, arrays, f"decoder/stages/{number}", size, last=number == 3)[-1]
    return x
