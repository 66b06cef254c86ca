"""Figures: values as they are, weak and undefined ones marked, files that are equal for equal figures."""

import io
import os
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.cluster import hierarchy

from analysis import figures
from analysis.figures import Panel, Part
from analysis.selection import algorithm
from tests.analysis import published
from tests.analysis.published import FIGURE3, IMAGENET_C, NOC
from tests.refusing import refuses

SVG = "{http://www.w3.org/2000/svg}"


def texts(axes):
    return [t.get_text() for t in axes.texts]


def labels(axes):
    return [t.get_text() for t in axes.get_yticklabels()]


def test_heatmap_prints_every_value_and_greys_the_diagonal():
    axes = figures.heatmap(FIGURE3, IMAGENET_C).axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == labels(axes) == list(IMAGENET_C)
    printed = np.array([float(t) for t in texts(axes)[:225]]).reshape(15, 15)
    np.testing.assert_array_equal(printed, FIGURE3)
    mesh = axes.collections[0].get_array().reshape(15, 15)
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh), np.eye(15, dtype=bool))
    assert to_hex(axes.get_facecolor()) == "#dddddd"


def test_heatmap_text_is_readable_on_every_colour():
    values = np.linspace(0, 1, 100).reshape(10, 10)
    axes = figures.heatmap(values, [str(i) for i in range(10)]).axes[0]
    mesh = axes.collections[0]
    rgb = mesh.cmap(mesh.norm(values))[..., :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    back = linear @ [0.2126, 0.7152, 0.0722]  # relative luminance of sRGB (WCAG)
    fore = np.array([0.0 if t.get_color() == "black" else 1.0 for t in axes.texts[:100]]).reshape(10, 10)
    contrast = (np.maximum(back, fore) + 0.05) / (np.minimum(back, fore) + 0.05)
    assert contrast[~np.eye(10, dtype=bool)].min() > 4.5


def test_heatmap_marks_flags_and_hatches_what_is_undefined():
    matrix = FIGURE3[:4, :4].copy()
    matrix[2] = matrix[:, 2] = np.nan
    flags = ("", "weak", "invalid", "")
    axes = figures.heatmap(matrix, "abcd", flags=flags, title="Title", provenance="rev 123", se=matrix / 10).axes[0]
    assert labels(axes) == ["a", "b *", "c !", "d"]
    hatched = sorted(p.get_xy() for p in axes.patches if p.get_hatch() is not None)
    assert hatched == [(0, 2), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2)]
    assert set(texts(axes)[-3:]) == {"rev 123", "* weak gain: unreliable", "! no gain: undefined"}
    assert axes.get_title(loc="left") == "Title"
    assert "1\n±.04" not in texts(axes) and not any("nan" in t for t in texts(axes))


def test_heatmap_hatches_what_is_hardly_known():
    se = np.full((4, 4), 0.1)
    se[0, 1] = se[1, 0] = 0.8
    axes = figures.heatmap(FIGURE3[:4, :4], "abcd", se=se).axes[0]
    hatched = [patch.get_xy() for patch in axes.patches if patch.get_hatch() is not None]
    assert sorted(hatched) == [(0, 1), (1, 0)]
    assert "hatched colour: standard error above 0.25" in texts(axes) and "1\n±.8" in texts(axes)


@pytest.mark.parametrize("scale", [figures.OVERLAP, figures.TRANSFER])
def test_a_pair_with_a_weak_gain_prints_no_number_and_has_no_colour(scale):
    """Either gain may be the weak one of an overlap; of a transfer it is the gain of the column."""
    directed = scale is figures.TRANSFER
    values, se = np.full((3, 3), 0.5), np.full((3, 3), 0.06)
    values[1], values[:, 1], se[1], se[:, 1] = 48.0, -48.0, 271.0, 271.0
    np.fill_diagonal(values, 1)
    flags = ("", "weak", "")
    axes = figures.heatmap(values, "abc", flags=flags, se=se, scale=scale).axes[0]
    printed = np.array(texts(axes)[:9]).reshape(3, 3)
    weak = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]] if directed else [[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
    np.testing.assert_array_equal(printed == "weak", weak)
    np.testing.assert_array_equal(figures.weak_pairs(flags, directed), weak)
    mask = np.ma.getmaskarray(axes.collections[0].get_array().reshape(3, 3))
    np.testing.assert_array_equal(mask, weak | np.eye(3, dtype=bool))
    assert printed[0, 2] == printed[2, 0] == ".50\n±.06"
    if not directed:
        assert not any("271" in text or "48" in text for text in texts(axes))
        np.testing.assert_array_equal(figures.cluster_tree(values, flags)[:, 2], [0.5, 1])


def test_clustering_brings_families_together():
    order = np.random.default_rng(0).permutation(15)
    names = [IMAGENET_C[i] for i in order]
    found = figures.cluster_order(FIGURE3[np.ix_(order, order)])
    assert sorted(found) == list(range(15))
    position = {names[i]: k for k, i in enumerate(found)}
    for family in (IMAGENET_C[:3], IMAGENET_C[3:7]):
        places = sorted(position[name] for name in family)
        assert places[-1] - places[0] == len(family) - 1, family
    axes = figures.heatmap(FIGURE3[np.ix_(order, order)], names, tree=True).axes[0]
    assert labels(axes) == [names[i] for i in found]
    printed = np.array([float(t) for t in texts(axes)[:225]]).reshape(15, 15)
    index = [IMAGENET_C.index(name) for name in labels(axes)]
    np.testing.assert_array_equal(printed, FIGURE3[np.ix_(index, index)])


def test_branches_join_at_the_mean_overlap_of_their_members_beside_their_rows():
    axes = figures.heatmap(FIGURE3, IMAGENET_C, tree=True).axes[0]
    tree, (beside,) = figures.cluster_tree(FIGURE3), axes.child_axes
    assert labels(axes) == [IMAGENET_C[k] for k in hierarchy.leaves_list(tree)]
    distance, groups = 1 - FIGURE3, {k: [k] for k in range(15)}
    for step, (a, b, height, _) in enumerate(tree):
        groups[15 + step] = groups[int(a)] + groups[int(b)]
        assert distance[np.ix_(groups[int(a)], groups[int(b)])].mean() == pytest.approx(height)
    np.testing.assert_allclose(sorted(line.get_xdata()[1] for line in beside.lines), sorted(1 - tree[:, 2]), atol=1e-12)
    leaves = sorted(y for line in beside.lines for x, y in zip(line.get_xdata(), line.get_ydata()) if x == 1)
    np.testing.assert_allclose(leaves, np.arange(15) + 0.5)
    assert not figures.heatmap(FIGURE3[:2, :2], IMAGENET_C[:2], tree=True).axes[0].child_axes


def test_transfer_keeps_direction_and_sign():
    transfer = np.array([[1, -0.4, 0.2], [0.7, 1, np.nan], [2.5, 0.1, 1]])
    axes = figures.heatmap(transfer, "abc", order=[2, 0, 1], scale=figures.TRANSFER).axes[0]
    assert labels(axes) == ["c", "a", "b"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("trained with", "tested on")
    printed = {t.get_position(): t.get_text().replace("\N{MINUS SIGN}", "-") for t in axes.texts}
    assert printed[(2.5, 1.5)] == "-.40" and printed[(1.5, 2.5)] == ".70" and printed[(1.5, 0.5)] == "2.50"
    assert (0.5, 2.5) not in printed and sum(p.get_hatch() is not None for p in axes.patches) == 1
    image = axes.collections[0]
    red, _, blue = image.cmap(image.norm(-0.9))[:3]
    assert red > blue and image.get_clim() == (-1, 1)


def test_large_matrices_are_drawn_without_numbers():
    assert not figures.heatmap(np.eye(31), [f"c{k}" for k in range(31)], se=np.eye(31)).axes[0].texts


def test_bars_are_sorted_and_members_marked():
    shares, percents = np.array([20, 100, np.nan, 50]), ("20 %", "100 %", "weak", "50 %")
    panels = [Panel("share", shares, percents, np.full(4, 5.0), limit=100), Panel("other", shares[::-1])]
    figure, order = figures.bars("abcd", panels, members={"b"}, provenance="p", notes=["a note"])
    first, second = figure.axes
    assert labels(first) == ["b", "d", "a", "c"] and list(order) == [1, 3, 0, 2]
    assert [bar.get_width() for bar in first.patches][:3] == [100, 50, 20]
    np.testing.assert_array_equal([bar.get_width() for bar in second.patches], shares[::-1][order])
    assert [to_hex(bar.get_facecolor()).upper() for bar in first.patches] == [figures.ORANGE, *[figures.BLUE] * 3]
    assert texts(first) == ["100 %", "50 %", "20 %", "weak", "p", "a note"] and first.get_xlim()[1] == 100


def test_sweep_shows_sizes_and_means_of_its_selections_or_others():
    swept = algorithm.sweep(FIGURE3, IMAGENET_C, sorted(published.ALGORITHM1))
    upper, lower = figures.threshold_sweep(swept, mark=0.1).axes
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), [v[0] for _, v in sorted(published.ALGORITHM1.items())])
    expected = [v[3] for _, v in sorted(published.ALGORITHM1.items())]
    np.testing.assert_allclose(lower.lines[0].get_ydata(), expected, atol=0.0005)
    assert [list(axes.lines[1].get_xdata()) for axes in (upper, lower)] == [[0.1, 0.1]] * 2
    unknown = figures.threshold_sweep(swept, means=np.full(len(swept), np.nan)).axes[1]
    assert texts(unknown) == ["weak"]


def test_parts_of_an_svg_lie_over_what_they_name():
    first, second = (figures.heatmap(FIGURE3[:3, :3], ("a", "<b>", "c"), tree=True) for _ in range(2))
    parts = [Part(x, y, 1, 1, f"{y} <{x}>") for y in range(3) for x in range(3)]
    text = figures.svg(first, parts)
    root = ElementTree.fromstring(text)
    rectangles = list(root.iter(f"{SVG}rect"))[-9:]
    assert [r.find(f"{SVG}title").text for r in rectangles] == [part.title for part in parts]
    assert [r.attrib["tabindex"] for r in rectangles] == ["0", *["-1"] * 8]
    mesh = next(g for g in root.iter(f"{SVG}g") if g.attrib.get("id", "").startswith("QuadMesh"))
    for path, rectangle in zip(mesh.iter(f"{SVG}path"), rectangles, strict=True):
        numbers = np.array([float(n) for n in path.attrib["d"].split() if n not in "MLz"]).reshape(-1, 2)
        x, y, width, height = (float(rectangle.attrib[key]) for key in ("x", "y", "width", "height"))
        np.testing.assert_allclose([*numbers.min(0), *np.ptp(numbers, 0)], [x, y, width, height], atol=0.02)
    assert "&lt;b&gt;" in text and figures.svg(second, parts) == text


def test_files_are_real_pictures_and_reproducible(tmp_path):
    for folder in ("one", "two"):
        figure = figures.heatmap(np.eye(8), NOC, flags=("weak",) * 8, provenance="a line")
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
    refuses(
        lambda: figures.save(figures.bars("ab", [Panel("mCE", [1, 2])])[0], tmp_path / "f", formats=("png",)),
        "no space",
        kind=OSError,
    )
    assert (tmp_path / "f.png").read_bytes() == b"old"


def test_large_matrices_have_one_path_for_each_colour_and_every_cell_in_its_place(tmp_path):
    number = 40
    values = np.random.default_rng(0).uniform(size=(number, number))
    values[3] = values[:, 3] = np.nan
    figure = figures.heatmap(values, [f"c{k}" for k in range(number)], se=np.full((number, number), 0.5))
    axes = figure.axes[0]
    drawn = axes.collections[0]
    assert len(drawn.get_paths()) <= 256
    off = ~np.eye(number, dtype=bool) & ~np.isnan(values)
    wanted = drawn.cmap(drawn.norm(values))
    colours = np.full((number, number, 4), np.nan)
    for path, value in zip(drawn.get_paths(), drawn.get_array(), strict=True):
        for square in path.vertices.reshape(-1, 5, 2):
            column, row = square.min(0).astype(int)
            colours[row, column] = drawn.cmap(drawn.norm(value))
    np.testing.assert_array_equal(~np.isnan(colours[..., 0]), off)
    np.testing.assert_allclose(colours[off], wanted[off])
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == 2  # what is undefined, what is hardly known
    assert [len(patch.get_path().vertices) // 5 for patch in hatched] == [2 * (number - 1), off.sum()]
    assert len(figures.svg(figure)) < 600_000
