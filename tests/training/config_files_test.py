"""The files in configs/: known keys, recipes as in their papers, and what a recipe sets before a training."""

import importlib

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import data
from runtime import meshes
from tests.processes import ROOT
from tests.training import tiny
from training import augmentation, cli, loop, sections, states, study

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
    """Their dataset, network and schedule are other ones than those of the schemes for CIFAR-10."""
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


RNG = np.random.default_rng(0)


def test_the_triangle_rises_and_falls_in_straight_lines():
    recipe = tiny.config(schedule="triangle", learning_rate=0.5, epochs=10, warmup_epochs=2).train
    rate = states.learning_rate_schedule(recipe, 7)
    expected = [0.5 * s / 14 if s < 14 else 0.5 * (70 - s) / 56 for s in range(71)]
    np.testing.assert_allclose([rate(jnp.asarray(s)) for s in range(71)], expected, atol=1e-7)
    recipe.warmup_epochs = 0
    rate = states.learning_rate_schedule(recipe, 7)
    np.testing.assert_allclose([rate(jnp.asarray(s)) for s in (0, 35, 70)], [0.5, 0.25, 0], atol=1e-7)


def test_a_recipe_with_a_warm_up_makes_an_optimiser_for_imported_weights_which_train_no_epoch():
    recipe = tiny.config(schedule="cosine", learning_rate=0.5, epochs=0, warmup_epochs=1).train
    rate = states.learning_rate_schedule(recipe, 7)
    assert [float(rate(step)) for step in (0, 1)] == [0.5, 0]


def test_the_code_reading_starts_from_xavier_and_does_not_normalise():
    released = study.model_config(tiny.config(reading="code"), "standard", 0)
    graphdef, *state = states.build_model(released, 10, 32)
    model = nnx.merge(graphdef, *state)
    images = RNG.integers(0, 256, (2, 32, 32, 3), np.uint8)
    np.testing.assert_allclose(model.normalize(images), images / 255, rtol=1e-6)
    np.testing.assert_array_equal(model.head.bias[...], np.full(10, 0.01, np.float32))
    kernel = np.asarray(model.head.kernel[...])
    bound = (6 / sum(kernel.shape)) ** 0.5
    assert 0.9 * bound < np.abs(kernel).max() <= bound * (1 + 1e-6)

    plain = study.model_config(tiny.config(), "standard", 0)
    assert not {"mean", "std", "init"} & set(plain.model)
    given = tiny.config(reading="code")
    given.model.init, given.model.mean = "he", (0.5, 0.5, 0.5)
    single = study.model_config(given, "standard", 0).model
    assert (single.init, single.mean, single.std) == ("he", (0.5, 0.5, 0.5), (1.0, 1.0, 1.0))
    given.model.checkpoint = "resnet.pth"  # imported weights have their own normalisation
    assert "std" not in study.model_config(given, "standard", 0).model


def test_the_recipe_trains_whitened_and_leaves_the_filters_alone(tmp_path):
    config = load("fast_cifar10")
    config.dataset.name = "shapes"
    config.model.widths = (8, 8)
    config.train.update(epochs=3, batch_size=32, learning_rate=0.2, warmup_epochs=1)
    split = data.load("shapes", train_limit=160, test_limit=10).train.to_device()
    single = study.model_config(config, "standard", 0)
    _, trained = loop.train(single, split, 10, tmp_path, mesh=meshes.data_mesh(32))
    mean, std = (trained.statistics["normalize"][name][...] for name in ("mean", "std"))
    expected = states.whitening_filters(split.images, 2, 12, mean, std)
    np.testing.assert_allclose(trained.statistics["whitening"][...], expected, rtol=1e-5)
    assert np.any(trained.params["whitening_bias"][...])


def test_other_networks_have_nothing_to_whiten():
    single = study.model_config(tiny.config(), "standard", 0)
    _, params, statistics = states.build_model(single, 10, 32)
    fresh = states.TrainState(jnp.zeros((), jnp.int32), params, statistics, ())
    assert states.whitened(fresh, None) is fresh
