"""Results of a distance study: files of state, means over severities, correlations with error, two networks compared."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from analysis import figures
from analysis.distances.figures import scatter_panels
from analysis.distances.results import (
    Correlation,
    Distance,
    agreement,
    correlations,
    correlations_text,
    mean_distances,
    mean_errors,
    read_centres,
    read_distances,
    write_centres,
    write_correlations,
)
from runtime import artifacts
from tests.analysis.made_up import counted
from tests.refusing import refuses

ROWS = [
    Distance("standard", "imagenet_c/fog", 1, 0.1, 0.01, 0.2, math.nan),
    Distance("standard", "imagenet_c/fog", 2, 0.3, 0.01, 0.4, 0.02),
    Distance("augmix=rotate+equalize", "imagenet_c/fog", 1, 1.0, 0.1, 2.0, 0.2),
    Distance("augmix=rotate+equalize", "imagenet_c/fog", 2, 3.0, 0.1, 4.0, 0.2),
]
FILES = {  # content of a scheme's file of tools.msd: MSD and MMD [2, 1 + halves] by target
    "standard": {
        "imagenet_c/fog|1": [[0.1, 0.1, 0.3], [0.2, 0.2, 0.6]],
        "noc/hue|random": [[5.0, 5.0, 7.0], [6.0, 6.0, 8.0]],
    },
    "imagenet_c/fog": {"noc/border|0.25": [[7.0], [8.0]]},
}


def write_files(folder, **record):
    for scheme, arrays in FILES.items():
        arrays = {name: np.array(value) for name, value in arrays.items()}
        path = folder / "schemes" / f"{scheme.replace('/', '.')}.npz"
        artifacts.write(path, arrays, {"model": "a", "scheme": scheme} | record)


def test_distances_are_read_from_the_files_of_the_schemes(tmp_path):
    write_files(tmp_path)
    found = {row[:3]: row[3:] for row in read_distances(tmp_path)}
    assert found.keys() == {
        ("standard", "imagenet_c/fog", 1), ("standard", "noc/hue", "random"), ("imagenet_c/fog", "noc/border", 0.25)
    }  # fmt: skip
    assert found["standard", "imagenet_c/fog", 1] == pytest.approx((0.1, 0.2 / 2**0.5, 0.2, 0.4 / 2**0.5))
    assert found["imagenet_c/fog", "noc/border", 0.25] == pytest.approx((7.0, math.nan, 8.0, math.nan), nan_ok=True)


def test_files_that_hold_no_distances_are_refused(tmp_path):
    refuses(lambda: read_distances(tmp_path), "distances of tools.msd in", "none", kind=FileNotFoundError)
    write_files(tmp_path)
    artifacts.write(tmp_path / "schemes" / "other.npz", {}, {"model": "b", "scheme": "other"})
    refuses(lambda: read_distances(tmp_path), "others; give the command")
    write_files(tmp_path, scheme="")
    refuses(lambda: read_distances(tmp_path), "others")


def test_centres_are_read_back_by_name_and_severity(tmp_path):
    centres = {("imagenet_c/fog", 3): np.arange(4.0), ("noc/hue", "random"): np.ones(4), ("noc/hue", 0.5): np.zeros(4)}
    write_centres(tmp_path / "features.npz", centres)
    found = read_centres(tmp_path / "features.npz")
    assert found.keys() == centres.keys()
    for key, value in centres.items():
        np.testing.assert_array_equal(found[key], value)
    refuses(lambda: read_centres(tmp_path / "none.npz"), "no file", kind=FileNotFoundError)
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    refuses(lambda: read_centres(tmp_path / "broken.npz"), "cannot be read")
    for name, value, message in (
        ("noc/hue|1", np.ones((2, 3)), r"vectors of features, found 'noc/hue\|1' float64\[2, 3\]"),
        ("other", np.ones(3), r"called corruption\|severity, found 'other'"),
        ("noc/hue|much", np.ones(3), r"called corruption\|severity, found 'noc/hue\|much'"),
    ):
        artifacts.write(tmp_path / "other.npz", {name: value}, {})
        with pytest.raises(ValueError, match=message):
            read_centres(tmp_path / "other.npz")


def test_distances_and_errors_are_means_over_severities():
    means = mean_distances(ROWS)
    assert means["standard", "imagenet_c/fog"] == pytest.approx((0.2, 0.3))
    assert means["augmix=rotate+equalize", "imagenet_c/fog"] == pytest.approx((2, 3))
    counts = [
        counted("augmix", 0, "imagenet_c/fog", 1, 90, 100),
        counted("augmix", 0, "imagenet_c/fog", 2, 70, 100),
        counted("augmix", 1, "imagenet_c/fog", 1, 80, 100),
        counted("augmix", 1, "imagenet_c/fog", 2, 60, 100),
        counted("augmix", 0, "clean", 0, 99, 100),
    ]
    assert mean_errors(counts) == {("augmix", "imagenet_c/fog"): pytest.approx(25)}


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
    rows = [Distance(*key, 1, msd, math.nan, mmd, math.nan) for key, (msd, mmd) in distance.items()]
    said = write_correlations(tmp_path, rows, error, "made up")
    table = pd.read_csv(tmp_path / "correlations.csv")
    assert tuple(table.columns) == Correlation._fields and table.msd.tolist() == [row.msd for row in found]
    assert f"{found[0].msd:+.2f} (" in said and (tmp_path / "correlations_mmd.png").stat().st_size > 1000


def test_within_a_scheme_the_corruptions_are_correlated(tmp_path):
    names = [f"noc/{name}" for name in "abcdef"]
    rows = [
        Distance(scheme, name, 1, 1.0, math.nan, sign * k, math.nan)
        for scheme, sign in (("standard", 1), ("augmix", -1), ("augmix=rotate", 1))
        for k, name in enumerate(names)
    ]
    errors = {(row.scheme, row.corruption): 10.0 + names.index(row.corruption) for row in rows}
    said = write_correlations(tmp_path, rows, errors, "made up")
    table = pd.read_csv(tmp_path / "within_schemes.csv")
    assert list(zip(table.scheme, table.corruptions, table.mmd)) == [
        ("standard", 6, 1), ("augmix", 6, -1), ("augmix=rotate", 6, 1),
    ]  # fmt: skip
    assert table.msd.isna().all()  # the same for every corruption
    text = said.split("across corruptions\n")[1]
    assert "augmix " in text and "augmix=rotate" not in text and (tmp_path / "within_schemes.png").stat().st_size > 1000


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


SCHEMES = tuple(f"s{k}" for k in range(6))
CORRUPTIONS = ("imagenet_c/fog", "imagenet_c/frost", "imagenet_c/snow", "imagenet_c/contrast")


def made_up(seed, noise, scale=1.0):
    shared, own = np.random.default_rng(1), np.random.default_rng(seed)
    found = []
    for k, name in enumerate(CORRUPTIONS):
        for scheme in SCHEMES:
            for level in (1, 2):
                msd = scale * (k + shared.uniform(0, 2) + noise * own.uniform(0, 1) + 0.1 * level)
                found.append(Distance(scheme, name, level, msd, 0.01, own.uniform(1, 2), 0.01))
    return found


def means(found):
    return np.array([[np.mean([r.msd for r in found if r[:2] == (s, c)]) for s in SCHEMES] for c in CORRUPTIONS])


def test_correlations_are_those_of_the_mean_distances():
    first, second = made_up(2, 1.0), made_up(3, 1.0, scale=7.0)
    found = agreement(first, second[::-1], resamples=300)
    x, y = means(first), means(second)
    assert found.spearman == pytest.approx(scipy.stats.spearmanr(x.ravel(), y.ravel()).statistic)
    each = [scipy.stats.spearmanr(*both).statistic for both in zip(x, y)]
    assert list(found.by_corruption.values()) == pytest.approx(each) and found.ordering == pytest.approx(np.mean(each))
    assert found.interval[0] < found.spearman < found.interval[1] <= 1
    assert found.ordering_interval[0] <= found.ordering <= found.ordering_interval[1]
    assert agreement(first, [row._replace(msd=7 * row.msd) for row in second], resamples=300) == found
    assert agreement(first, [row._replace(msd=-row.msd) for row in first], "mmd").ordering == pytest.approx(1)
    # Ordering of schemes within a corruption is harder than telling corruptions apart.
    assert found.ordering < found.spearman < 0.99


def test_two_schemes_have_no_ordering():
    few = [row for row in made_up(2, 0.5) if row.scheme in SCHEMES[:2]]
    found = agreement(few, made_up(3, 0.5)[: len(SCHEMES) * 8])
    assert found.schemes == SCHEMES[:2] and np.isnan(found.ordering) and not np.isnan(found.spearman)


@pytest.mark.parametrize("brightness, impulse", [(0.27, 0.90), (0.08, 0.92)], ids=["WRN-40-2", "VGG-19"])
def test_correlations_are_printed_with_their_sign_and_number_of_schemes(brightness, impulse):
    """MSD and error with two networks' features: Mintun, Kirillov, Xie (2021), supplement, Table 1. A third value is
    made up, so that a minus is printed too.
    """
    rows = {"imagenet_c/brightness": brightness, "imagenet_c/impulse_noise": impulse, "imagenet_c/fog": -0.31}
    table = [Correlation(name, 512, value, *[math.nan] * 5) for name, value in rows.items()]
    printed = {line.split()[0]: line.split()[1:3] for line in correlations_text(table).splitlines()[2:]}
    assert printed == {name: ["512", f"{value:+.2f}"] for name, value in rows.items()}
