"""The settings: what contradicts is refused, what is unknown is named, and where they are listed."""

import pathlib
import sys

import pytest
from absl import flags
from ml_collections import config_flags

from configs import default
from runtime.schema import SettingsError
from tools import settings
from training import cli, rules, sections, study

ROOT = pathlib.Path(__file__).resolve().parents[2]


def changed(**values):
    config = default.get_config()
    config.update_from_flattened_dict({key.replace("__", "."): value for key, value in values.items()})
    return config


@pytest.mark.parametrize(
    "values, message",
    [
        ({"train__crop": 1000}, "expected config.train.crop below 32 pixels"),
        ({"train__random_resized_crop": 33}, "expected config.train.random_resized_crop up to 32 pixels"),
        ({"train__random_resized_crop": 24, "train__crop": 4}, "expected config.train.crop 0 with"),
        ({"train__random_crop": 33}, "expected config.train.random_crop up to 32 pixels"),
        ({"train__random_crop": 24, "train__random_resized_crop": 24}, "expected config.train.random_crop 0 with"),
        (
            {"dataset__name": "imagenet100", "dataset__train_size": 31},
            "expected config.dataset.train_size of at least image_size 32",
        ),
        ({"dataset__resize": "squash"}, "expected config.dataset.resize 'crop' with shapes"),
        ({"dataset__name": "cifar10", "dataset__train_size": 64}, "expected config.dataset.train_size 0 with cifar10"),
        ({"train__schedule": "cosine", "train__warmup_epochs": 40}, "config.train.warmup_epochs below 40 epochs"),
        ({"train__init_from": "standard", "study__finetune__warmup_epochs": 1}, "config.study.finetune.warmup_epochs"),
        ({"train__batch_norm": "groups=3"}, "expected config.train.batch_size to be a multiple of 3, found 256"),
        ({"train__jsd_weight": 12.0}, "expected config.train.jsd_weight with a config.train.scheme"),
        (
            {"train__jsd_weight": 12.0, "train__scheme": "augmix", "train__corruption": "noc/hue"},
            "without a corruption, found scheme 'augmix' and corruption 'noc/hue'",
        ),
        (
            {"train__jsd_weight": 12.0, "train__scheme": "augmix", "train__label_smoothing": 0.1},
            "expected config.train.label_smoothing 0",
        ),
        ({"train__stability_weight": 0.1}, "train.stability_noise both above 0, or both 0, found 0.1 and 0.0"),
        (
            {
                "train__jsd_weight": 12.0,
                "train__scheme": "augmix",
                "train__stability_weight": 0.1,
                "train__stability_noise": 0.1,
            },
            "expected config.train.stability_weight 0",
        ),
        (
            {"train__mixup": True, "train__stability_weight": 0.1, "train__stability_noise": 0.1},
            "expected config.train.mixup False with a train.jsd_weight or train.stability_weight, found True with 0.0 and 0.1",
        ),
        ({"adapt__images": 100}, "expected config.adapt.images of at least a batch of 500, found 100"),
        ({"eval__adapt": "test", "eval__stored": "DIR"}, "expected no config.eval.stored with config.eval.adapt"),
        ({"eval__adapt": "test", "eval__enhance": "clahe"}, "expected no config.eval.enhance with config.eval.adapt"),
        ({"calibrate__targets": (0.5, 0.95)}, "mild > severe, found (0.5, 0.95)"),
        ({"msd__subsets__pool": 100}, "expected config.msd.subsets.sizes up to the pool of 100, found 1000"),
        ({"msd__toy__second": "imagenet_c/motion_blur"}, "expected two corruptions in config.msd.toy"),
        ({"model__name": "alexnet"}, "expected images of at least"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(SettingsError) as caught:
        rules.check(changed(**values))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_every_wrong_setting_is_named_and_unknown_ones_with_the_likeliest():
    wrong = changed(train__epochs=-1, train__momentum=5.0)
    wrong.train.epoch = 3
    wrong.model.wdths = (3,)
    with pytest.raises(SettingsError) as caught:
        rules.check(wrong)
    assert str(caught.value).splitlines() == [
        "there is no setting config.model.wdths; did you mean config.model.widths?",
        "there is no setting config.train.epoch; did you mean config.train.epochs?",
        "config.train.epochs: expected a whole number from 0 to 1000000, found -1",
        "config.train.momentum: expected a number in [0, 1), found 5.0",
    ]


def test_options_are_those_of_the_network():
    with pytest.raises(
        SettingsError, match=r"expected options of config.model among .* for small_resnet, found dropout"
    ):
        config = default.get_config()
        config.model.dropout = 0.5
        rules.check(config)


def test_the_initial_values_are_set_on_the_command_line_of_any_config(monkeypatch):
    """Empty is the network's own: what is stored of a model, and so its parameters, stay as before
    there was the setting.
    """
    holder = flags.FlagValues()
    config_flags.DEFINE_config_file("config", lock_config=True, flag_values=holder)
    command = ["train.py", f"--config={ROOT / 'configs/default.py'}", "--config.model.init=goyal"]
    monkeypatch.setattr(sys, "argv", command)  # where ml_collections finds which settings are given
    holder(command)
    given = holder.config
    rules.check(given)
    plain = {"name": "small_resnet", "dtype": ""}
    assert study.model_config(given, "standard", 0).model.to_dict() == plain | {"init": "goyal"}
    assert study.model_config(default.get_config(), "standard", 0).model.to_dict() == plain


def test_a_config_that_lacks_settings_is_refused():
    config = default.get_config()
    del config.train.epochs
    with pytest.raises(SettingsError, match=r"expected config\.train\.epochs, found no such setting; .*default"):
        rules.check(config)


def test_the_page_of_settings_is_made_of_them():
    assert (ROOT / "docs/reference/settings.md").read_text() == settings.page(), "python -m tools.settings writes it"


def test_help_lists_every_setting_with_its_default(monkeypatch):
    monkeypatch.chdir(ROOT)
    listed = rules.listed(cli._load("configs/overlap_shapes.py")).splitlines()
    assert [line.split("=")[0].split(":")[0] for line in listed] == [f"config.{key}" for key in sections.SETTINGS]
    assert "config.train.epochs=6: epochs of training (a whole number from 0 to 1000000)" in listed
