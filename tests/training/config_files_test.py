"""The files in configs/: their keys are known, and recipes are those of the papers they name."""

import importlib
import pathlib

import pytest

from training import augmentation, cli, sections, study

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARGUMENTS = {  # variants of the files in configs/, besides the one without an argument
    "aug": ("noc/border", "mixture=imagenet_noc"),
    "cbar_search": ("cifar10", "imagenet", "smoke"),
    "fast_cifar10": ("gpu", "cpu"),
    "imagenet": ("vgg19", "resnet50,100"),
    "msd": ("notebook", "paper", "subsets", "shapes", "smoke"),
    "networks": ("msdnet_step4", "multigrid34", "condensenet74_8", "smoke"),
    "noc_cifar10": ("paper", "cpu"),
    "overlap_imagenet100": ("densenet121", "wide_resnet50_2", "smoke"),
    "overlap_cifar10": ("paper", "smoke", "small", "small_wide", "small_plain"),
    "vit": ("tiny", "smoke"),
    "scheme_study": ("cifar10", "subsets", "closest_random_farthest", "closest_random_farthest=a/b", "imagenet", "stylized=a/b",
                     "cpu", "smoke"),
    "scheme": ("augmix", "augmix+jsd", "patch_gaussian", "augmix=rotate+equalize", "autoaugment_cifar,cpu", "stored=x.npz",
               "augmix_imagenet+jsd", "baseline_imagenet", "stylized=a/b"),
}  # fmt: skip
CONFIGS = sorted(path.stem for path in (ROOT / "configs").glob("[a-z]*.py"))


def load(name, *argument):
    return importlib.import_module(f"configs.{name}").get_config(*argument)


def test_variants_are_of_files_that_exist():
    assert set(ARGUMENTS) < set(CONFIGS)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_key_of_every_config_is_known_and_its_value_is_taken(name):
    for argument in ((), *((argument,) for argument in ARGUMENTS.get(name, ()))):
        config = load(name, *argument)
        assert set(cli.flat(config)) <= set(sections.SETTINGS)
        cli.check(config)


def test_schemes_for_imagenet_have_its_recipe():
    """They were the recipe of CIFAR-10 with another scheme."""
    config = load("scheme", "augmix_imagenet+jsd")
    assert (config.dataset.name, config.dataset.image_size, config.model.name) == ("imagenet", 224, "resnet50")
    assert (config.model.init, config.train.scheme, config.train.jsd_weight) == ("goyal", "augmix_imagenet", 12.0)
    assert config.train.milestones == (30, 60, 90) and config.train.schedule == "step" and config.train.crop == 0
    assert load("scheme", "baseline_imagenet").train.scheme == ""
    assert load("scheme", "baseline").dataset.name == "cifar10"
    with pytest.raises(ValueError, match="a scheme for CIFAR-10 with ,cpu"):
        load("scheme", "augmix_imagenet,cpu")


def test_stylised_images_are_mixed_into_half_as_many_epochs():
    config, study_config = load("scheme", "stylized=a/b"), load("scheme_study", "stylized=a/b")
    assert config.train.to_dict() == study_config.train.to_dict() and study_config.study.schemes == ("standard",)
    assert config.train.mix_in.to_dict() == {"name": "imagenet", "data_dir": "a/b"}
    assert (config.train.epochs, config.train.milestones) == (50, (15, 30, 45))
    for name in ("scheme", "scheme_study"):
        with pytest.raises(ValueError, match="stylized=DIR"):
            load(name, "stylized=")


def test_studies_of_schemes_have_the_recipes_of_single_ones():
    """One model of a study is the model that train.py trains with the scheme."""
    for variant, name in (("cifar10", "augmix+jsd"), ("imagenet", "augmix_imagenet+jsd"), ("subsets", "augmix=rotate")):
        many, single = load("scheme_study", variant), load("scheme", name)
        assert name in augmentation.expand_schemes(many.study.schemes)
        member, alone = (
            study.model_config(given, "standard", 3).to_dict() for given in (study.with_scheme(many, name), single)
        )
        assert member == alone
    with pytest.raises(ValueError, match=r"expected scheme_study\.py:cifar10, :subsets"):
        load("scheme_study", "cifar10=3")


def test_the_study_for_two_cores_has_the_subsets_of_four_operations():
    config = load("scheme_study", "cpu")
    asked = [frozenset(name.partition("=")[2].split("+")) for name in augmentation.expand_schemes(config.study.schemes)]
    operations = frozenset.union(*asked) - {""}
    assert len(set(asked)) == len(asked) == 2 ** len(operations) == 16
    assert config.msd.schemes == config.study.schemes and config.msd.severity == config.eval.severity
