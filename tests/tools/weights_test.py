"""tools.weights: which files are asked for, and that none is evaluated before all were imported."""

import contextlib

import pytest

from configs import imagenet
from tools import weights


def test_files_are_named_once():
    assert weights.named(["sin=a=b.pth.tar", "ANT3x3+SIN=c.pth"]) == {"sin": "a=b.pth.tar", "ANT3x3+SIN": "c.pth"}
    for given, said in (
        ([], "for each file, found none"),
        (["resnet50.pth"], "found 'resnet50.pth'"),
        (["a/b=c.pth"], "found 'a/b=c.pth'"),
        (["..=c.pth"], "found '..=c.pth'"),
        (["table=c.pth"], "not `table`"),
        (["a=b.pth", "a=c.pth"], "found a twice"),
    ):
        with pytest.raises(ValueError, match=said):
            weights.named(given)


def test_all_files_are_imported_before_the_first_is_evaluated(tmp_path, monkeypatch):
    done = []

    @contextlib.contextmanager
    def imported(path, config):
        done.append(("imported", path.name, config.model.checkpoint))
        yield

    monkeypatch.setattr(weights.trained_models, "open_workdir", imported)
    monkeypatch.setattr(weights.commands, "run", lambda config, path: done.append((path.name, config.model.checkpoint)))
    monkeypatch.setattr(weights, "_table", lambda config, folders, out: (folders, out))
    config = imagenet.get_config()
    folders, out = weights.run(config, {"standard": "a.pth", "sin": "b.pth.tar"}, tmp_path)
    files = [("standard", "a.pth"), ("sin", "b.pth.tar")]
    assert done == [*(("imported", *file) for file in files), *files]
    assert folders == [tmp_path / "standard", tmp_path / "sin"] and out == tmp_path / "table"
    assert not config.model.checkpoint
