"""projects.structural.flip_rates: the published definitions written out, what must not change them, and refusals."""

import numpy as np
import pytest

from projects.structural import flip_rates as flips

CLASSES = 9


@pytest.fixture
def order():
    """Classes by falling logit of 3 sequences of 4 frames, all of them: int [3, 4, 9]."""
    return np.random.default_rng(0).permuted(np.tile(np.arange(CLASSES), (3, 4, 1)), axis=-1)


def distance(first, second):
    """d of section 4.2: the steps between the places of a class that cross one of the first five,
    summed over the five best classes.
    """
    total = 0
    for i in range(1, 6):
        place = list(second).index(first[i - 1]) + 1
        total += sum(1 <= j - 1 <= 5 for j in range(min(i, place) + 1, max(i, place) + 1))
    return total


@pytest.mark.parametrize("noise", [False, True])
def test_both_measures_are_as_published(order, noise):
    best = order[..., : flips.BEST]
    pairs = [[(frames[0 if noise else j - 1], frames[j]) for j in range(1, 4)] for frames in order]
    expected = [np.mean([a[0] != b[0] for a, b in sequence]) for sequence in pairs]
    np.testing.assert_allclose(flips.flip_probabilities(best, noise), expected)
    expected = [np.mean([distance(a, b) for a, b in sequence]) for sequence in pairs]
    np.testing.assert_allclose(flips.top_distances(best, noise), expected)


def row(name, flip, top, seed=0, sequences=10):
    return flips.Flips("standard", seed, name, sequences, 31, flip, 0.01, top, 0.1)


def test_rates_are_means_of_ratios_and_not_ratios_of_means(tmp_path):
    reference = [row("rotate", 0.1, 2.0), row("gaussian_noise", 0.4, 1.0)]
    rows = [row("rotate", 0.05, 3.0), row("gaussian_noise", 0.4, 0.5)]
    flips.write_flips(tmp_path / "flips.csv", reference, "made up")
    assert flips.read_flips(tmp_path) == reference
    found = flips.rates(rows, flips.read_flips(tmp_path))
    assert found["standard", 0].flips == pytest.approx({"rotate": 50, "gaussian_noise": 100})
    assert found["standard", 0][1:] == pytest.approx((75, 100))
    assert flips.rates(reference, reference)["standard", 0][1:] == (100, 100)
    table = flips.text(rows, found)
    assert "| rotate | 5.0\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}1.0 |" in table and "| mFR | 75.0 |" in table
    assert "mFR" not in flips.text(rows, {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected a table, found none"),
        ("model,seed\na,0\n", "expected the columns model,seed,perturbation,.*found model,seed"),
        (",".join(flips.Flips._fields) + "\na,0,tilt,x,31,.1,.1,.1,.1\n", "line 2: expected a row of numbers"),
        (",".join(flips.Flips._fields) + "\na,0,tilt\n", "line 2: expected a row of numbers"),
    ],
)
def test_files_that_hold_no_flips_are_refused(tmp_path, content, message):
    (tmp_path / "flips.csv").write_text(content)
    with pytest.raises(ValueError, match=rf"flips\.csv.*{message}"):
        flips.read_flips(tmp_path)
    with pytest.raises(FileNotFoundError):
        flips.read_flips(tmp_path / "none.csv")


@pytest.mark.parametrize(
    "reference, message",
    [
        ([], "a reference of one model, found none"),
        ([row("rotate", 0.1, 1.0), row("rotate", 0.1, 1.0, seed=1)], "a reference of one model, found .*1"),
        ([row("tilt", 0.1, 1.0)], "of rotate in the reference, found none"),
        ([row("rotate", 0.1, 1.0, sequences=9)], "10 sequences of 31 frames of rotate .* found 9 of 31 frames"),
        ([row("rotate", 0.0, 1.0)], "whose answers change under rotate"),
    ],
)
def test_references_that_do_not_fit_are_refused(reference, message):
    with pytest.raises(ValueError, match=message):
        flips.rates([row("rotate", 0.1, 1.0)], reference)
