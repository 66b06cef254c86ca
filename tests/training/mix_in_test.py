"""Training on two datasets at once: folders of PNGs, one of them a 'styled' copy."""

import json

import jax
import numpy as np
import pytest
from PIL import Image

import train
from runtime import meshes, workdirs
from tests.training import tiny
from training import batches, study
from training.batches import Plan

CLASSES = ("left", "right")
NUMBER = {"plain": 12, "styled": 20}  # training images of each class


def folder(root, name, value, classes=CLASSES):
    """Images of one grey level each, which tells what they are."""
    for k, label in enumerate(classes):
        for split, number in (("train", NUMBER[name]), ("val", 4)):
            place = root / name / split / label
            place.mkdir(parents=True)
            for i in range(number):
                Image.fromarray(np.full((16, 16, 3), value + 40 * k + i, np.uint8)).save(place / f"{i:03d}.png")
    return root / name


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("folders")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXC_CACHE_DIR", str(root / "cache"))
        folder(root, "plain", 0)
        folder(root, "styled", 100)
        yield root


def settings(root, **mix_in):
    config = tiny.config(batch_size=16, epochs=1, flip=False)
    config.dataset.update({"name": "image_folder", "data_dir": str(root / "plain"), "image_size": 16, "train_limit": 0})
    config.train.mix_in.update({"name": "image_folder", "data_dir": str(root / "styled")} | mix_in)
    return config


def test_an_epoch_shows_every_image_of_both_once(root):
    config = settings(root)
    mesh = meshes.data_mesh(16)
    dataset, split, test = study.load_data(config, mesh, mixed=True)
    total = 2 * sum(NUMBER.values())
    assert len(split) == total and len(test) == 8 and dataset.name == "image_folder+image_folder"
    plan = Plan(config.train, split.images.shape)
    assert plan.steps_per_epoch == total // 16 == 4
    root_keys = batches.Keys(*jax.random.split(jax.random.key(0), 4))
    order = batches.epoch_order(jax.random.key(1), plan.views)
    seen = []
    for begin in range(0, 4, plan.block_steps):
        images, labels = batches.block(plan, split, order, begin, root_keys, mesh)
        seen += zip(np.asarray(images)[..., 0, 0, 0].ravel().tolist(), np.asarray(labels).ravel().tolist())
    levels = [(base + 40 * k + i, k) for base, n in ((0, 12), (100, 20)) for k in range(2) for i in range(n)]
    assert sorted(seen) == sorted(levels)
    styled = np.array([level >= 100 for level, _ in seen]).reshape(4, 16).sum(1)
    assert styled.min() > 4 and styled.max() < 16  # 10 expected: mixed, not one after the other


def test_evaluation_leaves_the_second_aside(root):
    _, split, _ = study.load_data(settings(root), meshes.data_mesh(16))
    assert len(split) == 2 * NUMBER["plain"]


def test_a_run_records_both_and_refuses_other_images(root, tmp_path):
    train.train_and_evaluate(settings(root), tmp_path / "run")
    record = json.loads((tmp_path / "run" / "data.json").read_text())
    assert record["train"]["size"] == 24 and record["mixed_in"]["train"]["size"] == 40
    moved = (root / "styled").rename(root / "moved")
    train.train_and_evaluate(settings(root, data_dir=str(moved)), tmp_path / "run")
    moved.rename(root / "styled")
    changed = root / "styled" / "train" / "left" / "000.png"
    before = changed.read_bytes()
    Image.fromarray(np.full((16, 16, 3), 9, np.uint8)).save(changed)
    with pytest.raises(workdirs.WorkdirError, match=r"trained on other images:\n  mixed_in\.images"):
        train.train_and_evaluate(settings(root), tmp_path / "run")
    changed.write_bytes(before)
    with pytest.raises(workdirs.WorkdirError, match=r"train\.mix_in\.name: stored 'image_folder', asked ''"):
        train.train_and_evaluate(settings(root, name=""), tmp_path / "run")


def test_other_classes_are_refused(root, tmp_path):
    other = folder(tmp_path, "styled", 100, ("left", "top"))
    with pytest.raises(ValueError, match=r"expected the class names of image_folder .* different in right, top"):
        study.load_data(settings(root, data_dir=str(other)), meshes.data_mesh(16), mixed=True)


@pytest.mark.parametrize("name", ["image_folder", "imagenet"])
def test_a_missing_folder_is_refused_by_the_setting_that_names_it(root, tmp_path, name):
    asked = settings(root, name=name, data_dir=str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match=r"config\.train\.mix_in: expected a folder of images .*gone"):
        study.load_data(asked, meshes.data_mesh(16), mixed=True)
