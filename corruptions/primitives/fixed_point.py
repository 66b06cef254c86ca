"""Fixed-point numbers of some 54 bits in int32 and float32: for sines that float32 cannot hold, without float64.

Whole units are exact in any compiler. A rest is below a few units, so that it does not matter how a compiler rounds or
contracts products of rests.
"""

import fractions
import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import staging

_BITS = 128  # of numbers on the host
_PI = 0x3243F6A8885A308D313198A2E03707344  # in units of 2^-128
_NODES = 2048  # of the table of sines, over a turn
_DIGITS = 10  # of 8 bits each, of a float32 angle


class Fixed(NamedTuple):
    """A number in (-2, 2): whole 2^-30 + rest; arrays, int32 and float32."""

    whole: jax.Array
    rest: jax.Array


class Turns(NamedTuple):
    """An angle without full turns: whole 2^-32 + rest turns; arrays, int32, which wraps, and float32."""

    whole: jax.Array
    rest: jax.Array


def constants(numbers: Iterable[fractions.Fraction]) -> Fixed:
    """Makes a vector of fractions, on the host."""
    numbers = list(numbers)
    wholes = [round(x * 2**30) for x in numbers]
    rests = [float(x - fractions.Fraction(whole, 2**30)) for x, whole in zip(numbers, wholes, strict=True)]
    on_host: tuple[Any, Any] = np.array(wholes, np.int32), np.array(rests, np.float32)
    return Fixed(*on_host)


def product(x: Fixed, y: Fixed) -> Fixed:
    """Multiplies numbers, with an error below 2^-52: at most one of them above 1, rests below 2^-29."""
    (x1, x0), (y1, y0) = _halves(x.whole), _halves(y.whole)
    upper, lower = _halves(x1 * y0 + x0 * y1)
    rest = lower.astype(jnp.float32) * 2.0**-45 + (x0 * y0).astype(jnp.float32) * 2.0**-60
    return Fixed(x1 * y1 + upper, rest + (_rounded(x.whole) * y.rest + x.rest * _rounded(y.whole)))


def _halves(whole):
    upper = (whole + 0x4000) >> 15
    return upper, whole - (upper << 15)


def _rounded(whole):
    return whole.astype(jnp.float32) * 2.0**-30


def turns(x: Fixed, radians: Iterable[fractions.Fraction]) -> Turns:
    """Multiplies x, [n, ...], by n angles below 100 radians, with an error below 2^-48 turns."""
    scales = constants(angle / fractions.Fraction(_PI << 5, 1 << _BITS) for angle in radians)
    scaled = product(x, Fixed(*(part[:, None] for part in scales)))  # by a 16th of the turns
    units = jnp.round(scaled.rest * 2.0**36)
    return Turns((scaled.whole << 6) + units.astype(jnp.int32), 16 * (scaled.rest - units * 2.0**-36))


def multiples(angle: jax.Array, number: int) -> Turns:
    """Computes 0, a, 2 a, ..., `number` of them, at most 2^15, of an angle in radians, float32 scalar, with an error below
    2^-55 turns.
    """
    # Digits are exact, as are their products with those of 1 / (2 pi).
    floors = jnp.floor(angle * 256.0 ** np.arange(-1, _DIGITS - 1, dtype=np.float32))
    digits = jnp.concatenate([floors[:1], floors[1:] - 256 * floors[:-1]]).astype(jnp.int32)
    inverse = ((1 << 2 * _BITS - 1) // _PI).to_bytes(_BITS // 8, "big")
    table = [[inverse[m - i] if m >= i else 0 for i in range(-1, _DIGITS - 1)] for m in range(_DIGITS + 1)]
    sums = (np.array(table, np.int32) * digits[None]).sum(1, dtype=jnp.int32)  # of 256^-1, 256^-2, ... turns
    low = (sums[4] << 8) + sums[5] + (sums[6] >> 8)
    whole, low = (sums[:4] << np.array([24, 16, 8, 0], np.int32)).sum(dtype=jnp.int32) + (low >> 16), low & 0xFFFF
    places = 256.0 ** -np.arange(7, _DIGITS + 2, dtype=np.float32)
    rest = (jnp.concatenate([sums[6:7] & 0xFF, sums[7:]]).astype(jnp.float32) * places).sum()
    index = np.arange(number, dtype=np.int32)
    steps = low * index
    rest = (steps & 0xFFFF).astype(jnp.float32) * 2.0**-48 + rest * index.astype(np.float32)
    return Turns(whole * index + (steps >> 16), rest)


def sine_cosine(angle: Turns) -> Fixed:
    """Computes sines and cosines of angles, [2, ...], with an error below 2^-51.

    Taylor's series of the distance to the nearest node of a table turns the sine and cosine there.
    """
    angle = Turns(angle.whole[None], angle.rest[None])
    node = (angle.whole + 0x100000) >> 21
    distance = Fixed(angle.whole - (node << 21), 4 * angle.rest)  # in quarter turns
    index = jnp.concatenate([node, node + _NODES // 4])
    at_node, ahead = (
        Fixed(*(staging.look_up(jnp.asarray(table), i & (_NODES - 1)) for table in _sines()))
        for i in (index, index + _NODES // 4)
    )
    quarter = constants([fractions.Fraction(_PI, 2 << _BITS)])
    arc = product(distance, Fixed(quarter.whole[0], quarter.rest[0]))
    x, square = _rounded(arc.whole) + arc.rest, product(arc, arc)
    half = square.rest / 2 + (square.whole & 1).astype(jnp.float32) * 2.0**-31
    along = product(at_node, Fixed(-(square.whole >> 1), x**4 / 24 - half))
    across = product(ahead, Fixed(arc.whole, arc.rest - x**3 / 6 * (1 - x**2 / 20)))
    return Fixed(at_node.whole + along.whole + across.whole, at_node.rest + along.rest + across.rest)


@functools.cache
def _sines():
    """Tabulates the sines of the nodes."""
    step, one = 2 * _PI // _NODES, 1 << _BITS
    terms = [one]
    for n in range(1, 12):
        terms.append(terms[-1] * step // (one * n))
    across, along = (sum(terms[n::4]) - sum(terms[n + 2 :: 4]) for n in (1, 0))
    cosine, sine, sines = one, 0, []
    for _ in range(_NODES):
        sines.append(fractions.Fraction(sine, one))
        cosine, sine = (cosine * along - sine * across) >> _BITS, (sine * along + cosine * across) >> _BITS
    return constants(sines)


def staged(x: Fixed | Turns) -> tuple[jax.Array, jax.Array]:
    """Computes a number or an angle once and keeps it in memory, with an error below 2^-49, as n 2^-24 + rest: (n, rest),
    int32 and float32.
    """
    bits = 32 if isinstance(x, Turns) else 30
    n = (x.whole + (1 << bits - 25)) >> bits - 24
    rest = (x.whole - (n << bits - 24)).astype(jnp.float32) * 2.0**-bits + x.rest
    # One complex array: XLA would compute each of two from the start.
    pair = staging.stage(jax.lax.complex(n.astype(jnp.float32), rest))
    return pair.real.astype(jnp.int32), pair.imag
