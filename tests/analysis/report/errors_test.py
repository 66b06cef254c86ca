"""Errors in a report: shown with what they are relative to, marked where that differs."""

import math

from analysis import frames
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
    frames.write(workdir / "errors_summary.csv", summary.summary_frame(found), "a study")
    text = further(workdir)
    assert all(plain(part) in text for part in ("76.7 ± 0.2", "0.52", "AlexNet:ImageNet-C", "imagenet_c (levels)"))
    assert "frost procedural; other conditions than AlexNet:ImageNet-C: imagenet_c/frost:frost" in text
    assert "noc_candidates" not in text  # a number that is not there
    assert "errors_summary.csv" in {name for name, _, _ in inputs.read(workdir).files}
