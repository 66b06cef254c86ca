"""Compiled programs: their number stays bounded, and the first call of each runs alone."""

import concurrent.futures
import functools
import io
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions.core import program_cache

counts_maps = pytest.mark.skipif(
    program_cache.memory_maps() is None, reason="the system does not tell a process its maps"
)


@counts_maps
def test_the_bound_is_half_of_what_the_kernel_allows():
    limit = int(pathlib.Path("/proc/sys/vm/max_map_count").read_text())
    assert 0 < program_cache.memory_maps() < program_cache.most_maps() == limit // 2


@counts_maps
@pytest.mark.slow
def test_a_thousand_programs_in_one_process():
    """Small ones of two maps each, under a bound that holds about a fourth of them."""
    jax.clear_caches()
    most = program_cache.memory_maps() + 500

    @functools.partial(jax.jit, static_argnames="number")
    def program(x, number):
        return x * number

    highest = drops = 0
    for number in range(1000):
        drops += program_cache.bound_programs(most)
        assert float(program(2.0, number)) == 2 * number
        highest = max(highest, program_cache.memory_maps())
    assert drops >= 2, "each program takes maps, so the bound was reached"
    assert highest < most + 50, "not more than one program's maps above it"


@counts_maps
def test_programs_that_are_forgotten_give_their_maps_back():
    images = np.full((1, 16, 23, 3), 100, np.uint8)
    corruptions.corrupt(jax.random.key(0), images, "imagenet_c/fog", 1)  # also lasting memory: threads, constants
    compiled = program_cache.memory_maps()
    assert program_cache.bound_programs(1)
    assert program_cache.memory_maps() < compiled - 10  # 27 fewer as tests are compiled, 140 as users do


@counts_maps
def test_corrupt_forgets_its_own_programs_first(monkeypatch):
    """Many image sizes, and 50 maps a program; a program of the user's is not compiled again."""
    jax.clear_caches()

    @jax.jit
    def of_the_user(x):
        return x + 1

    of_the_user(jnp.ones(3))
    number_of_programs = corruptions.core.batch._corrupt._cache_size
    monkeypatch.setattr(program_cache, "memory_maps", lambda: 100 + 50 * number_of_programs())
    monkeypatch.setattr(program_cache, "most_maps", lambda: 250)
    monkeypatch.setattr(program_cache, "_EVERY", 1)
    results, kept = {}, []
    for width in range(16, 24):
        images = np.full((1, 16, width, 3), 100, np.uint8)
        results[width] = corruptions.corrupt(jax.random.key(0), images, "noc/brightness", 0.5)
        kept.append(number_of_programs())
    assert kept == [1, 2, 3] * 2 + [1, 2]
    assert of_the_user._cache_size() == 1
    images = np.full((1, 16, 16, 3), 100, np.uint8)
    again = corruptions.corrupt(jax.random.key(0), images, "noc/brightness", 0.5)
    np.testing.assert_array_equal(again, results[16])


def test_a_terminal_is_told_of_a_slow_compile(monkeypatch):
    """Once, and nobody else is told."""
    monkeypatch.setattr(program_cache, "_SLOW_COMPILE", 0.01)
    for terminal in (True, False):
        told = io.StringIO()
        told.isatty = lambda terminal=terminal: terminal
        monkeypatch.setattr(sys, "stderr", told)
        for _ in range(2):
            with program_cache.first_call(("program", terminal)):
                time.sleep(0.1)
        assert told.getvalue() == "compiling (once) ...\n" * terminal


def test_the_first_call_of_a_program_goes_alone():
    events = []

    def call(_):
        with program_cache.first_call("of this test"):
            events.append("begin")
            time.sleep(0.01)
            events.append("end")

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(call, range(4)))
    assert events[:2] == ["begin", "end"] and len(events) == 8  # later calls, which compile nothing, may overlap
