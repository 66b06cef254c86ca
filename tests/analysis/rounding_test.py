"""Numbers as text: as many digits as the error gives meaning to."""

import math

import pytest

from analysis.rounding import compact, decimals, fixed, percent, with_error


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize(
    "value, se, expected",
    [
        (0.8482563, 0.18081995, "0.85 ± 0.18"),
        (0.8482563, 0.0581, "0.85 ± 0.06"),
        (0.7346, 0.0044154, "0.735 ± 0.004"),
        (1.2130488, 6.78, "1 ± 7"),
        (-0.0151, 0.0196, "-0.02 ± 0.02"),
        (-0.004, 0.03, "0.00 ± 0.03"),
        (12.34, 19.4, "12 ± 19"),
        (0.5, 0.00001, "0.5000 ± 0.0000"),
        (0.1234567, math.nan, "0.123"),
        (math.nan, 0.1, "undefined"),
        (0.25, 0.0, "0.250 ± 0.000"),
    ],
)
def test_values_are_rounded_as_their_errors(value, se, expected):
    assert plain(with_error(value, se)) == expected


def test_signs_are_written_where_asked_and_never_before_zero():
    assert plain(with_error(0.0308, 0.012, sign=True)) == "+0.031 ± 0.012"
    assert plain(fixed(-0.0001, 2, sign=True)) == "0.00" and plain(fixed(-0.5, 1, sign=True)) == "-0.5"


@pytest.mark.parametrize(
    "value, se, expected",
    [
        (0.8482, 0.0581, (".85", "±.06")),
        (0.0, 0.05, ("0", "±.05")),
        (1.0, None, ("1", "")),
        (-0.47, 0.2, ("-.5", "±.2")),
        (1.2130, 6.78, ("1", "±7")),
        (-1.0, 1.5, ("-1.0", "±1.5")),
        (0.126, 0.002, (".13", "±.00")),
        (math.nan, 0.1, ("\N{EN DASH}", "")),
    ],
)
def test_cells_are_short(value, se, expected):
    assert tuple(map(plain, compact(value, se))) == expected


@pytest.mark.parametrize(
    "fraction, expected", [(0.979, "98 %"), (0.004, "0.4 %"), (0.998, "99.8 %"), (0, "0 %"), (1, "100 %")]
)
def test_shares_are_percentages(fraction, expected):
    assert plain(percent(fraction)) == expected


def test_rounding_errs_by_less_than_the_standard_error():
    for se in (0.9, 0.21, 0.19, 0.1, 0.049, 0.0123, 0.002):
        assert 10.0 ** -decimals(se) / 2 <= 0.51 * se
