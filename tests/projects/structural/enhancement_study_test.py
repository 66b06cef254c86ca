"""projects.structural.enhancement_study: a table with and without each enhancement; continued, nothing is done again."""

import csv
import importlib

import pytest

from projects.structural import enhancement_study
from runtime import command
from runtime.settings import SettingsError
from tests.analysis.made_up import read_counts
from tests.refusing import refuses
from tests.training import tiny
from training import cli, sections


def config(*enhancements):
    """Settings of a study whose trainings take the compiled program that many other tests take."""
    found = tiny.config(epochs=1)
    found.eval.update({"corruptions": ("imagenet_c/contrast",), "severity": "5"})
    found.study.update({"enhancements": enhancements, "seeds": (0,)})
    return found


def finished(workdir):
    return {str(path.relative_to(workdir)): path.stat().st_mtime_ns for path in workdir.rglob("final.json")}


def test_a_study_of_enhancements(tmp_path, capsys, monkeypatch):
    workdir = tmp_path / "work"
    enhancement_study.run(config("clahe"), workdir)
    first = finished(workdir)
    more = config("clahe", "train=clahe:clip=4")
    more.eval.update({"reference": "alexnet", "reference_mismatch": "label"})  # measured on other images
    monkeypatch.setattr(cli, "start", lambda argv: (more, workdir))
    cli.main(enhancement_study.run)([])
    text = capsys.readouterr().out
    second = finished(workdir)
    assert first.items() < second.items()
    assert second.keys() - first.keys() == {"train=clahe:clip=4/models/standard/seed0/final.json"}
    rows = read_counts(workdir / "counts.csv")
    models = ["standard", "standard+enhance=clahe", "standard+train=clahe:clip=4+enhance=clahe:clip=4"]
    assert sorted({key[0] for key, _ in rows}) == models and len(rows) == 6
    assert all(text.count(f"| {model} |") == 1 for model in models)  # the table is printed once
    assert "Errors relative to AlexNet:ImageNet-C hold for other conditions: dataset: imagenet, here shapes" in text
    with (workdir / "enhancements" / "table.csv").open() as file:
        assert {row["model"] for row in csv.DictReader(line for line in file if line[0] != "#")} == set(models)


def test_a_wrong_reference_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(enhancement_study.study.Trainings, "train", lambda self: pytest.fail("trained first"))
    asked = config("clahe")
    asked.eval.reference = "alexnet"
    refuses(lambda: enhancement_study.run(asked, tmp_path), "reference", kind=SettingsError)


def test_what_networks_are_trained_with():
    plain = config("clahe").to_dict()
    stable = enhancement_study.trained_with(config("clahe"), "stability").to_dict()
    assert (stable["train"].pop("stability_weight"), stable["train"].pop("stability_noise")) == (0.05, 0.05)
    assert stable["train"].items() <= plain["train"].items() and stable["train"]["enhance"] == ""
    equalised = enhancement_study.trained_with(config("clahe"), "nlm").to_dict()
    assert equalised["train"] == plain["train"] | {"enhance": "nlm"}


def test_images_that_are_mixed_in_are_trained_on(tmp_path, monkeypatch):
    def load(config, mesh, mixed=False, placed=()):
        raise InterruptedError(mixed)

    monkeypatch.setattr(enhancement_study.study, "load_data", load)
    refuses(lambda: enhancement_study.run(config("clahe"), tmp_path), "True", kind=InterruptedError)


def test_settings_that_are_none_are_refused_before_anything_is_loaded(tmp_path):
    refuses(lambda: enhancement_study.run(config(), tmp_path), "none")
    mixed = config("clahe")
    mixed.train.mixup = True
    refuses(lambda: enhancement_study.run(mixed, tmp_path), "True")
    for name in ("clahee", "train=ten_crop"):
        with pytest.raises(SettingsError, match=r"config\.study\.enhancements: expected"):
            cli.check(config(name))


ARGUMENTS = {
    "enhancements": ("cifar10", "smoke"),
    "icons50": ("style_microsoft", "style_apple", "subclass", "subclass_exact", "smoke"),
    "imagenet22k_superclasses": ("alexnet", "vgg19_bn", "resnext101_64x4d", "smoke"),
    "style_decoder": ("public", "paper", "cifar10", "smoke"),
    "subclass": ("k1", "k2", "k3", "k4", "smoke"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_key_of_every_config_is_known_and_its_value_is_taken(name):
    module = importlib.import_module(f"projects.structural.configs.{name}")
    for argument in ((), *((argument,) for argument in ARGUMENTS[name])):
        config = module.get_config(*argument)
        assert set(cli.flat(config)) <= set(sections.SETTINGS)
        command.import_all(config.imports)
        cli.check(config)
