"""Figures: the text and colours that are drawn, and the files."""

import io
import os

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_hex

from analysis import figures, heatmaps
from analysis.selection import algorithm
from tests.analysis import published
from tests.analysis.published import IMAGENET_C, NOC

FIGURE3 = published.FIGURE3[:, :15]


def texts(axes):
    return [t.get_text() for t in axes.texts]


def luminance(rgba):
    """Relative luminance of sRGB (WCAG)."""
    rgb = np.asarray(rgba)[..., :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_heatmap_prints_every_value_and_greys_the_diagonal():
    axes = heatmaps.heatmap(FIGURE3, IMAGENET_C).axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == list(IMAGENET_C)
    assert [t.get_text() for t in axes.get_yticklabels()] == list(IMAGENET_C)
    printed = np.array([float(t) for t in texts(axes)[:225]]).reshape(15, 15)
    np.testing.assert_array_equal(printed, FIGURE3)
    mesh = axes.collections[0].get_array().reshape(15, 15)
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh), np.eye(15, dtype=bool))
    assert to_hex(axes.get_facecolor()) == "#dddddd"


def test_heatmap_text_is_readable_on_every_colour():
    values = np.linspace(0, 1, 100).reshape(10, 10)
    figure = heatmaps.heatmap(values, [str(i) for i in range(10)])
    axes = figure.axes[0]
    mesh = axes.collections[0]
    back = luminance(mesh.cmap(mesh.norm(values)))
    fore = np.array([0.0 if t.get_color() == "black" else 1.0 for t in axes.texts[:100]]).reshape(10, 10)
    contrast = (np.maximum(back, fore) + 0.05) / (np.minimum(back, fore) + 0.05)
    assert contrast[~np.eye(10, dtype=bool)].min() > 4.5


def test_heatmap_marks_flags_and_hatches_what_is_undefined():
    matrix = FIGURE3[:4, :4].copy()
    matrix[2] = matrix[:, 2] = np.nan
    figure = heatmaps.heatmap(
        matrix, "abcd", flags=("", "weak", "invalid", ""), title="Title", provenance="rev 123, seed 0", se=matrix / 10
    )
    axes = figure.axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["a", "b *", "c !", "d"]
    hatched = sorted(p.get_xy() for p in axes.patches if p.get_hatch() is not None)
    undefined, weak = [(0, 2), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2)], [(0, 1), (1, 0), (1, 3), (3, 1)]
    assert hatched == sorted(undefined + weak)
    notes = texts(axes)[-4:]
    why = "hatched colour: weak gain, or standard error above 0.25"
    assert {"rev 123, seed 0", why, "* weak gain: unreliable", "! no gain: undefined"} == set(notes)
    assert axes.get_title(loc="left") == "Title"
    assert "1\n±.04" not in texts(axes) and not any("nan" in t for t in texts(axes))


def test_heatmap_hatches_what_is_hardly_known():
    se = np.full((4, 4), 0.1)
    se[0, 1] = se[1, 0] = 0.8
    axes = heatmaps.heatmap(FIGURE3[:4, :4], "abcd", se=se).axes[0]
    hatched = [patch.get_xy() for patch in axes.patches if patch.get_hatch() is not None]
    assert sorted(hatched) == [(0, 1), (1, 0)]
    assert "hatched colour: weak gain, or standard error above 0.25" in texts(axes) and "1\n±.8" in texts(axes)


@pytest.mark.parametrize("directed", [False, True])
def test_a_pair_with_a_weak_gain_prints_no_number(directed):
    """Of an overlap either gain may be weak, of a transfer that of the column."""
    values, se = np.full((3, 3), 0.5), np.full((3, 3), 0.06)
    values[1], values[:, 1], se[1], se[:, 1] = 48.0, -48.0, 271.0, 271.0
    np.fill_diagonal(values, 1)
    flags = ("", "weak", "")
    axes = heatmaps.heatmap(values, "abc", flags=flags, se=se, directed=directed, scale=heatmaps.TRANSFER).axes[0]
    printed = np.array(texts(axes)[:9]).reshape(3, 3)
    weak = [[0, 1, 0], [0, 0, 0], [0, 1, 0]] if directed else [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(printed == "weak", weak)
    np.testing.assert_array_equal(heatmaps.weak_pairs(flags, directed), weak)
    assert printed[0, 2] == printed[2, 0] == ".50\n±.06"
    if not directed:
        assert not any("271" in text or "48" in text for text in texts(axes))


def test_clustering_brings_families_together():
    order = np.random.default_rng(0).permutation(15)
    names = [IMAGENET_C[i] for i in order]
    found = heatmaps.cluster_order(FIGURE3[np.ix_(order, order)])
    assert sorted(found) == list(range(15))
    position = {names[i]: k for k, i in enumerate(found)}
    for family in (IMAGENET_C[:3], IMAGENET_C[3:7]):
        places = sorted(position[name] for name in family)
        assert places[-1] - places[0] == len(family) - 1, family
    axes = heatmaps.heatmap(FIGURE3[np.ix_(order, order)], names, cluster=True).axes[0]
    shown = [t.get_text() for t in axes.get_xticklabels()]
    assert shown == [names[i] for i in found]
    printed = np.array([float(t) for t in texts(axes)[:225]]).reshape(15, 15)
    index = [IMAGENET_C.index(name) for name in shown]
    np.testing.assert_array_equal(printed, FIGURE3[np.ix_(index, index)])


def test_balance_bars_show_the_published_spread():
    axes = figures.balance_bars(published.TABLE2A, IMAGENET_C, provenance="p").axes[0]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == sorted(published.TABLE2A, reverse=True)
    assert axes.get_xticklabels()[0].get_text() == "jpeg_compression"
    assert "mean 76, std 12.1, range 40" in texts(axes)


def test_sweep_shows_sizes_and_means():
    swept = algorithm.sweep(FIGURE3, IMAGENET_C, sorted(published.ALGORITHM1))
    left, right = figures.threshold_sweep(swept).axes
    np.testing.assert_array_equal(left.lines[0].get_ydata(), [v[0] for _, v in sorted(published.ALGORITHM1.items())])
    expected = [v[3] for _, v in sorted(published.ALGORITHM1.items())]
    np.testing.assert_allclose(right.lines[0].get_ydata(), expected, atol=0.0005)


def test_files_are_real_pictures_and_reproducible(tmp_path):
    for folder in ("one", "two"):
        figure = heatmaps.heatmap(np.eye(8), NOC, flags=("weak",) * 8, provenance="a line")
        paths = figures.save(figure, tmp_path / folder / "overlap")
        assert [p.name for p in paths] == ["overlap.png", "overlap.pdf"]
    picture = matplotlib.image.imread(io.BytesIO((tmp_path / "one" / "overlap.png").read_bytes()))
    assert min(picture.shape[:2]) > 600
    assert picture[..., :3].std() > 0.05
    assert (tmp_path / "one" / "overlap.pdf").read_bytes().startswith(b"%PDF-")
    for name in ("overlap.png", "overlap.pdf"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == ["overlap.pdf", "overlap.png"]


def test_a_crash_keeps_the_old_picture(tmp_path, monkeypatch):
    (tmp_path / "f.png").write_bytes(b"old")

    def crash(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="no space"):
        figures.save(figures.balance_bars([1, 2], "ab"), tmp_path / "f", formats=("png",))
    assert (tmp_path / "f.png").read_bytes() == b"old"


def test_impossible_inputs_are_refused():
    with pytest.raises(ValueError, match="matrix of 2 names"):
        heatmaps.heatmap(np.eye(3), "ab")
    with pytest.raises(ValueError, match="2 flags"):
        heatmaps.heatmap(np.eye(2), "ab", flags=("", "odd"))
    with pytest.raises(ValueError, match="one value for each of 2 names"):
        figures.balance_bars([1], "ab")
    with pytest.raises(ValueError, match="at least one selection"):
        figures.threshold_sweep([])
