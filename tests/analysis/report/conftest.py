"""A small study to report, and its page."""

import pytest

from analysis.report import charts, inputs
from analysis.report.document import document
from tests.tools import report_studies
from tests.tools.report_pages import Page


@pytest.fixture
def workdir(tmp_path):
    return report_studies.smoke(tmp_path / "work")


@pytest.fixture
def small(tmp_path):
    """A study that is read in a tenth of a second."""
    report_studies.write(tmp_path / "small", ("noc/hue", "noc/rain", "noc/border"), number=60)
    return tmp_path / "small"


@pytest.fixture
def page():
    """Gives the function that renders the page of a workdir; with the figures that are asked for."""

    def render(workdir, drawn=()):
        study = inputs.read(workdir)
        selections = charts.sweep(study)
        return Page(document(study, charts.draw(study, selections, only=drawn), selections))

    return render
