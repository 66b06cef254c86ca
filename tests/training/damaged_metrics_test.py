"""A metrics.jsonl that was damaged or edited is named, with the line."""

import pytest

from runtime.files import DamagedFileError
from training import run

LINE = '{"step": 10, "images_per_second": 50.0}'


@pytest.mark.parametrize(
    "text, message",
    [
        ("[]", "expected an object, found a list"),
        ("{}", "expected step, found nothing of that name"),
        ('{"step": 20, "images_per_second": 0}', "expected images_per_second above 0, found 0"),
        ('{"step": null, "images_per_second": 1}', "expected a whole number as step, found None"),
    ],
)
def test_a_line_that_is_no_report_is_named(tmp_path, text, message):
    path = tmp_path / "metrics.jsonl"
    path.write_text(f"{LINE}\n{text}\n")
    with pytest.raises(DamagedFileError) as caught:
        run.training_seconds(path, 100)
    assert str(caught.value) == f"{path}, line 2: {message}; remove the line"


def test_a_line_that_a_killed_process_was_writing_does_not_count(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{LINE}\n{{"step": 20, "ima')
    assert run.training_seconds(path, 100) == 10 * 100 / 50


def test_a_log_of_other_lines_is_not_continued(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("[]\n")
    with pytest.raises(DamagedFileError, match=r"metrics\.jsonl, line 1: expected an object"):
        run.MetricsLog(path, 10)
