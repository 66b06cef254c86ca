"""Distances and errors over severities, their correlation across schemes, and its figure."""

import math

import numpy as np
import pytest
import scipy.stats

from analysis import figures
from analysis.distances.by_scheme import correlations, mean_distances, mean_errors
from analysis.distances.figures import scatter_panels
from analysis.distances.files import Distance, write_correlations
from analysis.tables import Count

ROWS = [
    Distance("standard", "imagenet_c/fog", 1, 0.1, 0.01, 0.2, math.nan),
    Distance("standard", "imagenet_c/fog", 2, 0.3, 0.01, 0.4, 0.02),
    Distance("augmix=rotate+equalize", "imagenet_c/fog", 1, 1.0, 0.1, 2.0, 0.2),
    Distance("augmix=rotate+equalize", "imagenet_c/fog", 2, 3.0, 0.1, 4.0, 0.2),
]


def test_distances_and_errors_are_means_over_severities():
    means = mean_distances(ROWS)
    assert means["standard", "imagenet_c/fog"] == pytest.approx((0.2, 0.3))
    assert means["augmix=rotate+equalize", "imagenet_c/fog"] == pytest.approx((2, 3))
    counts = [
        Count("augmix", 0, "imagenet_c/fog", 1, 90, 100),
        Count("augmix", 0, "imagenet_c/fog", 2, 70, 100),
        Count("augmix", 1, "imagenet_c/fog", 1, 80, 100),
        Count("augmix", 1, "imagenet_c/fog", 2, 60, 100),
        Count("augmix", 0, "clean", 0, 99, 100),
    ]
    assert mean_errors(counts) == {("augmix", "imagenet_c/fog"): pytest.approx(25)}


def test_schemes_measured_at_other_severities_are_refused():
    rows = [*ROWS, Distance("augmix", "imagenet_c/fog", 1, 1, 0, 1, 0)]
    with pytest.raises(ValueError, match=r"\['1', '2'\] for standard and \['1'\] for augmix"):
        mean_distances(rows)


@pytest.fixture
def study():
    rng = np.random.default_rng(0)
    schemes, corruptions = [f"s{k}" for k in range(12)], ("imagenet_c/fog", "imagenet_c/frost", "noc/hue")
    error = {(s, c): float(rng.uniform(5, 50)) for s in schemes for c in corruptions}
    distance = {key: (value / 20 + rng.uniform(0, 0.6), float(rng.uniform(1, 3))) for key, value in error.items()}
    for k in range(10):
        del error[f"s{k}", "noc/hue"]  # two are left
    return distance, error


def test_correlations_are_spearmans_across_schemes(study, tmp_path):
    distance, error = study
    found = correlations(distance, error, resamples=200)
    assert [row.corruption for row in found] == ["imagenet_c/fog", "imagenet_c/frost"]
    for row in found:
        keys = [(f"s{k}", row.corruption) for k in range(12)]
        for k, name in enumerate(("msd", "mmd")):
            x, y = [distance[key][k] for key in keys], [error[key] for key in keys]
            rho = getattr(row, name)
            assert rho == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
            assert getattr(row, f"{name}_lower") < rho < getattr(row, f"{name}_upper")
        assert row.schemes == 12 and row.msd > 0.8 > row.mmd
    write_correlations(tmp_path / "correlations.csv", found)
    header, first, _ = (tmp_path / "correlations.csv").read_text().splitlines()
    assert header == "corruption,schemes,msd,msd_lower,msd_upper,mmd,mmd_lower,mmd_upper"
    assert first.startswith(f"imagenet_c/fog,12,{found[0].msd!r},")


def test_errors_of_other_schemes_are_refused(study):
    distance, _ = study
    with pytest.raises(ValueError, match=r"errors of at least 3 of the schemes .* found errors of \['x'\]"):
        correlations(distance, {("x", "imagenet_c/fog"): 3.0})


def test_the_figure_shows_every_scheme_in_every_panel(study, tmp_path):
    distance, error = study
    msd = {key: value[0] for key, value in distance.items()}
    rho = {"imagenet_c/fog": 0.876, "imagenet_c/frost": math.nan}
    figure = scatter_panels(msd, error, rho, title="Title", provenance="revision abc")
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in panels] == [r"fog   $\rho$ = 0.88", r"frost   $\rho$ = undefined"]
    for axes, name in zip(panels, rho):
        shown = sorted(tuple(points.get_offsets()[0]) for points in axes.collections)
        assert shown == sorted((msd[f"s{k}", name], error[f"s{k}", name]) for k in range(12))
        looks = {(tuple(p.get_facecolor()[0]), p.get_paths()[0].vertices.tobytes()) for p in axes.collections}
        assert len(looks) == 12
    assert [axes.get_xlabel() for axes in panels] == ["MSD", "MSD"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"s{k}" for k in range(12)]
    assert "Title\nrevision abc" in figure.get_suptitle()
    assert all(path.stat().st_size > 1000 for path in figures.save(figure, tmp_path / "correlations"))


def test_many_schemes_are_one_cloud_without_legend():
    keys = [(f"s{k}", "noc/hue") for k in range(512)]
    figure = scatter_panels({key: 1.0 for key in keys}, {key: 2.0 for key in keys}, {"noc/hue": 0.5})
    (points,) = figure.axes[0].collections
    assert len(points.get_offsets()) == 512 and not figure.legends
    with pytest.raises(ValueError, match="at least one corruption"):
        scatter_panels({}, {}, {})
