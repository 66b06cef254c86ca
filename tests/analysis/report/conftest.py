"""A small study to report, and its section of further results."""

import pytest

from analysis.report import inputs
from analysis.report.document import document
from tests.tools import report_studies
from tests.tools.report_pages import Page


@pytest.fixture
def workdir(tmp_path):
    return report_studies.smoke(tmp_path / "work")


@pytest.fixture
def further():
    """Gives the function that reads what a report of a workdir shows of further results."""
    return lambda workdir: Page(document(inputs.read(workdir), None, "No pictures.")).text("section", id="further")
