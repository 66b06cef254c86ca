"""Schemes as trainings of a study: names, recipes, and which models train with one program."""

import types

import numpy as np
import pytest

from corruptions.augment import stored
from runtime import meshes
from tests.training import tiny
from training import augmentation, study


@pytest.fixture
def folder(tmp_path):
    """Two files of stored transforms, of the same scheme."""
    for number in (1, 2):
        params = {"level": np.arange(number, dtype=np.float32)}
        content = stored.Stored("augmix", (32, 32, 3), f"closest_{number}", params, {})
        stored.write(tmp_path / f"closest_{number}.npz", content)
    return tmp_path


def test_names_are_spelled_in_one_way_and_stand_once():
    found = augmentation.expand_schemes(
        ("standard", "augmix=posterize+autocontrast", "augmix=autocontrast+posterize", "augmix+jsd")
    )
    assert list(found) == ["standard", "augmix=autocontrast+posterize", "augmix+jsd"]
    assert len(augmentation.expand_schemes(("augmix=*", "augmix=rotate", "augmix"))) == 512


def test_files_of_transforms_are_found_by_a_pattern(folder):
    found = augmentation.expand_schemes((f"stored={folder}/*.npz",))
    assert [name.partition("@")[0] for name in found] == ["stored=closest_1", "stored=closest_2"]
    assert list(found.values()) == [f"stored={folder}/closest_1.npz", f"stored={folder}/closest_2.npz"]
    both = augmentation.expand_schemes((f"stored={folder}/*_1.npz+jsd",))
    assert [name[:17] for name in both] == ["stored=closest_1@"] and all(name.endswith("+jsd") for name in both)
    with pytest.raises(ValueError, match=r"expected files of stored transforms at .*gone/\*.npz, found none"):
        augmentation.expand_schemes((f"stored={folder}/gone/*.npz",))


@pytest.mark.parametrize("name", ["augmxi", "noc/hue", "mixture=imagenet_noc", "augmix=spin"])
def test_what_is_no_scheme_is_refused(name):
    with pytest.raises(ValueError, match=r"expected config.study.schemes of|unknown operation"):
        augmentation.expand_schemes(("standard", name))


@pytest.mark.parametrize("name", ["standard", "augmix+jsd", "augmix=rotate", "patch_gaussian"])
def test_a_model_is_called_by_its_scheme(name):
    config = study.with_scheme(tiny.config(), name)
    assert study.name_of(study.model_config(config, "standard", 0).train) == name
    assert config.train.jsd_weight == (12 if name == "augmix+jsd" else 0)
    assert study.model_dir("work", name, 3).parts == ("work", "models", name, "seed3")


def test_a_model_is_called_by_the_enhancement_of_its_training_images():
    config = tiny.config(enhance="clahe")
    assert study.name_of(study.model_config(config, "standard", 0).train) == "standard+train=clahe"
    assert study.name_of(study.with_scheme(config, "augmix+jsd").train) == "augmix+jsd+train=clahe"
    config.train.stability_weight = 0.1
    assert study.name_of(config.train) == "standard+stability+train=clahe"
    config.train.mixup, config.train.frozen = True, "backbone"
    assert study.name_of(config.train) == "standard+stability+mixup+frozen+train=clahe"


def _recorded(monkeypatch, config, trainings, tmp_path, **given):
    """The parts that are trained, each as its jobs' (scheme, JSD weight, seed, devices)."""
    seen = []

    def train_jobs(jobs, *args, mesh, **keywords):
        seen.append([(j.spec.train.scheme, j.spec.train.jsd_weight, j.spec.seed, mesh.shape["model"]) for j in jobs])
        return [(None, job.description) for job in jobs]

    monkeypatch.setattr(study.loop, "train_jobs", train_jobs)
    dataset = types.SimpleNamespace(num_classes=10)
    found = {}
    study_models = study.Trainings(config, trainings, (0, 1), tmp_path, dataset, None, meshes.data_mesh())
    for part in study_models.train_in_parts(**given):
        found |= part
    return seen, found


def test_models_with_the_same_kind_of_images_train_together(monkeypatch, tmp_path):
    """Whole levels, values between them, and three views of each image are different programs."""
    names = ("standard", "augmix=", "augmix+jsd", "patch_gaussian", "autoaugment_cifar", "patch_gaussian+jsd")
    seen, found = _recorded(monkeypatch, tiny.config(), names, tmp_path)
    kinds = [["standard", "patch_gaussian"], ["augmix=", "autoaugment_cifar"], ["augmix", "patch_gaussian"]]
    expected = [[("" if name == "standard" else name, seed) for seed in (0, 1) for name in kind] for kind in kinds]
    assert [[(scheme, seed) for scheme, _, seed, _ in part] for part in seen] == expected
    assert [{weight for _, weight, *_ in part} for part in seen] == [{0}, {0}, {12}]
    assert set(found) == {(name, seed) for name in names for seed in (0, 1)}
    assert found["augmix+jsd", 1] == (None, "augmix+jsd seed 1")


def test_many_models_come_in_parts_of_whole_rounds(monkeypatch, tmp_path):
    subsets = tuple(augmentation.expand_schemes(("augmix=*",)))[:10]
    seen, found = _recorded(monkeypatch, tiny.config(), subsets, tmp_path, at_most=8)
    assert [len(part) for part in seen] == [8, 8, 4] and len(found) == 20


def test_a_study_takes_its_schemes_from_their_own_setting(tmp_path):
    with pytest.raises(
        ValueError, match=r"expected config.train.scheme '' in a study, found 'augmix'; tools.scheme_study"
    ):
        study.Trainings(tiny.config(scheme="augmix"), ("standard",), (0,), tmp_path, None, None, meshes.data_mesh())
