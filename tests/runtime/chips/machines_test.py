"""Machines by name, and what their chips are told apart by."""

import pytest

from runtime.chips import costs, machines
from runtime.chips.targets import TARGETS


@pytest.mark.parametrize(
    "name, kind, chips, one_host",
    [
        ("v5e-8", "TPU v5e", 8, True),
        ("v5e-16", "TPU v5e", 16, False),
        ("v4-8", "TPU v4", 4, True),
        ("v4-32", "TPU v4", 16, False),  # named after cores, two a chip; four chips a host
        ("h200-1", "NVIDIA H200", 1, True),
        ("h200-8", "NVIDIA H200", 8, True),
    ],
)
def test_names_of_machines(name, kind, chips, one_host):
    found = machines.find(name)
    assert (found.target.kind, found.chips, found.one_host) == (kind, chips, one_host)


@pytest.mark.parametrize("name", ["v5e", "v5e-7", "v4-7", "tpu-8", "h200-0", "v5e-8,v4-8"])
def test_another_machine_is_refused_with_the_names_there_are(name):
    with pytest.raises(ValueError, match=r"expected --devices of .*(v5e|v4|h200)-.*found"):
        machines.find(name)


def test_seconds_are_cycles_where_the_compiler_estimates_them_and_else_a_floor():
    found = costs.Costs(1_500_000, 0, True, 1000, 0, 0, 4_800_000_000, {})
    assert TARGETS["tpu_v5e"].seconds(found, 1e15) == pytest.approx(1e-3)
    assert TARGETS["h200"].seconds(found, 0) == pytest.approx(1e-3 + 3e-3)  # bytes, and 3 microseconds a kernel
    assert TARGETS["h200"].seconds(found, 989e12) == pytest.approx(1)
    assert "floor" in TARGETS["h200"].model and "cycles" in TARGETS["tpu_v5e"].model
