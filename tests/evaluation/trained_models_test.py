"""Reading trained models back: what comes from their workdir, what from the command, and workdirs
of earlier settings.
"""

import json
import shutil

import pytest

import eval as evaluate
from evaluation import trained_models
from runtime.files import DamagedFileError
from tests.training import tiny

# Settings that came after the first workdirs were made.
LATER = {
    "dataset": ("train_size", "placement"),
    "train": (
        "flip_alternates",
        "random_resized_crop",
        "transforms",
        "mix_in",
        "label_smoothing",
        "batch_norm",
        "scheme",
        "jsd_weight",
    ),
}


@pytest.fixture
def workdir(tmp_path):
    config = tiny.config()
    config.dataset.placement = "device"
    return tiny.untrained_workdir(tmp_path / "run", config)


def test_where_images_lie_is_said_by_the_command(workdir):
    config = tiny.config(epochs=7)
    config.dataset.update({"placement": "stream", "data_dir": "elsewhere"})
    with trained_models.open_workdir(workdir, config) as own:
        assert own.dataset.placement == "stream" and own.dataset.data_dir == "elsewhere"
        assert own.train.epochs == 2


def test_workdirs_of_earlier_settings_are_evaluated(workdir):
    stored = json.loads((workdir / "config.json").read_text())
    for part, keys in LATER.items():
        for key in keys:
            del stored[part][key]
    config = tiny.config()
    config.eval.update({"corruptions": ("imagenet_c/contrast",), "severity": "5"})
    expected = evaluate.run(config, workdir)
    for path in (workdir / "answers").iterdir():
        path.unlink()
    (workdir / "config.json").write_text(json.dumps(stored))
    (workdir / "provenance.json").unlink()  # the digest shows an edit
    tiny.finish(workdir, tiny.config())
    assert evaluate.run(config, workdir) == expected


def test_only_folders_named_as_their_model_are_read(tmp_path, monkeypatch, caplog):
    """A backup does not replace a model, whether the model exists or was moved away."""
    monkeypatch.setattr(trained_models.log, "propagate", True)
    own = tiny.untrained_workdir(tmp_path / "models" / "standard" / "seed0", tiny.config())
    for name in ("standard/seed0_old", "before/seed0"):
        shutil.copytree(own, tmp_path / "models" / name)
    assert trained_models.list_models(tmp_path) == {("standard", 0): own}
    assert f"{tmp_path}: left out models/before/seed0, models/standard/seed0_old, whose names" in caplog.text
    shutil.rmtree(own)
    with pytest.raises(
        FileNotFoundError, match=r"expected models in folders models/NAME/seedN of .*, found only models/"
    ):
        trained_models.list_models(tmp_path)


def test_a_config_that_is_something_else_is_named(workdir):
    """Swaps it with the provenance beside it, which contains its digest."""
    provenance = (workdir / "provenance.json").read_text()
    shutil.copy(workdir / "config.json", workdir / "provenance.json")
    (workdir / "config.json").write_text(provenance)
    for read in (lambda: evaluate.run(tiny.config(), workdir), lambda: trained_models.list_models(workdir)):
        with pytest.raises(DamagedFileError, match=r"config\.json: expected the settings of a model, found none of"):
            read()
