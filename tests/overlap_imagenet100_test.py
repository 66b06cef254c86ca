"""configs/overlap_imagenet100.py: the papers' recipe, the images it reads, and its smoke variant."""

import sys

import numpy as np
import pytest
from PIL import Image

from configs import overlap_imagenet100
from corruptions.scoring.conditions import expand
from runtime import meshes
from tests import processes
from tests.data.imagenet import trees
from tests.refusing import refuses
from training import states, study


@pytest.mark.parametrize("name", overlap_imagenet100.MODELS)
def test_the_recipe_is_the_papers(name):
    config = overlap_imagenet100.get_config(name)
    train = config.train
    assert (config.model.name, config.dataset.name, config.dataset.image_size) == (name, "imagenet100", 224)
    assert (train.epochs, train.batch_size, train.momentum, train.weight_decay) == (40, 256, 0.9, 1e-4)
    assert (train.corrupted_fraction, train.flip, train.crop, train.random_resized_crop) == (0.5, True, 0, 0)
    rate = states.learning_rate_schedule(train, 10)
    assert [float(rate(step)) for step in (0, 199, 200, 299, 300, 399)] == pytest.approx(
        [0.1] * 2 + [0.01] * 2 + [1e-3] * 2
    )
    assert len(expand(config.study.corruptions)) == 23


def test_another_variant_is_refused():
    refuses(lambda: overlap_imagenet100.get_config("resnet50"), "'resnet50'")


def test_a_study_reads_squashed_images(tmp_path):
    tree = trees.write(tmp_path / "tree")
    config = overlap_imagenet100.get_config()
    config.dataset.update({"data_dir": str(tree), "image_size": 16})
    dataset, _, test = study.load_data(config, meshes.data_mesh())
    for image, path in list(zip(np.asarray(test.images), trees.paths(tree, "val"), strict=True))[:10]:
        whole = Image.open(path).convert("RGB").resize((16, 16), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(image, np.asarray(whole))
    assert dataset.provenance["preprocess"] == "both sides 16, bilinear (Pillow)"


@pytest.mark.slow
def test_the_smoke_variant_ends_in_a_report_without_a_bar(tmp_path):
    for command in (["overlap.py", "--config=configs/overlap_imagenet100.py:smoke"], ["-m", "tools.report"]):
        command = [sys.executable, *command, f"--workdir={tmp_path}"]
        done = processes.run(command)
        assert done.returncode == 0, done.stderr
        assert "\r" not in done.stderr and "it/s" not in done.stderr
    assert (tmp_path / "overlap.csv").is_file() and (tmp_path / "report.html").is_file()
