"""Settings of earlier results: every difference is named."""

import pytest

from runtime import settings
from runtime.files import DamagedFileError
from runtime.settings import WorkdirError

STORED = {"seed": 0, "train": {"epochs": 5, "betas": [0.9, 0.99]}}


def test_equal_settings_are_stored_and_let_in_again(tmp_path):
    path = tmp_path / "settings.json"
    settings.claim(path, {"b": 1, "a": (1, 2)}, "refused")
    assert path.read_text() == '{\n  "a": [\n    1,\n    2\n  ],\n  "b": 1\n}\n'
    settings.claim(path, {"b": 1, "a": (1, 2)}, "refused")  # tuples equal the lists they are stored as


def test_every_difference_is_named_and_nothing_is_changed(tmp_path):
    path = tmp_path / "settings.json"
    settings.claim(path, STORED, "refused")
    before = path.read_bytes()
    with pytest.raises(WorkdirError) as caught:
        settings.claim(path, {"train": {"epochs": 6, "betas": (0.9, 0.98), "rate": 0.1}}, f"{tmp_path} is another's")
    assert str(caught.value).splitlines() == [
        f"{tmp_path} is another's:",
        "  seed: stored 0, asked 'nothing'",
        "  train.betas: stored [0.9, 0.99], asked [0.9, 0.98]",
        "  train.epochs: stored 5, asked 6",
        "  train.rate: stored 'nothing', asked 0.1",
    ]
    assert path.read_bytes() == before


def test_a_setting_that_is_off_differs_from_one_that_is_not_stored():
    assert settings.differences({"limit": 3}, {"limit": 0}) == ["limit: stored 3, asked 0"]
    assert settings.differences({}, {"limit": 0}) == ["limit: stored 'nothing', asked 0"]


def test_free_keys_may_differ_with_those_below_them():
    stored, asked = {"data": {"dir": "a", "limit": 1}, "database": 1}, {"data": {"dir": "b", "limit": 2}, "database": 2}
    assert settings.differences(stored, asked, free=["data"]) == ["database: stored 1, asked 2"]
    assert len(settings.differences(stored, asked, free=iter(["data.dir"]))) == 2


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(DamagedFileError, match=r"settings\.json: expected .*use another folder"):
        settings.claim(tmp_path / "settings.json", {}, "refused")
