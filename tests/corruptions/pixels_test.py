"""Pixels of every corruption, severity and size against those of the commit before: `pixels.txt`, see `pixels.py`."""

import warnings

import pytest

import corruptions
from tests.corruptions import pixels

MADE_ON, STORED = pixels.read()
HOW = "if this is meant, raise `version` in the record of the corruption and run `make pixels`"


@pytest.mark.parametrize(
    "size", [pytest.param(size, marks=pytest.mark.slow) if size == "224x224" else size for size in pixels.SIZES]
)
@pytest.mark.parametrize("name", pixels.names())
def test_pixels_are_those_that_are_committed(name, size):
    stored, now = STORED[name, size], pixels.compute(name, size)
    assert stored.version == now.version, (
        f"{name} has version {now.version}, its pixels that of {stored.version}: make pixels"
    )
    assert not (others := pixels.moved(stored, now, size)), (
        f"{name} at {size}: other pixels at severities {others}; {HOW}"
    )
    if stored.digests and stored.digests != now.digests:
        assert pixels.made_on() != MADE_ON, f"{name} at {size}: some values are a level off; {HOW}"
        warnings.warn("compared within one level: another compiler, or other flags, rounds otherwise", stacklevel=1)


def test_every_corruption_is_committed_and_no_other():
    assert {name for name, _ in STORED} == set(pixels.names()) and len(pixels.names()) >= 97


@pytest.mark.parametrize(
    ("name", "part"), [("noc/contrast", 1 / 25), ("noc/blur", 1 / 25), ("imagenet_c/gaussian_noise", 1 / 12)]
)
def test_a_small_change_of_pixels_is_noticed(name, part, monkeypatch):
    """Severities a part of the range higher; where digests do not count."""
    stored, severities = STORED[name, "32x32"], corruptions.severities(name)
    more = [s + part * (severities[-1] - severities[0]) for s in severities[:-1]]
    options = {"interpolate": True} if "imagenet_c" in name else {}
    corrupt = corruptions.corrupt
    monkeypatch.setattr(corruptions, "severities", lambda name: more)
    monkeypatch.setattr(corruptions, "corrupt", lambda *args, **given: corrupt(*args, **given, **options))
    now = pixels.compute(name, "32x32")
    first = stored._replace(samples=stored.samples[:-1], sums=stored.sums[:-1])
    assert pixels.moved(first, now, "32x32") == list(range(1, len(more) + 1))
