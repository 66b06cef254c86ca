"""Natural shifts in a report: read from the workdir, shown, refused when broken."""

import json

import pytest

from analysis import figures
from analysis.natural_shift.benchmarks import categories_of
from analysis.natural_shift.figures import benchmark_panel
from analysis.natural_shift.files import write_study
from analysis.natural_shift.study import study
from analysis.natural_shift.text import interval
from analysis.report import inputs
from analysis.report.document import document
from tests.analysis.natural_shift.tables import made_up
from tests.tools.report_pages import plain


def test_a_report_shows_what_predicts_natural_shifts(workdir, further):
    table = made_up()
    found = study(table, clusters=categories_of(table.members()), resamples=10)
    write_study(workdir / "natural_shift", found, "", {"command": "python -m tools.natural_shift"})
    figures.save(benchmark_panel(found), workdir / "natural_shift" / "benchmarks", formats=("png",))
    text = further(workdir)
    for row in found.benchmark:
        assert plain(interval(row.drop)) in text and plain(interval(row.effective)) in text
    assert "ImageNet-R" in text and found.leaders[0].corruption in text and "One more category is worth" in text
    assert "tools.natural_shift" not in text
    page = document(inputs.read(workdir), None, "No pictures.")
    assert page.count('alt="Natural shifts: benchmarks"') == 1
    assert "natural_shift.json" in {name for name, _, _ in inputs.read(workdir).files}


def test_shifts_without_corruptions_are_shown_by_clean_accuracy(workdir, further):
    table = made_up()
    found = study(table, resamples=5)._replace(benchmark=[], corruptions=[], leaders=[], bins=(), effects=None)
    write_study(workdir / "natural_shift", found, "", {"command": ""})
    text = further(workdir)
    assert "Clean accuracy alone, r² of logits: ImageNet-V2" in text and "Best single" not in text


def test_without_them_the_report_says_what_to_run(workdir, further):
    assert f"python -m tools.natural_shift --counts={workdir}/counts.csv" in further(workdir)


def test_a_file_that_is_something_else_is_refused(workdir):
    (workdir / "natural_shift").mkdir()
    (workdir / "natural_shift" / "natural_shift.json").write_text(json.dumps({"source": "x"}))
    with pytest.raises(ValueError, match=r"natural_shift.json: expected models, found nothing of that name"):
        inputs.read(workdir)
