"""How long a measurement will take, by a clock that the test sets."""

import logging

import pytest

from evaluation.distances import sampling as forecast


@pytest.fixture
def said(caplog, monkeypatch):
    monkeypatch.setattr(forecast.log, "propagate", True)
    caplog.set_level(logging.INFO)
    return caplog


def test_the_rate_is_told_once_and_without_the_first_call_which_compiles(said):
    now = [0.0]
    estimate = forecast.Forecast(1_000_000, lambda: now[0])
    for seconds, images in ((70, 500), (75, 2500), (81, 2500), (91, 5000)):
        now[0] = seconds
        estimate.saw(images)
    # 5,000 images from 70 to 81 s: 454.5 a second, 994,500 are left, 2,187.9 s.
    assert said.messages == ["455 images/s: 994,500 images are left, about 36 minutes."]
    estimate.end()
    assert said.messages[1:] == ["476 images/s over all."]


@pytest.mark.parametrize(("images", "duration"), [(10_000, "50 seconds"), (2_000_000, "2.8 hours"), (10**9, "58 days")])
def test_durations_have_the_unit_that_fits(said, images, duration):
    now = [0.0]
    estimate = forecast.Forecast(images + 2000 + 1, lambda: now[0])
    estimate.saw(1)
    now[0] = 10.0
    estimate.saw(2000)
    assert said.messages[0].endswith(f"about {duration}.")


def test_what_is_quick_says_nothing(said):
    now = [0.0]
    estimate = forecast.Forecast(100, lambda: now[0])
    for now[0] in (1.0, 2.0, 9.0):
        estimate.saw(30)
    estimate.end()
    assert not said.messages
