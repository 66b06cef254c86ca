"""projects.structural.figures: the numbers of the draft's figures, and measured networks beside them."""

import numpy as np
import pytest

from analysis import references
from projects.structural import figures
from tests.tools.tables_test import workdir

SHEET = {  # name: clean error, mCE, relative mCE, CE of the three noises; the facts sheet of the draft, sections E and F
    "resnet50": (23.9, 76.7, 105.0, (79.8, 81.6, 82.6)),
    "msdnet": (24.6, 73.6, None, (74.3, 76.7, 78.3)),
    "multigrid34": (24.6, 73.3, None, (69.8, 71.0, 71.3)),
    "densenet121": (25.6, 73.4, 92.8, None),
    "densenet161": (22.9, 66.4, 84.6, None),
    "resnext50": (22.9, 68.2, 88.6, None),
    "resnext101_64x4d": (21.0, 62.2, 80.1, None),
}


def drawn(figure):
    """{(label, x, y)} of the points of a figure."""
    [axes] = figure.axes
    points = axes.collections
    return {(p.get_label(), *map(float, np.round(xy, 6))) for p in points for xy in p.get_offsets()}


@pytest.mark.parametrize("name", SHEET)
def test_the_numbers_of_the_figures_are_the_drafts(name):
    clean, mce, relative, noises = SHEET[name]
    found = figures.published()[name]
    assert (found.clean, found.means["CE"], found.means.get("relative_CE")) == (clean, mce, relative)
    assert tuple(found.noises.values()) == (noises or ())


def test_every_network_of_the_figures_has_a_point(tmp_path):
    theirs = figures.published()
    for stem in ("standard", "larger"):
        names = figures.FIGURES[stem]
        points = drawn(figures.against_error(names, theirs, {}))
        assert points == {
            (f"{said}, printed", theirs[name].clean, theirs[name].means[measure])
            for measure, said in figures.MEASURES.items()
            for name in names
        }
    [axes] = figures.noise_bars(figures.FIGURES["multi_scale"], theirs, {}).axes
    assert [[bar.get_height() for bar in of] for of in axes.containers] == [
        list(SHEET[name][3]) for name in figures.FIGURES["multi_scale"]
    ]
    written = figures.write(tmp_path)
    assert {path.name for path in written} == {f"{s}.{end}" for s in figures.FIGURES for end in ("png", "pdf")}
    assert all(path.stat().st_size > 5000 for path in written)


def evaluated(folder, name, clean, factor):
    """A network with `factor` times AlexNet's errors on ImageNet-C."""
    errors = {
        (f"imagenet_c/{of}", level): factor * references.ALEXNET_IMAGENET_C[of][level - 1]
        for of in references.IMAGENET_C
        for level in references.LEVELS
    }
    return workdir(folder / name, clean, errors)


def test_measured_networks_stand_beside_the_printed_ones(tmp_path):
    folders = [evaluated(tmp_path, "resnet50", 0.3, 0.8), evaluated(tmp_path, "msdnet", 0.25, 0.7)]
    ours = figures.measured(folders)
    assert ours["resnet50"].clean == pytest.approx(30, abs=0.1)
    assert ours["resnet50"].means["CE"] == pytest.approx(80, abs=0.1)
    lost = [np.mean(references.ALEXNET_IMAGENET_C[of]) for of in references.IMAGENET_C]
    relative = np.mean([(0.8 * of - 0.3) / (of - references.ALEXNET_IMAGENET_C_CLEAN) for of in lost])
    assert ours["resnet50"].means["relative_CE"] == pytest.approx(100 * relative, abs=0.5)
    theirs = figures.published()
    points = drawn(figures.against_error(figures.FIGURES["standard"], theirs, ours))
    crosses = {point[0]: point[1:] for point in points if point[0].endswith("ours")}
    assert crosses["mCE, ours"] == pytest.approx((30, 80), abs=0.1) and len(crosses) == 2
    [axes] = figures.noise_bars(figures.FIGURES["multi_scale"], theirs, ours).axes
    labels = [of.get_label() for of in axes.containers]
    assert labels == [
        "resnet50, printed", "resnet50, ours", "msdnet, printed", "msdnet, ours", "multigrid34, printed",
    ]  # fmt: skip
    assert [bar.get_height() for bar in axes.containers[3]] == pytest.approx([70] * 3, abs=0.1)


def test_folders_that_are_no_network_of_the_draft_are_told(tmp_path, capsys):
    other = evaluated(tmp_path, "mine", 0.3, 0.8)
    with pytest.raises(ValueError, match=r"expected folders called as networks of the draft, .*msdnet.*, found mine"):
        figures.write(tmp_path / "figures", [other])
    (tmp_path / "figures").mkdir()
    figures.write(tmp_path / "figures", [other, evaluated(tmp_path, "vgg19", 0.3, 0.8)])
    assert capsys.readouterr().out == "in no figure: mine\n"
    part = workdir(tmp_path / "resnet18", 0.3, {("imagenet_c/fog", 3): 0.5})
    with pytest.raises(
        ValueError, match=r"expected errors on clean images and all of imagenet_c at levels in .*resnet18"
    ):
        figures.measured([part])
