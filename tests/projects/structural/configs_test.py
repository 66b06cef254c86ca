"""The project's config files: their keys are known and their values are taken."""

import importlib

import pytest

from runtime import command
from training import cli, sections

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
