"""Errors in a report: shown with what they are relative to, marked where that differs."""

import math

import pytest

from analysis.errors import summary
from analysis.errors.summary import Summary
from analysis.report import inputs
from tests.tools.report_pages import plain


def test_numbers_and_what_marks_them_are_shown(workdir, further):
    about = ("AlexNet:ImageNet-C", "imagenet_c/frost:frost", "procedural")
    found = [
        Summary("standard", "imagenet_c", "levels", "mCE", 76.73, 0.21, 0.52, 3, *about),
        Summary("standard", "noc_candidates", "random", "mCE", math.nan, math.nan, math.nan, 3, "none", "none", "none"),
    ]
    summary.write(workdir / summary.NAME, found, "a study")
    text = further(workdir)
    assert all(plain(part) in text for part in ("76.7 ± 0.2", "0.52", "AlexNet:ImageNet-C", "imagenet_c (levels)"))
    assert "frost procedural; other conditions than AlexNet:ImageNet-C: imagenet_c/frost:frost" in text
    assert "noc_candidates" not in text  # a number that is not there
    assert summary.NAME in {name for name, _, _ in inputs.read(workdir).files}


def test_an_edited_table_is_refused(workdir):
    summary.write(workdir / summary.NAME, [], "a study")
    path = workdir / summary.NAME
    path.write_text(path.read_text() + "standard,clean,none,mean_error,1.0,0.1,nan,1,none,none,none\n")
    with pytest.raises(ValueError, match="it was edited"):
        inputs.read(workdir)
