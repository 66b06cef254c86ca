"""Poisson counts by inversion of the distribution function: one uniform number per count, pure
arithmetic, no loop that waits for the slowest pixel.
"""

import jax
import jax.numpy as jnp

from corruptions.primitives import random, staging


def quantile(uniform: jax.Array, mean: jax.Array) -> jax.Array:
    """Returns the smallest count k with F(k) = P(K <= k) >= uniform, for K ~ Poisson(mean); 0 at
    uniform = 0.

    Counts up to 4 are decided by the sums F(0), ..., F(4) themselves. For larger ones a
    Cornish-Fisher expansion of the quantile is less than half a count off, so one whole number is
    in question, and the normal quantile of F there decides, see `_normal_of_distribution`.

    Args:
      uniform: float32 array, values in [0, 1).
      mean: float32 array of the same shape, values >= 0.

    Returns:
      float32 array of counts, exact but for uniforms within about 1e-6 of a step of F (means to
      1000).
    """
    return jax.lax.platform_dependent(uniform, mean, cpu=_in_a_row, default=_quantile)


def _in_a_row(uniform, mean):
    # XLA's CPU backend vectorises along the last axis only; over three channels it gives up and is six times slower.
    # A plain reshape would be folded away.
    rows = (staging.stage(x.reshape(-1)) for x in (uniform, mean))
    return staging.stage(_quantile(*rows)).reshape(uniform.shape)


def _quantile(uniform, mean):
    z = random.normal_quantile(jnp.clip(uniform, 2.0**-24, 1 - 2.0**-24))
    root = jnp.sqrt(mean)
    third = (z**3 + 2 * z) / 120 / jnp.maximum(root, 1.0)
    nearest = jnp.round(mean + root * z + (z**2 - 4) / 6 - third)
    nearest = jnp.maximum(nearest, 5.0)
    large = nearest + (z > _normal_of_distribution(nearest, mean)).astype(jnp.float32)
    mass = total = jnp.exp(-mean)
    small = (uniform > total).astype(jnp.float32)
    for k in range(1, 5):
        mass = mass * mean * (1 / k)
        total = total + mass
        small = small + (uniform > total).astype(jnp.float32)
    return jnp.where(small < 5, small, large)


# Coefficients of e^i t^(2m + 1), i = 0, 1, ..., of the three corrections m = 0, 1, 2. They replace
# the Taylor series of the expansion (N. Temme, "Asymptotic inversion of incomplete gamma
# functions", Math. Comp. 58, 1992) by a least-squares fit to exact quantiles for counts 5..700 and
# |z| <= 5.6.
_CORRECTIONS = (
    (
        -3.33333219e-01, -2.77859004e-02, 6.19924472e-04, 1.08056931e-03,
        2.80241739e-04, 2.53328257e-05, -1.21607959e-05, -4.05899978e-06,
    ),
    (-8.03815600e-03, 3.31834655e-03, 1.42609419e-03, 2.33241960e-04),
    (4.01009280e-03,),
)  # fmt: skip


def _normal_of_distribution(count, mean):
    """z with Phi(z) = F(count), for counts from 5: error below 2e-6 up to |z| = 3, 2e-5 up to 5.6.

    With a = count + 1, t = 1 / sqrt(a), and e^2 / 2 = mean/a - 1 - log(mean/a), e of the sign of
    a - mean: z = e / t + t (c_0 + c_1 e + ...) + t^3 (...) + t^5 (...).
    """
    a = count + 1
    excess = jnp.maximum((mean - a) / a, -0.999)
    e = -jnp.sign(excess) * jnp.sqrt(jnp.maximum(2 * (excess - jnp.log1p(excess)), 0.0))
    t = 1 / jnp.sqrt(a)
    first, second, third = (_polynomial(c, e) for c in _CORRECTIONS)
    return e / t + t * (first + t**2 * (second + t**2 * third))


def _polynomial(coefficients, x):
    value = jnp.float32(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value
