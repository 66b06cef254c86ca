"""Multiply-adds of networks, counted from their programs; nothing is computed or drawn."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.extend.core import ClosedJaxpr, Jaxpr

import models


class Product(NamedTuple):
    """A convolution or a linear layer of a network."""

    linear: bool  # True for a matrix product
    multiply_adds: int  # for one image


def products(name, image_size=224, num_classes=1000, **options):
    """Lists the convolutions and linear layers that one image goes through, in order, as `Product`s.

    Only multiplications with an addition count: no bias, BatchNorm, ReLU or pooling (other counters add these). But at
    image sizes other than their own the adaptive pooling of VGG and AlexNet is two matrix products, which count.
    Arguments as of `models.build`, without dtype and conv; `image_size` is in pixels.
    """
    model = models.abstract(name, num_classes, dtype="float32", conv="xla", image_size=image_size, **options)
    graphdef, state = nnx.split(model)
    image = jax.ShapeDtypeStruct((1, image_size, image_size, 3), jnp.float32)
    return list(_in_program(jax.make_jaxpr(lambda s, x: nnx.merge(graphdef, s)(x, train=False)[0])(state, image).jaxpr))


def multiply_adds(name, image_size=224, num_classes=1000, **options):
    """Counts the multiply-adds of a forward pass of one image; arguments as of `products`."""
    return sum(product.multiply_adds for product in products(name, image_size, num_classes, **options))


def at_exits(name, image_size=224, num_classes=1000, **options):
    """Counts the multiply-adds of an answer at each exit of a network, as a tuple of ints; arguments as of `products`.

    An image that stops at an exit has gone through the exits before it, so they are included. Each linear layer of the
    network ends an exit.
    """
    in_order = products(name, image_size, num_classes, **options)
    until = np.cumsum([product.multiply_adds for product in in_order])
    return tuple(int(cost) for cost, product in zip(until, in_order, strict=True) if product.linear)


def _in_program(jaxpr):
    for eqn in jaxpr.eqns:
        kind = eqn.primitive.name
        if kind in ("conv_general_dilated", "dot_general"):
            first, kernel = (variable.aval for variable in eqn.invars)
            if kind == "dot_general":
                each = math.prod(first.shape[axis] for axis in eqn.params["dimension_numbers"][0][0])
            else:
                each = kernel.size // kernel.shape[-1]
            yield Product(kind == "dot_general", eqn.outvars[0].aval.size * each)
        for inner in jax.tree.leaves(list(eqn.params.values())):
            if isinstance(inner, (ClosedJaxpr, Jaxpr)):
                yield from _in_program(getattr(inner, "jaxpr", inner))
