"""A process may compile any number of programs: their memory maps stay below a bound."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import devices

pytestmark = pytest.mark.skipif(devices.memory_maps() is None, reason="the system does not tell a process its maps")


def test_the_bound_is_half_of_what_the_kernel_allows():
    assert 0 < devices.memory_maps() < devices.most_maps() <= 2**30


@pytest.mark.slow
def test_a_thousand_programs_in_one_process():
    """Small ones of two maps each, under a bound that holds about a fourth of them."""
    jax.clear_caches()
    most = devices.memory_maps() + 500

    @functools.partial(jax.jit, static_argnames="number")
    def program(x, number):
        return x * number

    highest = drops = 0
    for number in range(1000):
        drops += devices.bound_programs(most)
        assert float(program(2.0, number)) == 2 * number
        highest = max(highest, devices.memory_maps())
    assert drops >= 2, "each program takes maps, so the bound was reached"
    assert highest < most + 50, "not more than one program's maps above it"


def test_programs_that_are_forgotten_give_their_maps_back():
    images = np.full((1, 16, 23, 3), 100, np.uint8)
    corruptions.corrupt(jax.random.key(0), images, "imagenet_c/fog", 1)  # also what stays: threads, constants
    compiled = devices.memory_maps()
    assert devices.bound_programs(1)
    assert devices.memory_maps() < compiled - 10  # 27 fewer as tests are compiled, 140 as users do


def test_corrupt_forgets_its_own_programs_first(monkeypatch):
    """Many image sizes, and 50 maps a program; a program of the user's is not compiled again."""
    jax.clear_caches()

    @jax.jit
    def of_the_user(x):
        return x + 1

    of_the_user(jnp.ones(3))
    number_of_programs = corruptions.batch._corrupt._cache_size
    monkeypatch.setattr(devices, "memory_maps", lambda: 100 + 50 * number_of_programs())
    monkeypatch.setattr(devices, "most_maps", lambda: 400)
    monkeypatch.setattr(devices, "_EVERY", 1)
    results, kept = {}, []
    for width in range(16, 30):
        images = np.full((1, 16, width, 3), 100, np.uint8)
        results[width] = corruptions.corrupt(jax.random.key(0), images, "noc/brightness", 0.5)
        kept.append(number_of_programs())
    assert kept == [1, 2, 3, 4, 5, 6] * 2 + [1, 2]
    assert of_the_user._cache_size() == 1
    images = np.full((1, 16, 16, 3), 100, np.uint8)
    again = corruptions.corrupt(jax.random.key(0), images, "noc/brightness", 0.5)
    np.testing.assert_array_equal(again, results[16])


def test_nothing_is_counted_unless_something_was_compiled(monkeypatch):
    devices.bound_programs(10**9)
    monkeypatch.setattr(devices, "memory_maps", lambda: pytest.fail("counted"))
    assert not devices.bound_programs(0)


def test_maps_are_counted_after_sixteen_programs(monkeypatch):
    counted = []
    monkeypatch.setattr(devices, "memory_maps", lambda: counted.append(None) or 0)
    devices.bound_programs(10**9)
    del counted[:]
    for number in range(1, 33):
        devices._count_compile(devices._COMPILE_EVENT, 0.1)
        devices.bound_programs()
        assert len(counted) == number // 16
