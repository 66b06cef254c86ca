"""Fixed-point numbers hold the errors that they state, against whole numbers and float64 of the host."""

import re
from fractions import Fraction

import jax
import numpy as np
import pytest

import corruptions
from corruptions.primitives import fixed_point

RNG = np.random.default_rng(0)


def values(x, unit):
    """Exact values of a vector, fractions."""
    return [w * Fraction(unit) + Fraction(float(r)) for w, r in zip(np.ravel(x.whole).tolist(), np.ravel(x.rest))]


def test_products():
    x, y = ([Fraction(n, 2**60) for n in RNG.integers(-(2**60), 2**60, 1000).tolist()] for _ in range(2))
    y = [3 * b / 2 for b in y]
    found = jax.jit(fixed_point.product)(fixed_point.constants(x), fixed_point.constants(y))
    errors = [abs(f - a * b) for f, a, b in zip(values(found, 2.0**-30), x, y, strict=True)]
    assert 0 < max(errors) < 2**-52


@pytest.mark.parametrize("angle", [0.0, 1e-6, 0.7, 3.1415927, 9.999999, 300.3])
def test_multiples_of_an_angle_are_exact_to_their_last_turn(angle):
    angle = np.float32(angle)
    found = values(jax.jit(fixed_point.multiples, static_argnums=1)(angle, 1000), 2.0**-32)
    pi = Fraction("3.14159265358979323846264338327950288419716939937510")
    errors = [f - n * Fraction(float(angle)) / (2 * pi) for n, f in enumerate(found)]
    assert max(abs(error - round(error)) for error in errors) < 2**-55


def test_sines_cosines_and_angles_from_them():
    turns = RNG.integers(-(2**31), 2**31, 4000).astype(np.int32)
    angle = fixed_point.Turns(turns, np.zeros(4000, np.float32))

    @jax.jit
    def both(angle):
        waves = fixed_point.sine_cosine(angle)
        return waves, fixed_point.turns(waves, [Fraction(13), Fraction(78)])

    found, angles = both(angle)
    radians = 2 * np.pi * turns / 2**32
    expected = np.concatenate([np.sin(radians), np.cos(radians)])
    # float64's own error of the angle, up to pi, and of the sine
    assert np.abs(np.float64(values(found, 2.0**-30)) - expected).max() < 2**-51 + 2**-52
    exact = np.repeat([13.0, 78.0], 4000) * expected / (2 * np.pi)
    difference = np.float64(values(angles, 2.0**-32)) - exact
    assert np.abs(difference - np.round(difference)).max() < 2**-47


def test_scatter_hashes_without_float64():
    """Other compilers may take float64 for float32, and give other pixels."""
    scatter, shape = corruptions.get("cbar/scatter"), (32, 32, 3)
    params = jax.eval_shape(lambda key: scatter.sample(key, shape, 3), jax.random.key(0))
    program = str(jax.make_jaxpr(scatter.applier)(jax.ShapeDtypeStruct(shape, np.float32), params))
    assert not re.search(r"\b[fi]64\[", program)
