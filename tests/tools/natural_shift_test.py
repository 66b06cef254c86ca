"""tools.natural_shift on tables made up here: what it prints, writes and refuses."""

import csv
import functools
import json
import types
from unittest import mock

import numpy as np
import pytest
from absl import flags

from analysis.lines import read_lines
from analysis.natural_shift import figures
from analysis.overlap.files import write_overlap
from tests.analysis.natural_shift.tables import made_up
from tools import natural_shift


def given(**values):
    """Flags of the command, apart from those of other commands."""
    own = flags.FlagValues()
    names = [name for name in dir(flags) if name.startswith("DEFINE_")]
    define = {name: functools.partial(getattr(flags, name), flag_values=own) for name in names}
    with mock.patch.object(natural_shift, "flags", types.SimpleNamespace(**define)):
        natural_shift.define_flags()
    own(["tools.natural_shift", *(f"--{name}={value}" for name, value in values.items())])
    return own


@pytest.fixture
def testbed(tmp_path):
    """The table as the testbed's file, and its types."""
    table = made_up()
    columns = {"val": table.clean, "imagenet-r": table.natural["imagenet_r"].accuracy}
    columns["val-on-imagenet-r-classes"] = table.natural["imagenet_r"].clean
    columns["imagenetv2-matched-frequency-format-val"] = table.natural["imagenet_v2"].accuracy
    for name, values in table.synthetic.items():
        short = name.removeprefix("imagenet_c/")
        columns |= {f"imagenet-c.{short}.{severity}_on-disk": values for severity in range(1, 6)}
    with open(tmp_path / "top1.csv", "w", newline="") as file:
        csv.writer(file).writerows([["model", *columns], *zip(table.models, *columns.values())])
    with open(tmp_path / "types.csv", "w", newline="") as file:
        kinds = ["standard" if standard else "robust_intv" for standard in table.standard]
        csv.writer(file).writerows([["model", "type"], *zip(table.models, kinds)])
    return tmp_path


def test_everything_is_printed_and_written(testbed, capsys):
    out = testbed / "out"
    _, found = natural_shift.run(
        given(testbed=testbed / "top1.csv", types=testbed / "types.csv", out=out, resamples=20, published_units=True)
    )
    assert (found.models, found.standard, found.shown, len(found.corruptions)) == (24, 12, 12, 30)
    printed = capsys.readouterr().out
    assert "| ImageNet-R | 0.6000 | \N{MINUS SIGN}2.0000 | 1.000 | 12 | 0 |" in printed
    assert "drop r, clean as a fraction" in printed and "an error of the published code" in printed
    assert "| 3 | snow, frost, fog, brightness, contrast |" in printed
    assert printed.startswith("top1.csv, ImageNet-C on-disk: 24 models, 24 with every accuracy")
    written = (out / "natural_shift.md").read_text()
    assert printed.split("\nwritten to")[0].strip() in written and "Command: `" in written
    content = json.loads((out / "natural_shift.json").read_text())
    assert content["benchmark"][0]["drop"] == pytest.approx(list(found.benchmark[0].drop))
    assert set(content["inputs"]) == {str(testbed / "top1.csv"), str(testbed / "types.csv")}
    assert content["lines"]["imagenet_r"][0]["slope"] == pytest.approx(0.6)
    rows = [row for _, row in read_lines(out / "predictions.csv")]
    assert rows[0] == ["benchmark", "shift", "measure", "value", "low", "high", "models"]
    units = [row for row in rows if row[2] == "published_units"]
    assert len(units) == 32 and float(units[0][3]) == found.benchmark[0].published_units.value
    bins = [row for _, row in read_lines(out / "benchmarks.csv")]
    assert len(bins) == 1 + 3 * len(found.bins)


def test_figures_show_every_shift_and_every_line(testbed):
    table, found = natural_shift.run(
        given(testbed=testbed / "top1.csv", types=testbed / "types.csv", out=testbed / "out", resamples=5)
    )
    accuracies, drops = figures.accuracy_panels(table, found), figures.drop_panels(table, found)
    assert [axes.get_title() for axes in accuracies.axes] == ["ImageNet-V2", "ImageNet-R"]
    line = accuracies.axes[1].get_lines()[0]  # its ends lie on the line of the standard models
    np.testing.assert_allclose(line.get_ydata(), 0.6 * np.array(line.get_xdata()) - 2, atol=1e-6)
    assert [len(points.get_offsets()) for points in accuracies.axes[0].collections] == [12, 12]
    assert drops.axes[0].get_title().endswith(f"= {found.benchmark[0].drop.value:.2f}")
    panel = figures.benchmark_panel(found).axes[0]
    assert len([drawn for drawn in panel.get_lines() if drawn.get_marker() == "o"]) == len(found.bins)


def test_the_published_codes_units_are_left_out_unless_asked_for(testbed, capsys):
    natural_shift.run(given(testbed=testbed / "top1.csv", out=testbed / "out", resamples=5))
    assert "fraction" not in capsys.readouterr().out
    assert "published_units" not in (testbed / "out" / "predictions.csv").read_text()


def test_without_types_it_says_why_there_is_no_effective_robustness(testbed, capsys):
    natural_shift.run(given(testbed=testbed / "top1.csv", out=testbed / "out", resamples=5, shifts="imagenet_r"))
    printed = capsys.readouterr().out
    assert "No effective robustness: it takes a line through standard models, found 0" in printed
    assert "ImageNet-V2" not in printed


def test_categories_of_other_corruptions_come_from_a_measured_overlap(testbed):
    names = ["imagenet_c/fog", "imagenet_c/contrast", "imagenet_c/snow", "imagenet_c/frost"]
    overlap = np.kron(np.eye(2), np.ones((2, 2))) * 0.9 + 0.1 * np.eye(4)
    write_overlap(testbed / "overlap.csv", names, overlap)
    options = {"testbed": testbed / "top1.csv", "out": testbed / "out", "resamples": 5}
    _, found = natural_shift.run(given(**options, benchmark=",".join(names), overlap=testbed / "overlap.csv"))
    assert found.categories == (tuple(names[:2]), tuple(names[2:]))
    assert {(row.categories, row.per_category) for row in found.bins} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert natural_shift.run(given(**options, benchmark=",".join(names)))[1].bins == ()
    with pytest.raises(
        ValueError, match="expected the benchmark's corruptions, found none of imagenet_c/gaussian_noise"
    ):
        natural_shift.run(given(**options, overlap=testbed / "overlap.csv"))


def test_a_table_without_corruptions_compares_clean_accuracy_alone(tmp_path, capsys):
    table = made_up()
    files = {"imagenet": table.clean, "imagenetv2-matched-frequency": table.natural["imagenet_v2"].accuracy}
    for name, values in files.items():
        lines = [f"{model},224,{value}" for model, value in zip(table.models, values)]
        (tmp_path / f"results-{name}.csv").write_text("\n".join(["model,img_size,top1", *lines]))
    _, found = natural_shift.run(given(timm=tmp_path, out=tmp_path / "out", resamples=5))
    assert found.benchmark == [] and len(found.from_clean) == 1
    assert "only clean accuracy is compared" in capsys.readouterr().out


def test_one_source_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match="one of --testbed, --timm and --counts, found none"):
        natural_shift.run(given(out=tmp_path))
    with pytest.raises(ValueError, match="found testbed and timm"):
        natural_shift.run(given(out=tmp_path, testbed="a", timm="b"))
