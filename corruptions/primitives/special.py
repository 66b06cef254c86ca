"""Special functions, cheap on every platform: sine and cosine, angles, quantiles of the normal and the Poisson
distribution. XLA's own sine and arctangent take several times as long on a CPU.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import staging

# A quarter turn in three parts; products of the first two with a whole number below 2**14 are exact in float32.
_HIGH = round(math.pi / 2 * 2**7) / 2**7
_MIDDLE = round((math.pi / 2 - _HIGH) * 2**21) / 2**21
_LOW = math.pi / 2 - _HIGH - _MIDDLE

# atan(sqrt(u)) / sqrt(u) on [0, 1] as a polynomial in u, highest power first; its error is below 1e-8.
_NODES = np.polynomial.chebyshev.chebpts1(64) / 2 + 0.5
_FIT = np.polynomial.Chebyshev.fit(_NODES, np.arctan(np.sqrt(_NODES)) / np.sqrt(_NODES), 10, domain=[0, 1])
_ARCTANGENT = _FIT.convert(kind=np.polynomial.Polynomial).coef[::-1].astype(np.float32)


def sine_cosine(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Computes (sin x, cos x) for float32 |x| < 20 000 radians, with an absolute error below 2e-7.

    Subtracts the quarter turns and sums Taylor's series of the rest, at most pi / 4.
    """
    quarters = jnp.round(x * np.float32(2 / math.pi))
    rest = ((x - quarters * np.float32(_HIGH)) - quarters * np.float32(_MIDDLE)) - quarters * np.float32(_LOW)
    square = rest * rest
    sine, cosine = jnp.float32(1 / math.factorial(9)), jnp.float32(1 / math.factorial(8))
    for n in (7, 5, 3, 1):
        sine = sine * square + np.float32((-1) ** (n // 2) / math.factorial(n))
        cosine = cosine * square + np.float32((-1) ** (n // 2) / math.factorial(n - 1))
    sine = sine * rest
    quarters = quarters.astype(jnp.int32)
    odd = quarters & 1 == 1
    sign = (1 - (quarters & 2)).astype(jnp.float32)
    return sign * jnp.where(odd, cosine, sine), sign * jnp.where(odd, -sine, cosine)


def arctangent2(y: jax.Array, x: jax.Array) -> jax.Array:
    """Computes the angle of (x, y) in [-pi, pi], float32, as `jnp.arctan2`, with an absolute error below 5e-7; 0 at
    (0, 0).

    A polynomial gives the angle of the smaller side over the larger, at most pi / 4; the other angles mirror it.
    """
    long, short = jnp.maximum(jnp.abs(x), jnp.abs(y)), jnp.minimum(jnp.abs(x), jnp.abs(y))
    ratio = short / jnp.where(long > 0, long, 1.0)
    angle = ratio * jnp.polyval(_ARCTANGENT, ratio * ratio, unroll=len(_ARCTANGENT))
    angle = jnp.where(jnp.abs(y) > jnp.abs(x), np.float32(math.pi / 2) - angle, angle)
    return jnp.copysign(jnp.where(x < 0, np.float32(math.pi) - angle, angle), y)


def normal_quantile(probability: jax.Array) -> jax.Array:
    """Computes the inverse CDF of N(0, 1) for float32 probabilities in (0, 1), with an absolute error below 1e-5."""
    tail = 2 * jnp.minimum(probability, 1 - probability)
    magnitude = math.sqrt(2) * erfc_inverse(tail)
    return jnp.where(probability > 0.5, magnitude, -magnitude)


# Coefficients, highest power first, of M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011.
_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 2.1858087e-04, -1.25372503e-03, -4.17768164e-03,
    2.46640727e-01, 1.50140941,
)  # fmt: skip
_TAIL = (
    -2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03, 5.73950773e-03, -7.62246130e-03, 9.43887047e-03,
    1.00167406, 2.83297682,
)  # fmt: skip


def erfc_inverse(tail: jax.Array) -> jax.Array:
    """Computes x >= 0 with erfc(x) = tail, for float32 tails in (0, 1]."""
    w = -jnp.log(tail * (2 - tail))
    root = jnp.sqrt(jnp.maximum(w, 5.0))
    centre, far = _polynomial(_CENTRE, w - 2.5), _polynomial(_TAIL, root - 3)
    return (1 - tail) * jnp.where(w < 5, centre, far)


def _polynomial(coefficients, x):
    """Evaluates a polynomial, coefficients from the highest power down."""
    value = jnp.float32(coefficients[0])
    for c in coefficients[1:]:
        value = value * x + jnp.float32(c)
    return value


def poisson_quantile(uniform: jax.Array, mean: jax.Array) -> jax.Array:
    """Returns the smallest count k with F(k) = P(K <= k) >= uniform, for K ~ Poisson(mean); 0 at uniform = 0.

    One uniform number per count, pure arithmetic, no loop that waits for the slowest pixel. The sums F(0), ..., F(4)
    decide counts up to 4. For larger counts a Cornish-Fisher expansion of the quantile is less than half a count off:
    one whole number is in question, and the normal quantile of F there decides, see `_normal_of_distribution`.

    Uniforms in [0, 1) and means >= 0 are float32 of one shape, as the counts are, which are exact except for uniforms
    within about 1e-6 of a step of F (means to 1000).
    """
    # One long axis: XLA's CPU backend vectorises the last axis only and gives up on three channels, six times slower.
    # It folds a plain reshape away, hence the devices.
    uniform, mean, shape = *(staging.stage_on_cpu(x.reshape(-1)) for x in (uniform, mean)), uniform.shape
    z = normal_quantile(jnp.clip(uniform, 2.0**-24, 1 - 2.0**-24))
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
    return staging.stage_on_cpu(jnp.where(small < 5, small, large)).reshape(shape)


# Coefficients of e^i t^(2m + 1), i = ..., 1, 0, of the three corrections m = 0, 1, 2. They replace the Taylor series
# of the expansion (N. Temme, "Asymptotic inversion of incomplete gamma functions", Math. Comp. 58, 1992) by a
# least-squares fit to exact quantiles for counts 5..700 and |z| <= 5.6.
_CORRECTIONS = (
    (
        -4.05899978e-06, -1.21607959e-05, 2.53328257e-05, 2.80241739e-04,
        1.08056931e-03, 6.19924472e-04, -2.77859004e-02, -3.33333219e-01,
    ),
    (2.33241960e-04, 1.42609419e-03, 3.31834655e-03, -8.03815600e-03),
    (4.01009280e-03,),
)  # fmt: skip


def _normal_of_distribution(count, mean):
    """Computes z with Phi(z) = F(count), for counts from 5: error below 2e-6 up to |z| = 3, 2e-5 up to 5.6.

    With a = count + 1, t = 1 / sqrt(a), and e^2 / 2 = mean/a - 1 - log(mean/a), e of the sign of a - mean: z = e / t
    + t (c_0 + c_1 e + ...) + t^3 (...) + t^5 (...).
    """
    a = count + 1
    excess = jnp.maximum((mean - a) / a, -0.999)
    e = -jnp.sign(excess) * jnp.sqrt(jnp.maximum(2 * (excess - jnp.log1p(excess)), 0.0))
    t = 1 / jnp.sqrt(a)
    first, second, third = (_polynomial(c, e) for c in _CORRECTIONS)
    return e / t + t * (first + t**2 * (second + t**2 * third))
