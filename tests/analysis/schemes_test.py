"""Tables and figures of a scheme study: by their definition, from made-up counts."""

import math

import numpy as np
import pandas as pd
import pytest

from analysis import schemes
from analysis.distances import figures
from analysis.errors.summary import Summary
from runtime import artifacts, workdirs
from tests.analysis.made_up import counted

SCHEMES = ("standard", "augmix", "augmix=rotate", "patch_gaussian")
ERRORS = {"standard": 40, "augmix": 20, "augmix=rotate": 30, "patch_gaussian": 25}  # percent, at level 1 with seed 0
FOG = "imagenet_c/fog"


def summaries(names=SCHEMES):
    """One benchmark, its gap, and clean images; other measures, which the tables leave out."""
    found = []
    for k, name in enumerate(names):
        found += [
            Summary(name, "clean", "none", "mean_error", 5.0 + k, 0.3, 0.1 * k, 2, "none", "none", "none"),
            Summary(name, "imagenet_c", "levels", "mean_error", 40.0 - k, 0.4, 0.2, 2, "none", "none", "procedural"),
            Summary(name, "imagenet_c", "levels", "mCE", math.nan, math.nan, math.nan, 2, "none", "none", "procedural"),
            Summary(name, "cifar10_c_bar", "levels", "gap", 4.0, 0.5, 0.6, 2, "none", "none", "none"),
        ]
    return found


def counts():
    """Each scheme's error in percent under fog at levels 1 and 2, larger by 2 at the second and by 4 with the second
    seed.
    """
    found = []
    for name, first in ERRORS.items():
        for seed in (0, 1):
            found.append(counted(name, seed, "clean", 0, 900, 1000))
            for level in (1, 2):
                wrong = first + 2 * (level - 1) + 4 * seed
                found.append(counted(name, seed, FOG, level, 100 - wrong, 100))
    return found


def test_a_row_for_each_scheme_in_the_order_asked_for():
    found = schemes.errors(summaries(), ("augmix", "standard", "gone"))
    table = schemes.wide(found)
    assert list(table.scheme) == ["augmix", "standard"] and list(table.seeds) == [2, 2]
    assert list(found.column.unique()) == ["clean", "imagenet_c", "gap_cifar10_c_bar"]
    assert tuple(table.loc[0, ["imagenet_c", "imagenet_c_se", "imagenet_c_std"]]) == (39.0, 0.4, 0.2)
    shown = schemes.text(found)
    assert "5.0 ± 0.0" not in shown and "4.0\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.6" in shown


def test_of_many_schemes_the_best_and_the_worst_are_printed():
    names = [f"scheme{k}" for k in range(40)]
    shown = schemes.text(schemes.errors(summaries(names), names))
    printed = [line.split()[0] for line in shown.splitlines()[1:-2]]
    # The error falls with the number.
    assert printed == [f"scheme{k}" for k in (*range(39, 19, -1), *range(4, -1, -1))]
    assert shown.endswith("(20 of least and 5 of largest error in imagenet_c, of 40)")


def test_the_figure_shows_each_schemes_errors_with_their_standard_error_over_seeds():
    rows = schemes.errors(summaries(), SCHEMES)
    clean, benchmark = figures.scheme_panels(rows).axes
    assert [label.get_text() for label in clean.get_yticklabels()] == list(SCHEMES)  # the error falls with the number
    points, _, (bars,) = benchmark.containers[0].lines
    assert points.get_xdata().tolist() == [40.0, 39.0, 38.0, 37.0]
    (left, _), (right, _) = bars.get_segments()[0]
    assert (right - left) / 2 == pytest.approx(0.2 / math.sqrt(2))


def test_schemes_without_the_last_benchmark_stand_last_in_the_figure():
    errors = {"low": 1.0, "without": None, "high": 3.0, "none": None, "middle": 2.0}
    rows = [
        (name, 1, column, error, 0.1, math.nan)
        for name, on_benchmark in errors.items()
        for column, error in (("clean", 5.0), ("imagenet_c", on_benchmark))
        if error
    ]
    frame = pd.DataFrame(rows, columns=["scheme", "seeds", "column", "error", "error_se", "error_std"])
    labels = figures.scheme_panels(frame).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["high", "middle", "low", "without", "none"]


def test_errors_on_a_corruption_are_averaged_over_levels_and_then_seeds():
    found = list(schemes.by_corruption(counts(), ("augmix", "standard")).itertuples(index=False))
    assert [row[:4] for row in found] == [("standard", FOG, 2, 2), ("augmix", FOG, 2, 2)]
    # Seeds: (20 + 22) / 2 and (24 + 26) / 2.
    assert found[1].error == pytest.approx(23) and found[1].error_std == pytest.approx(np.sqrt(8))
    shown = [(FOG, "random"), ("natural/imagenet_r", 0), ("clean/imagenet_r", 0), ("noc/hue", "random")]
    more = [counted("augmix", seed, *cell, 10, 100) for seed in (0, 1) for cell in shown]
    hue, fog = schemes.by_corruption([*more, *counts()], ("augmix",)).itertuples(index=False)
    assert fog == found[1] and hue[:5] == ("augmix", "noc/hue", 1, 2, 90)


def test_stored_transforms_are_told_by_kind_and_number():
    names = ["augmix", *(f"stored={kind}_{k}@0123456789ab" for kind in ("random", "closest") for k in (100, 10))]
    rows = schemes.errors(summaries(names), names)
    found = schemes.transforms(rows)
    clean = found[found.column == "clean"]
    assert list(zip(clean.kind, clean.transforms, clean.seeds)) == [
        ("closest", 10, 2), ("closest", 100, 2), ("random", 10, 2), ("random", 100, 2)
    ]  # fmt: skip
    assert set(found.column) == {"clean", "imagenet_c"}
    (axes,) = figures.transform_panels(found, rows).axes
    lines = {line.get_label(): line for line in axes.lines}
    assert axes.get_xscale() == "log" and set(lines["augmix"].get_ydata()) == {40.0}
    drawn = {c.get_label(): c.lines[0].get_xydata().tolist() for c in axes.containers}
    assert drawn == {"closest": [[10, 36], [100, 37]], "random": [[10, 38], [100, 39]]}
    (lower, upper), *_ = axes.containers[0].lines[2][0].get_segments()
    assert (upper - lower)[1] / 2 == pytest.approx(0.2 / math.sqrt(2))


def test_error_is_correlated_with_the_distances_that_are_there(tmp_path):
    measured = tmp_path / "msd"

    def write(distances):
        for name, (msd, mmd) in distances.items():
            # A level without errors does not count: there the distances are in another order.
            arrays = {f"{FOG}|2": np.array([[msd], [mmd]]), f"{FOG}|4": np.array([[-9 * msd], [-9 * mmd]])}
            artifacts.write(measured / "schemes" / f"{name}.npz", arrays, {"scheme": name, "model": "of augmix"})

    trained = tmp_path / "models" / "augmix" / "seed0"
    trained.mkdir(parents=True)
    workdirs.write_final(trained, step=1, digest="of augmix", num_classes=10)

    said = schemes.write_results(tmp_path, summaries(), counts(), SCHEMES, measured, "made up")
    assert "no distances yet" in said and not (tmp_path / "correlations.csv").exists()
    assert pd.read_csv(tmp_path / "schemes.csv").imagenet_c.tolist() == [40.0, 39.0, 38.0, 37.0]
    assert (tmp_path / "scheme_errors.png").stat().st_size > 1000
    # MSD in the order of the errors, MMD against it; the second level of another corruption is not measured.
    order = sorted(ERRORS, key=ERRORS.get)
    distances = {name: (1.0 + k, 9.0 - k) for k, name in enumerate(order)}
    write(dict(list(distances.items())[:2]))
    said = schemes.write_results(tmp_path, summaries(), counts(), SCHEMES, measured, "made up")
    assert "expected at least 3 schemes with both under the same severities, found 2" in said
    write(distances)
    schemes.write_results(tmp_path, summaries(), counts(), SCHEMES, measured, "made up")
    (found,) = pd.read_csv(tmp_path / "correlations.csv").itertuples(index=False)
    assert (found.corruption, found.schemes) == (FOG, 4) and (found.msd, found.mmd) == (1, -1)
    for name in ("correlations.png", "correlations_mmd.png"):
        assert (tmp_path / name).stat().st_size > 1000
    workdirs.write_final(trained, step=1, digest="of another", num_classes=10)
    said = schemes.write_results(tmp_path, summaries(), counts(), SCHEMES, measured, "made up")
    assert "measured in an earlier model" in said and not (tmp_path / "correlations.csv").exists()


def test_a_figure_of_many_schemes_is_not_drawn(tmp_path):
    names = [f"scheme{k}" for k in range(61)]
    schemes.write_results(tmp_path, summaries(names), [], names, tmp_path / "msd", "made up")
    assert (tmp_path / "schemes.csv").exists() and not (tmp_path / "scheme_errors.png").exists()
