"""Models trained on a mixture: CE against the study's own standard model, from per-image
answers.
"""

import csv

import numpy as np
import pytest

from analysis.comparison import mixtures

N = 1000


def answers(**errors):
    """Correctness of N images with exactly the given errors."""
    return {name: (np.arange(N) >= round(error * N)).astype(float) for name, error in errors.items()}


STANDARD = answers(clean=0.1, fog=0.5, border=0.3, easy=0.1)


def test_gains_against_the_standard_model(tmp_path):
    model = answers(clean=0.12, fog=0.16, border=0.3, easy=0.05)
    found = mixtures.write_mixtures(tmp_path / "m.csv", STANDARD, {"mixture=x": model}, {"mixture=x": ("fog",)})
    of_x = found["mixture=x"]
    assert set(of_x.relative) == {"fog", "border"}  # nothing to gain where the standard model loses nothing
    assert of_x.relative["fog"].standard == pytest.approx(100) and of_x.raw["border"].standard == pytest.approx(100)
    assert of_x.relative["fog"].model == pytest.approx(100 * (0.16 - 0.12) / (0.5 - 0.1))
    assert of_x.relative["border"].gain == pytest.approx(100 - 100 * (0.3 - 0.12) / (0.3 - 0.1))
    assert of_x.raw["fog"].model == pytest.approx(100 * 0.16 / 0.5)
    # Paired: the images the two models disagree on, not all N.
    changed = (0.5 - 0.16) * N
    expected = 100 / 0.5 * np.sqrt(changed / N * (1 - changed / N) / (N - 1))
    assert of_x.raw["fog"].se == pytest.approx(expected)
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text().splitlines()))
    assert [(row["corruption"], row["member"]) for row in rows] == [("fog", "1"), ("border", "0")]
    assert float(rows[0]["relative_gain"]) == of_x.relative["fog"].gain


def test_other_conditions_are_refused(tmp_path):
    with pytest.raises(KeyError):
        mixtures.write_mixtures(tmp_path / "m.csv", STANDARD, {"m": answers(clean=0.1)}, {"m": ()})
