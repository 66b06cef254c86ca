"""Balance, stability and sweep of a report against the tables, and against all sets of
corruptions.
"""

import base64
import json
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from analysis.report import benchmark, inputs, study_figures
from analysis.report.document import document
from tests.tools import report_studies
from tests.tools.report_pages import NUMBER, Page, shows


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The page of the results in docs/, without figures."""
    workdir = report_studies.smoke(tmp_path_factory.mktemp("smoke") / "work")
    found = inputs.read(workdir)
    page = workdir / "report.html"
    page.write_text(document(found, benchmark.sweep(found), "No pictures."), encoding="utf-8")
    return page


def matrix_of(workdir):
    header, *lines = [line.split(",") for line in (workdir / "overlap.csv").read_text().splitlines()[1:]]
    return header[1:], np.array([line[1:] for line in lines], float)


def test_balance_and_stability_are_those_of_the_tables(smoke):
    found = Page(smoke.read_text(encoding="utf-8"))
    names, matrix = matrix_of(smoke.parent)
    means = dict(zip(inputs.short_names(names), (matrix.sum(axis=1) - 1) / 11))
    balance, stability = found.rows(class_="bars wide")
    shown = {row[0]: row[1].split(" ± ")[0] for row in balance[1:]}
    assert shown.keys() == means.keys() and all(shows(shown[name], mean) for name, mean in means.items())
    values = np.array(list(means.values()))
    text = found.text("section", id="balance")
    spread = re.search(rf"mean {NUMBER}, population standard deviation {NUMBER}, range {NUMBER}", text).groups()
    assert all(map(shows, spread, (values.mean(), values.std(), values.max() - values.min())))
    shares = json.loads((smoke.parent / "stability.json").read_text())["members"]
    expected = {short: f"{100 * shares[name]:.0f} %" for short, name in zip(inputs.short_names(names), names)}
    assert {row[0]: row[1] for row in stability[1:]} == expected
    for name in json.loads((smoke.parent / "benchmark.json").read_text())["members"]:
        assert f"selected in {100 * shares[name]:.0f} % of resamples" in found.text("section", id="benchmark")


def test_sweep_finds_the_largest_sets_of_smallest_mean_overlap(smoke):
    """Against all 4095 sets of the twelve corruptions."""
    names, matrix = matrix_of(smoke.parent)
    sets = []
    for bits in range(1, 1 << len(names)):
        members = [k for k in range(len(names)) if bits >> k & 1]
        pairs = matrix[np.ix_(members, members)][np.triu_indices(len(members), 1)]
        sets.append((len(members), pairs.max(initial=0), pairs.mean() if len(pairs) else 0.0))
    sizes, largest, means = np.array(sets).T
    ((header, numbers, overlaps, *members),) = Page(smoke.read_text(encoding="utf-8")).rows(class_="sweep")
    assert list(map(float, header[1:])) == [round(0.05 * k, 2) for k in range(21)]
    assert {row[0] for row in members} == set(inputs.short_names(names))
    for column in range(1, 22):
        allowed = largest <= float(header[column])
        best = sizes[allowed].max()
        dots = sum(row[column] == "●" for row in members)
        assert dots == int(numbers[column]) == best
        assert shows(overlaps[column], means[allowed & (sizes == best)].min())


def test_the_chart_of_thresholds_is_one_svg_for_page_and_print(smoke):
    (chart,) = Page(smoke.read_text(encoding="utf-8")).all("img", class_="chart")
    svg = base64.b64decode(chart[1]["src"].removeprefix("data:image/svg+xml;base64,"))
    root = xml.etree.ElementTree.fromstring(svg)
    assert root.tag.endswith("}svg") and len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 40
    study = inputs.read(smoke.parent)
    figure = study_figures.sweep(study, benchmark.sweep(study), study.threshold)
    assert study_figures.svg(figure) == svg
    assert [list(axes.lines[1].get_xdata()) for axes in figure.axes] == [[0.1, 0.1]] * 2
