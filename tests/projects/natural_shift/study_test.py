"""The command on tables made up here: what it prints, writes and refuses, and its section in a report."""

import contextlib
import functools
import io
import json
import re
import shutil
import types
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from absl import flags

from analysis.report import inputs
from analysis.report.document import document
from projects.natural_shift import __main__ as command
from projects.natural_shift import figures
from projects.natural_shift.study import interval
from tests.analysis.matrices import write_overlap
from tests.projects.natural_shift.tables import made_up, write
from tests.refusing import refuses
from tests.tools import report_studies
from tests.tools.report_pages import Page, plain


def given(**values):
    """Flags of the command, apart from those of other commands."""
    own = flags.FlagValues()
    names = [name for name in dir(flags) if name.startswith("DEFINE_")]
    define = {name: functools.partial(getattr(flags, name), flag_values=own) for name in names}
    with mock.patch.object(command, "flags", types.SimpleNamespace(**define)):
        command.define_flags()
    own(["projects.natural_shift", *(f"--{name}={value}" for name, value in values.items())])
    return own


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """The table as the testbed's file, and its types."""
    table, tmp_path = made_up(), tmp_path_factory.mktemp("testbed")
    columns = {"val": table["clean"], "imagenet-r": table["natural/imagenet_r"]}
    columns["val-on-imagenet-r-classes"] = table["clean/imagenet_r"]
    columns["imagenetv2-matched-frequency-format-val"] = table["natural/imagenet_v2"]
    for name in table.synthetic:
        short = name.removeprefix("imagenet_c/")
        columns |= {f"imagenet-c.{short}.{severity}_on-disk": table[name] for severity in range(1, 6)}
    write(tmp_path / "top1.csv", ["model", *columns], *zip(table.accuracy.index, *columns.values()))
    kinds = ["standard" if standard else "robust_intv" for standard in table.standard]
    write(tmp_path / "types.csv", ["model", "type"], *zip(table.accuracy.index, kinds))
    return tmp_path


@pytest.fixture(scope="module")
def ran(testbed):
    """The table, what the command returns and prints, and the folder that it writes."""
    options = {"testbed": testbed / "top1.csv", "types": testbed / "types.csv", "resamples": 20}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        table, found = command.run(given(**options, out=testbed / "out", published_units=True))
    return table, found, printed.getvalue(), testbed / "out"


def test_everything_is_printed_and_written_and_figures_show_every_shift_and_line(testbed, ran):
    table, found, printed, out = ran
    assert (found.models, found.standard, found.shown) == (24, 12, 12)
    assert "| ImageNet-R | 0.6000 | \N{MINUS SIGN}2.0000 | 1.000 | 12 | 0 |" in printed
    assert "drop r, clean as a fraction" in printed and "an error of the published code" in printed
    assert "| 3 | snow, frost, fog, brightness, contrast |" in printed
    assert printed.startswith("top1.csv, ImageNet-C on-disk: 24 models, 24 with every accuracy")
    written = (out / "natural_shift.md").read_text()
    assert printed.split("\nwritten to")[0].strip() in written and "Command: `" in written
    files = json.loads((out / "provenance.json").read_text())
    assert set(files["inputs"]) == {str(testbed / "top1.csv"), str(testbed / "types.csv")}
    assert "20 resamples of the models" in files["files"]["predictions.csv"]["origin"]
    for name, frame in (("predictions", found.predictions), ("clean", found.clean), ("leaders", found.leaders)):
        pd.testing.assert_frame_equal(pd.read_csv(out / f"{name}.csv"), frame, check_exact=True)
    assert list(found.predictions) == ["benchmark", "shift", "measure", "value", "low", "high", "models"]
    assert (found.predictions.measure == "published_units").sum() == 16 * 2
    assert found.lines.set_index("shift").slope["imagenet_r"] == pytest.approx(0.6)
    assert list(pd.read_csv(out / "benchmarks.csv"))[-4:] == ["shift", "r", "low", "high"]
    assert set(found.bins["shift"]) == {"imagenet_v2", "imagenet_r", "mean"}
    accuracies, drops = figures.accuracy_panels(table, found), figures.drop_panels(table, found)
    assert [axes.get_title() for axes in accuracies.axes] == ["ImageNet-V2", "ImageNet-R"]
    line = accuracies.axes[1].get_lines()[0]  # its ends lie on the line of the standard models
    np.testing.assert_allclose(line.get_ydata(), 0.6 * np.array(line.get_xdata()) - 2, atol=1e-6)
    assert [len(points.get_offsets()) for points in accuracies.axes[0].collections] == [12, 12]
    assert drops.axes[0].get_title().endswith(f"= {found.predictions.value[0]:.2f}")
    panel = figures.benchmark_panel(found).axes[0]
    assert len([drawn for drawn in panel.get_lines() if drawn.get_marker() == "o"]) == len(found.bins) / 3


def test_without_types_there_is_no_effective_robustness_and_units_are_published_on_request_only(
    testbed, tmp_path, capsys
):
    options = {"benchmark": "imagenet_c/fog,imagenet_c/snow", "shifts": "imagenet_r", "resamples": 5}
    command.run(given(testbed=testbed / "top1.csv", out=tmp_path, **options))
    printed = capsys.readouterr().out
    assert "fraction" not in printed and "published_units" not in (tmp_path / "predictions.csv").read_text()
    assert "No effective robustness: it takes a line through standard models, found 0" in printed
    assert "ImageNet-V2" not in printed


def test_categories_of_other_corruptions_come_from_a_measured_overlap(testbed, tmp_path):
    names = ["imagenet_c/fog", "imagenet_c/contrast", "imagenet_c/snow", "imagenet_c/frost"]
    overlap = np.kron(np.eye(2), np.ones((2, 2))) * 0.9 + 0.1 * np.eye(4)
    write_overlap(tmp_path / "overlap.csv", names, overlap)
    options = {"testbed": testbed / "top1.csv", "out": tmp_path / "out", "resamples": 5}
    _, found = command.run(given(**options, benchmark=",".join(names), overlap=tmp_path / "overlap.csv"))
    assert found.categories == (tuple(names[:2]), tuple(names[2:]))
    assert set(zip(found.bins.categories, found.bins.per_category)) == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert (tmp_path / "out" / "benchmarks.png").exists()
    assert command.run(given(**options, benchmark=",".join(names)))[1].bins.empty
    assert not (tmp_path / "out" / "benchmarks.png").exists()  # it was of the earlier study
    refuses(lambda: command.run(given(**options, overlap=tmp_path / "overlap.csv")), "none of imagenet_c/gaussian_no")
    for sources, message in (({}, "one of --testbed, --timm and --workdirs, found none"),
                             ({"testbed": "a", "timm": "b"}, "found testbed and timm"),
                             ({"timm": "b", "kind": "in-memory"}, "expected --kind with --testbed, found it without"),
                             ({"timm": "b", "correlation": 0.9}, "expected --correlation with --overlap")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            command.run(given(out=tmp_path, **sources))


def test_a_table_without_corruptions_compares_clean_accuracy_alone(tmp_path, capsys):
    table = made_up()
    files = {"imagenet": table["clean"], "imagenetv2-matched-frequency": table["natural/imagenet_v2"]}
    for name, values in files.items():
        lines = [f"{model},224,{value}" for model, value in zip(table.accuracy.index, values)]
        (tmp_path / f"results-{name}.csv").write_text("\n".join(["model,img_size,top1", *lines]))
    _, found = command.run(given(timm=tmp_path, out=tmp_path / "out", resamples=5))
    assert found.predictions.empty and len(found.clean) == 3
    assert json.loads((tmp_path / "out" / "section.json").read_text())["rows"] == []
    assert "only clean accuracy is compared" in capsys.readouterr().out


def further(workdir):
    """The text of a report's section of further results."""
    return Page(document(inputs.read(workdir))).text("section", id="further")


def test_a_report_shows_the_section(ran, tmp_path):
    workdir, found = tmp_path / "work", ran[1]
    report_studies.write(workdir, ("noc/border", "noc/hue", "noc/rain"), number=60)
    assert f"python -m projects.natural_shift --workdirs={workdir} --out={workdir}/natural_shift" in further(workdir)
    shutil.copytree(ran[-1], workdir / "natural_shift")
    for name in ("top1.csv", "types.csv"):
        shutil.copy(ran[-1].parent / name, workdir)
    text = further(workdir)
    rows = found.predictions[found.predictions.benchmark == "mean"]
    for row in rows[rows.measure.isin(["drop", "effective"])].itertuples():
        assert plain(interval(row)) in text
    assert "ImageNet-R" in text and found.leaders.corruption[0] in text and "One more category is worth" in text
    assert "projects.natural_shift" not in text
    page = document(inputs.read(workdir))
    assert re.findall(r'alt="Natural shifts: (\w+)"', page) == ["accuracies", "drops", "benchmarks"]
    assert "natural_shift/section.json" in {name for name, _, _ in inputs.read(workdir).files}
    (workdir / "types.csv").write_text("model,type\n")  # other inputs than those of the section
    warnings = Page(document(inputs.read(workdir))).text("section", id="warnings")
    assert "natural_shift/section.json is of earlier answers: give the command that wrote it again" in warnings
    (workdir / "natural_shift" / "section.json").write_text(json.dumps({"title": "x"}))
    refuses(lambda: inputs.read(workdir), "nothing of that name")
