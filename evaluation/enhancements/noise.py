"""How much Gaussian noise an image has, by its finest wavelets.

sigma = median |d| / .67449 of the coefficients d that are not 0 in the band that is high-pass both
ways of one level of the Daubechies wavelet db2, half-sample symmetric at the rim; averaged over
channels. D. L. Donoho, I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika
81 (1994), 4.2; `restoration.estimate_sigma` of scikit-image.
"""

import jax
import jax.numpy as jnp

_HIGH_PASS = (-0.48296291314469025, 0.836516303737469, -0.22414386804185735, -0.12940952255092145)
_QUARTILE = 0.6744897501960817  # of the standard normal distribution, the third


def estimate(image: jax.Array) -> jax.Array:
    """Estimates the standard deviation of the noise, in the unit of the image.

    A photograph without noise has some .01 in [0, 1]; a constant image has 0, up to rounding.

    Args:
      image: float32 [H, W, C].

    Returns:
      float32 scalar.
    """
    planes = jnp.moveaxis(image, -1, 0)
    return jax.vmap(_of_channel)(planes).mean()


def _of_channel(channel):
    size = jnp.abs(_high_pass(_high_pass(channel).T))
    zeros = (size == 0).sum()
    number = size.size - zeros
    ranks = (jnp.minimum(zeros + half // 2, size.size - 1) for half in (number - 1, number))
    median = sum(_smallest(size, rank) for rank in ranks) / 2  # 0 where all are 0
    return median / _QUARTILE


def _smallest(values, rank):
    """The value of a rank from 0 on, of values that are not negative: bit by bit, for a CPU takes
    ten times as long to sort them all.
    """
    words = values.view(jnp.int32)  # in the order of the values

    def settle(turn, found):
        higher = found | (1 << (30 - turn))
        return jnp.where((words < higher).sum() <= rank, higher, found)

    return jax.lax.fori_loop(0, 31, settle, jnp.zeros((), jnp.int32)).view(jnp.float32)


def _high_pass(channel):
    """o[k] = sum_j g[j] x[2k + 1 - j] down each column, k = 0 .. floor((n + 3) / 2) - 1."""
    size = channel.shape[0]
    number = (size + 3) // 2
    padded = jnp.pad(channel, ((2, 3), (0, 0)), mode="symmetric")
    taps = (g * padded[3 - j : 3 - j + 2 * number - 1 : 2] for j, g in enumerate(_HIGH_PASS))
    return sum(taps)
