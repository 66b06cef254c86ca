"""The contract of an augmentation scheme: all randomness in `sample`, none in `apply`.

One image at a time, float32[H, W, 3] in [0, 1], as in `corruptions.record`; batches live in
`corruptions.augment.batch`. The params of a transform are a flat dictionary of small arrays without
any image in it, so that thousands of transforms are drawn by `vmap` over keys, stored, concatenated
and indexed, and one transform is shown to many images by `vmap(scheme.apply, (0, None))`.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax

from corruptions import checks

Params = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Scheme:
    """A scheme and what is known about it. Calling it augments one image.

    Attributes:
      name: the canonical name.
      operations: what its transforms are made of: names of `operations.OPERATIONS`, or
        `patch_gaussian`.
      sampler: `(key, shape, choices, **options) -> params`; the options are static.
      applier: `(image, params) -> image`, deterministic.
      choices: NumPy arrays handed to the sampler, where they may be traced; differing in these
        alone shares a compile.
      rounding: how uint8 results are made of values between levels: `nearest` or `truncate`.
      defaults: option -> value, where it differs from the sampler's own default.
      drawn_from: the scheme that stored transforms were drawn from; "" when the transforms are the
        scheme's own.
    """

    name: str
    operations: tuple[str, ...]
    sampler: Callable[..., Params]
    applier: Callable[[Any, Params], Any]
    choices: Any
    rounding: str
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    drawn_from: str = ""

    @functools.cached_property
    def options(self) -> Mapping[str, Any]:
        """Static keyword options and their defaults."""
        signature = inspect.signature(self.sampler)
        known = {p.name: p.default for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
        return known | dict(self.defaults)

    def sample(self, key: jax.Array, shape: tuple[int, ...], **options: Any) -> Params:
        """Draws a transform.

        Args:
          key: a typed PRNG key.
          shape: (H, W, 3), both sides at least 16; strengths in pixels depend on it.
          **options: static options of this scheme, see `options`.

        Returns:
          A flat dictionary of small arrays, everything `apply` needs.

        Raises:
          ValueError: a shape or option that is not as described.
        """
        checks.image_shape(shape)
        checks.options(self.name, self.options, options)
        return self.sampler(key, tuple(shape), self.choices, **(dict(self.defaults) | options))

    def apply(self, image: jax.Array, params: Params) -> jax.Array:
        """Applies a drawn transform to `image`, float32[H, W, 3] in [0, 1]; keeps shape and
        range.
        """
        checks.one_image(image)
        return self.applier(image, params)

    def __call__(self, key: jax.Array, image: jax.Array, **options: Any) -> jax.Array:
        """Augments one image, float32[H, W, 3] in [0, 1]: `sample`, then `apply`."""
        checks.one_image(image)
        return self.apply(image, self.sample(key, image.shape, **options))

    def __repr__(self):
        return f"<Scheme {self.name}: {', '.join(self.operations) or 'identity'}>"
