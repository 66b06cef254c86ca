"""The benchmark of large images: it measures what is missing, and at least what a program needs."""

import sys
import types

import numpy as np
import pytest

import corruptions
from benchmarks import large

NAMES = ("noc/hue", "noc/border", "noc/rain")


def test_a_stopped_run_goes_on_behind_its_last_row(tmp_path, monkeypatch):
    given = types.SimpleNamespace(out=tmp_path / "large.md", height=16, width=20)
    monkeypatch.setattr(large.command, "given", lambda argv, required: given)
    monkeypatch.setattr(corruptions, "names", lambda: NAMES)
    asked = []

    def measure(name, image):
        assert image.shape == (16, 20, 3)
        asked.append(name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return 1.25, 0.5, 2048.4

    monkeypatch.setattr(large, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        large.main([])
    assert given.out.read_text().endswith("|---|---|---|---|\n| noc/hue | 1.2 | 0.50 | 2,048 |\n")
    large.main([])
    assert asked == ["noc/hue", "noc/border", "noc/border", "noc/rain"]
    assert [line.split()[1] for line in given.out.read_text().splitlines()[-3:]] == list(NAMES)
    large.main([])
    assert len(asked) == 4
    given.width = 24
    with pytest.raises(ValueError, match=r"of this machine and size in .*large\.md, found others: remove it"):
        large.main([])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process the peak of its memory")
def test_memory_is_at_least_that_of_the_image_that_comes_back():
    compiled, run, memory = large.measure("noc/gray_scale", np.zeros((4096, 4096, 3), np.uint8))
    assert compiled > 0 and run > 0 and 48 <= memory < 4096
