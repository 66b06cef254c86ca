"""Vision transformers (Dosovitskiy et al. 2021, arXiv:2010.11929) and DeiT's sizes of them (Touvron et al. 2021,
arXiv:2012.12877), as in timm.

`vit_*` and `deit_*` are one network; they differ in the normalisation of the input that its published weights expect:
mean and deviation .5 for `vit_*`, ImageNet's for `deit_*`.
"""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.norms import LayerNorm

_HALF = (0.5, 0.5, 0.5)
_DEVIATION = 0.02  # standard deviation of the initial weights


class Block(nnx.Module):
    """x + proj(attention(norm1(x))), then x + fc2(gelu(fc1(norm2(x)))), on tokens [N, T, width].

    Attention of H heads of d = width / H channels: softmax(q k^T / sqrt(d)) v. GELU is the exact one, by erf.
    """

    def __init__(self, width, heads, *, linear, norm):
        self.norm1, self.norm2 = norm(width), norm(width)
        self.qkv, self.proj = linear(width, 3 * width), linear(width, width)
        self.fc1, self.fc2 = linear(width, 4 * width), linear(4 * width, width)
        self.heads = heads

    def __call__(self, x, train):
        dtype = x.dtype
        y = self.qkv(self.norm1(x, train)).astype(dtype)
        q, k, v = jnp.moveaxis(y.reshape(*y.shape[:2], 3, self.heads, -1), 2, 0)  # [N, T, H, d] each
        scores = jnp.einsum("nqhd,nkhd->nhqk", q, k, preferred_element_type=jnp.float32)
        weights = jax.nn.softmax(scores / math.sqrt(q.shape[-1])).astype(dtype)
        y = jnp.einsum("nhqk,nkhd->nqhd", weights, v, preferred_element_type=jnp.float32)
        x = x + self.proj(y.reshape(x.shape)).astype(dtype)
        y = jax.nn.gelu(self.fc1(self.norm2(x, train)), approximate=False)
        return x + self.fc2(y).astype(dtype)


class ViT(nnx.Module):
    """Patches as tokens, a class token before them, learned positions, blocks, LayerNorm, linear on the class token.

    Images have one size, as each patch has its own position.

    Args:
      patch: side of a patch in pixels.
      width: channels of a token, a multiple of `heads`.
      depth: blocks.
      heads: heads of the attention in each block.
      image_size: side of the images in pixels, a multiple of `patch`; None is 224 with patches of 16 or more, else 32.
      default: normalisation of the input, `imagenet`, `cifar` or `half`, .5 and .5.
      options: `init` of `he` and `goyal` draws N(0, .02^2), weights and biases of the patches uniform as PyTorch, other
        biases 0; `xavier`, see layers.py.
    """

    def __init__(
        self, num_classes, options, *, patch, width=192, depth=12, heads=3, image_size=None, default="imagenet"
    ):
        side = image_size or (224 if patch >= 16 else 32)
        if side % patch:
            raise ValueError(f"expected images whose side is a multiple of {patch} pixels, a patch, found {side}")
        if width % heads:
            raise ValueError(f"expected a width that splits into {heads} heads, found {width}")
        if default == "half":
            options = dataclasses.replace(options, mean=options.mean or _HALF, std=options.std or _HALF)
        self.normalize = options.normalize("imagenet" if default == "half" else default)
        of_patches, of_tokens = (rule if options.init != "xavier" else "xavier" for rule in ("pytorch", "token"))
        self.stem = options.convs(of_patches)(3, width, patch, stride=patch, padding=0, bias=True)
        self.cls_token = nnx.Param(jax.device_put(np.zeros((1, 1, width), np.float32)))
        shape = (1, (side // patch) ** 2 + 1, width)
        self.pos_embed = nnx.Param(
            jax.device_put(options.rng.standard_normal(shape, np.float32) * np.float32(_DEVIATION))
        )
        linear, norm = options.linears(of_tokens, dtype=options.dtype), options.norms(LayerNorm)
        self.blocks = nnx.List([Block(width, heads, linear=linear, norm=norm) for _ in range(depth)])
        self.norm = norm(width, dtype=jnp.float32)
        self.head = options.linears(of_tokens)(width, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `tokens` [N, T, width] after the last block and
        `penultimate` float32 [N, width].

        Raises:
          ValueError: images of another size.
        """
        del key
        x = self.stem(self.normalize(images))
        number, grid, width = len(x), x.shape[1:3], x.shape[-1]
        positions = self.pos_embed[...]
        side = math.isqrt(positions.shape[1] - 1)
        if grid != (side, side):
            pixels = side * self.stem.stride
            raise ValueError(
                f"expected images of {pixels} x {pixels} pixels, for which this network has positions, found "
                f"{images.shape[1]} x {images.shape[2]}"
            )
        first = jnp.broadcast_to(self.cls_token[...].astype(x.dtype), (number, 1, width))
        x = jnp.concatenate([first, x.reshape(number, -1, width)], 1) + positions.astype(x.dtype)
        for block in self.blocks:
            x = block(x, train)
        penultimate = self.norm(x[:, 0], train).astype(jnp.float32)
        return self.head(penultimate), {"tokens": x, "penultimate": penultimate}


_SIZES = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12)}  # width and heads
FAMILY = {
    f"{family}_{size}": partial(ViT, patch=16, width=width, heads=heads, depth=12, default=default)
    for family, default in (("vit", "half"), ("deit", "imagenet"))
    for size, (width, heads) in _SIZES.items()
} | {
    "cifar_vit_tiny": partial(ViT, patch=4, width=192, heads=3, depth=12, default="cifar"),
    "small_vit": partial(ViT, patch=4, width=96, heads=3, depth=4, default="cifar"),
}
SMALLEST = {name: network.keywords["patch"] for name, network in FAMILY.items()}
