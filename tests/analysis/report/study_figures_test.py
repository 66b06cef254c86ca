"""Figures of a whole study: what is drawn is what was given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.cluster import hierarchy

from analysis import figures, heatmaps
from analysis.report import study_figures
from tests.analysis import published
from tests.analysis.published import IMAGENET_C

FIGURE3 = published.FIGURE3[:, :15]


def test_branches_join_at_the_mean_overlap_of_their_members():
    beside = study_figures.overlap(FIGURE3, IMAGENET_C).axes[0].child_axes[0]
    joints = sorted(line.get_xdata()[1] for line in beside.lines)
    distance = 1 - FIGURE3
    groups = {k: [k] for k in range(15)}
    for step, (a, b, height, _) in enumerate(heatmaps.cluster_tree(FIGURE3)):
        groups[15 + step] = groups[int(a)] + groups[int(b)]
        assert distance[np.ix_(groups[int(a)], groups[int(b)])].mean() == pytest.approx(height)
    expected = sorted(1 - height for height in heatmaps.cluster_tree(FIGURE3)[:, 2])
    np.testing.assert_allclose(joints, expected, atol=1e-12)
    leaves = sorted(y for line in beside.lines for x, y in zip(line.get_xdata(), line.get_ydata()) if x == 1)
    np.testing.assert_allclose(leaves, np.arange(15) + 0.5)


def test_rows_are_in_the_order_of_the_leaves():
    labels = [t.get_text() for t in study_figures.overlap(FIGURE3, IMAGENET_C).axes[0].get_yticklabels()]
    assert labels == [IMAGENET_C[k] for k in hierarchy.leaves_list(heatmaps.cluster_tree(FIGURE3))]


def test_two_corruptions_have_no_tree():
    assert not study_figures.overlap(FIGURE3[:2, :2], IMAGENET_C[:2]).axes[0].child_axes


def test_transfer_keeps_direction_and_sign():
    transfer = np.array([[1, -0.4, 0.2], [0.7, 1, np.nan], [2.5, 0.1, 1]])
    axes = study_figures.transfer(transfer, "abc", [2, 0, 1]).axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["c", "a", "b"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("trained with", "tested on")
    texts = {t.get_position(): t.get_text().replace("\N{MINUS SIGN}", "-") for t in axes.texts}
    assert texts[(2.5, 1.5)] == "-.40" and texts[(1.5, 2.5)] == ".70" and texts[(1.5, 0.5)] == "2.50"
    assert (0.5, 2.5) not in texts and sum(p.get_hatch() is not None for p in axes.patches) == 1
    image = axes.collections[0]
    red, _, blue = image.cmap(image.norm(-0.9))[:3]
    assert red > blue and image.get_clim() == (-1, 1)


def test_large_matrices_are_drawn_without_numbers():
    matrix = np.eye(31)
    assert not study_figures.overlap(matrix, [f"c{k}" for k in range(31)], se=matrix).axes[0].texts[:-1]


def test_stability_marks_members():
    axes = study_figures.stability([0.2, 1.0, 0.5], "abc", {"b"}).axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "c", "b"]
    assert [bar.get_width() for bar in axes.patches] == [20, 50, 100]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [
        c.lower() for c in (figures.BLUE, figures.BLUE, figures.ORANGE)
    ]


def test_strips_show_the_pictures_in_rows():
    pictures = np.arange(2 * 3 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 4, 3)
    axes = study_figures.sample_rows(pictures, "ab", [("1", "2")] * 2).axes
    assert [a.get_title() for a in axes] == ["clean", "1", "2"] * 2
    for one, picture in zip(axes, pictures.reshape(6, 4, 4, 3)):
        np.testing.assert_array_equal(one.images[0].get_array(), picture)


def test_impossible_inputs_are_refused():
    with pytest.raises(ValueError, match="one share for each of 2 names"):
        study_figures.stability([1], "ab", ())
    with pytest.raises(ValueError, match="at least one corruption"):
        study_figures.sample_rows([], (), ())
