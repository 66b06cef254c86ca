"""Severity tables: which one an image size takes, and rows between two levels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions import cbar, contract, imagenet_c


@pytest.mark.parametrize(
    "benchmark, sides, expected",
    [
        (
            imagenet_c,
            (16, 45, 46, 119, 120, 258, 259, 999),
            "cifar cifar tiny tiny imagenet imagenet inception inception",
        ),
        (cbar, (16, 84, 85, 999), "cifar cifar imagenet imagenet"),
    ],
)
def test_the_shorter_side_picks_the_table_nearest_in_ratio(benchmark, sides, expected):
    assert [benchmark.table_for((side, 1000, 3)) for side in sides] == expected.split()
    assert [benchmark.table_for((1000, side, 3)) for side in sides] == expected.split()
    assert benchmark.table_for((32, 32, 3), benchmark.TABLES[-1]) == benchmark.TABLES[-1]
    with pytest.raises(ValueError, match=f"among {', '.join(benchmark.TABLES)}, found 'celeba'"):
        benchmark.table_for((32, 32, 3), "celeba")


def test_rows_are_exact_at_levels_linear_between_and_clipped_beyond():
    table = np.array([[0.1, 3], [0.7, 1], [0.4, 2]], np.float32)
    for severity, row in ((1.0, table[0]), (3.0, table[2]), (0.0, table[0]), (4.0, table[2])):
        np.testing.assert_array_equal(contract.lookup(table, severity), row)
    np.testing.assert_allclose(contract.lookup(table, 1.25), 0.75 * table[0] + 0.25 * table[1], rtol=1e-6)
    traced = jax.jit(lambda severity: contract.lookup(table, severity))(jnp.float32(2.5))
    np.testing.assert_allclose(traced, (table[1] + table[2]) / 2, rtol=1e-6)
