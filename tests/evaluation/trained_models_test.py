"""Reading trained models back: what comes from their workdir, what from the command, and workdirs
of earlier settings.
"""

import json

import pytest

import eval as evaluate
from evaluation import trained_models
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
    (workdir / "provenance.json").unlink()  # which tells of an edit
    assert evaluate.run(config, workdir) == expected
