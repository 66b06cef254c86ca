"""The settings: every range holds at both ends, contradictions are refused, unknown keys named, and all are listed."""

import math
import sys

import pytest
from absl import flags
from ml_collections import config_flags

from configs import default
from runtime.settings import SettingsError
from tests.processes import ROOT
from tests.refusing import refuses
from tools import settings
from training import cli, sections, study

INF, NAN = math.inf, math.nan
INT32, INT64 = 2**31 - 1, 2**64 - 1
_SEED = ((0, 2**40, INT64), (-1, INT64 + 1, 1.0, True, "0"))
_COUNT = ((1, INT32), (0, -1, INT32 + 1, 2.5))
_LIMIT = ((0, INT32), (-1, INT32 + 1, 2.5))
_BATCH = ((1, 2**20), (0, -5, 2**20 + 1, 1.5))
_SHARE = ((0.0, 0, 0.5, 1.0), (-1e-9, 1.0000001, NAN, INF, True))
_SHARE_BELOW_1 = ((0.0, 0.999), (-1e-9, 1.0, 5, NAN, "0.5"))
_UP = ((0.0, 0, 1e30), (-1e-9, INF, NAN, None))
_ABOVE = ((1e-30, 1e30), (0.0, -1.0, INF, NAN))
_NAMES = (((), ("imagenet_c", "noc/border"), ["fog"]), (("imagenet_d",), "imagenet_c", (3,)))
_SOME_NAMES = ((("imagenet_c",),), ((), ("imagenet_d",), "imagenet_c"))
_TEXT = (("", "a b"), (0, None, ("a",)))
_BOOL = ((True, False), (0, 1, None, "True"))
_SEVERITY = (("random", "levels", "3", "1,3,5", "0,0.5,1"), ("", "strong", "1,", "-1", "nan", "inf", 3))
_FOLDER = (("msd", "a/b"), ("", "/a", "a/../..", 3))
_SCHEME = (("", "augmix", "augmix=rotate+equalize", "stored=gone.npz"), ("augmxi", 0))


def _each(keys, case):
    return dict.fromkeys(keys.split(), case)


# key -> values it takes, the ends of its range among them; values it refuses, among them those just beyond the ends
VALUES = (
    _each("seed eval.seed adapt.seed msd.model_seed msd.seed search.seed calibrate.seed", _SEED)
    | _each("ranges frost bank style dataset.data_dir model.checkpoint train.transforms train.mix_in.data_dir", _TEXT)
    | _each("train.init_from eval.natural_dir eval.stored eval.reference adain.encoder adain.decoder", _TEXT)
    | _each("eval.images adain.styles msd.model msd.errors", _TEXT)
    | _each("dataset.train_limit dataset.test_limit adain.steps msd.chunk search.draws calibrate.images", _LIMIT)
    | _each("eval.temperature", _LIMIT)
    | _each("model.scale train.learning_rate adain.learning_rate study.finetune.learning_rate", _ABOVE)
    | _each("model.dropout train.label_smoothing train.momentum", _SHARE_BELOW_1)
    | _each("dataset.turn model.memory_efficient train.flip train.flip_alternates train.mixup train.nesterov", _BOOL)
    | _each("train.tensorboard eval.verify eval.ensemble", _BOOL)
    | _each("train.corrupted_fraction train.stability_noise study.threshold", _SHARE)
    | _each("train.scheme adapt.scheme msd.subsets.scheme msd.resampling.scheme", _SCHEME)
    | _each("train.jsd_weight train.stability_weight train.warmup_epochs train.weight_decay eval.pseudo_count", _UP)
    | _each("adain.style_weight adapt.pseudo_count study.finetune.warmup_epochs", _UP)
    | _each("train.batch_size eval.batch_size adain.batch_size", _BATCH)
    | _each("train.checkpoint_epochs msd.images msd.transforms msd.draws msd.subsets.pool", _COUNT)
    | _each("msd.resampling.pairs search.images", _COUNT)
    | _each("eval.corruptions study.corruptions", _NAMES)
    | _each("eval.severity msd.severity msd.toy.severity", _SEVERITY)
    | _each("msd.corruptions calibrate.corruptions", _SOME_NAMES)
    | _each("msd.out msd.toy.out msd.subsets.out msd.resampling.out", _FOLDER)
    | _each("dataset.train_size train.crop train.random_resized_crop train.random_crop", ((0, 4096), (-1, 4097)))
    | _each("model.exits model.step model.base", ((1, 100), (0, 101, 1.5)))
    | _each("train.epochs study.finetune.epochs", ((0, 1_000_000), (-1, 1_000_001, 1.5)))
    | _each("msd.toy.first msd.toy.second", (("fog",), ("", "fgo", "imagenet_c")))
    | _each("msd.resampling.images msd.resampling.draws", (((1, 2), [10]), ((), (0,), (5, 2), 5)))
) | {
    "imports": (((), ("numpy",)), ((3,), "numpy")),
    "dataset.name": (("shapes", "image_folder"), ("", "cifar11", 3)),
    "dataset.seed": ((0, 2**32 - 1), (-1, 2**32)),
    "dataset.image_size": ((8, 4096), (0, 7, 4097, 32.5)),
    "dataset.resize": (("crop", "squash"), ("", "stretch", 1)),
    "dataset.placement": (("auto", "device", "stream"), ("", "host")),
    "model.name": (("resnet18", "small_resnet"), ("", "resnet17")),
    "model.dtype": (("", "float32", "bfloat16", "float16"), ("int8", "float64", None)),
    "model.class_stride": ((1, 10, 1000), (0, -1, 1001)),
    "model.stem": ((1, 4096), (0, 4097)),
    "model.widths": (((1,), (64, 64), [65536]), ((), (0,), (65537,), 64)),
    "model.mean": (((), (0, 0.5, 1)), ((0, 0.5), (0, 0, 1.1), (NAN, 0, 0), 0.5, "")),
    "model.std": (((), (0.1, 0.1, 1)), ((0, 0.5, 1), (1, 1, 1, 1), (INF, 1, 1))),
    "model.init": (("", "he", "xavier", "goyal"), ((), "lecun")),
    "model.conv": (("auto", "cpu", "xla"), ("", "gpu")),
    "train.corruption": (("standard", "fog", "mixture=imagenet_noc"), ("", "fgo", "mixture=fog")),
    "train.corruption_options": (
        ({}, {"noc/border": {"range": [3, 5]}}, {"fog": {"levels": (1, 3)}}, {"fog": {"range": [1, 5]}}),
        (
            *({"fgo": {}}, {"fog": 3}, {"fog": {"wind": 3}}, {"fog": {"levels": 3}}, {"fog": {"levels": (0, 6)}}),
            *({"fog": {"range": [0, 5]}}, {"fog": {"range": 3}}),
            *({"noc/border": {"range": 3}}, {"noc/border": {"range": [1, NAN]}}),
        ),
    ),
    "train.reading": (("paper", "code"), ("", "Paper")),
    "train.enhance": (
        ("", "clahe", "nlm", "nlm:sigma=.1,h=.6", "clahe_rgb:clip=4,grid=4x2", "clahe_skimage:tiles=4"),
        ("ten_crop", "stability", "clahee", "clahe:clipp=4", "nlm:sigma=-1", "train=clahe", "clahe,nlm", None),
    ),
    "train.frozen": (("", "backbone"), ("head", True)),
    "train.mix_in.name": (("", "shapes"), ("cifar11", None)),
    "train.schedule": (("step", "cosine", "triangle"), ("", "linear")),
    "train.milestones": (((), (1,), (20, 30)), ((0,), (30, 20), (20, 20), (1.5,), 20)),
    "train.decay_factor": ((1e-30, 1.0), (0.0, -1.0, 1.1, NAN)),
    "train.batch_norm": (("synchronised", "per_device", "groups=2", "running"), ("", "groups=0", "groups=x", 2)),
    "eval.natural": (
        ("", "imagenet_r", "imagenet_r,objectnet", "cifar10_1, cinic10"),
        ("imagenet-r", "cinic10,cinic10", "imagenet_r objectnet", ("imagenet_r",), 3),
    ),
    "eval.enhance": (("", "clahe", "ten_crop"), ("clahee", "clahe,nlm", None)),
    "eval.reference_mismatch": (("refuse", "label"), ("", "ignore")),
    "eval.adapt": (("", "test"), ("train", True)),
    "eval.superclasses": (("", "mean", "sum"), ("max", None)),
    "adain.widths": (((64, 128, 256, 512), [1, 1, 4096, 1]), ((64, 128, 256), (0, 1, 1, 1), (4097, 1, 1, 1), 64)),
    "adain.drawn": ((1, 100_000), (0, 100_001, 1.5)),
    "adain.reading": (("port", "original"), ("", "paper")),
    "adapt.images": ((2, INT32), (1, 0, INT32 + 1)),
    "adapt.batch_size": ((2, 2**20), (1, 0, 2**20 + 1)),
    "study.mixtures": (((), ("mixture=imagenet_noc",)), (("imagenet_noc",), ("mixture=fog",), "mixture=imagenet_noc")),
    "study.schemes": (
        ((), ("standard", "augmix=*", "augmix=rotate+jsd"), ["stored=gone/*.npz", "stored=gone.npz+jsd"]),
        (("augmxi",), ("standard+jsd",), ("augmix=*+jsd",), "augmix", (3,), ("noc/hue",)),
    ),
    "study.enhancements": (
        ((), ("clahe", "train=nlm", "train=stability", "train=clahe:clip=4,grid=4x4", "nlm:sigma=.1")),
        (("clahee",), ("stability",), ("train=ten_crop",), ("train=nlm:sgima=.1",), ("train=",), "clahe"),
    ),
    "study.seeds": (((0,), (3, 1, INT64)), ((), (0, 0), (-1,), (1.5,), 0)),
    "study.parallel": ((0, 65536), (-1, 65537)),
    "study.finetune.schedule": (("step", "cosine"), ("linear",)),
    "msd.schemes": (((), ("standard", "augmix=*")), (("",), "augmix", (3,))),
    "msd.halves": ((0, 2, 100_000), (1, -1, 100_001)),
    "msd.toy.fractions": (((0, 1.0), (0.5,)), ((), (-0.1,), (1.1,), (0.5, 0.5), (NAN,), 0.5)),
    "msd.subsets.sizes": (((1, 1000), [10]), ((), (0,), (5, 5), 5)),
    "msd.resampling.resamplings": ((2, INT32), (1, 2.5)),
    "search.seeds": (((), (0,), (3, 1)), ((-1,), (1, 1), 1)),
    "search.target": ((0, 26.9, 100.0), (-1e-9, 100.1, NAN)),
    "calibrate.targets": (((0.95, 0.5),), ((0.95,), (1.0, 0.5), (0.5, 0.0), (0.9, 0.8, 0.7), 0.5)),
}


def test_every_setting_has_a_meaning_and_a_case_here():
    assert VALUES.keys() == sections.SETTINGS.keys()
    for key, setting in sections.SETTINGS.items():
        assert len(setting.meaning) > 5 and setting.expected, key


@pytest.mark.parametrize("key", VALUES)
def test_every_range_holds_at_both_ends(key):
    taken, refused = VALUES[key]
    for value in taken:
        sections.SETTINGS[key].check(value)
    for value in refused:
        with pytest.raises(ValueError) as caught:
            sections.SETTINGS[key].check(value)
        assert str(caught.value) and "\n" not in str(caught.value), (key, value)


def changed(**values):
    config = default.get_config()
    config.update_from_flattened_dict({key.replace("__", "."): value for key, value in values.items()})
    return config


JSD = {"train__jsd_weight": 12.0, "train__scheme": "augmix"}
STABLE = {"train__stability_weight": 0.1, "train__stability_noise": 0.1}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"train__crop": 1000}, "expected config.train.crop below 32 pixels"),
        ({"train__random_resized_crop": 33}, "expected config.train.random_resized_crop up to 32 pixels"),
        ({"train__random_resized_crop": 24, "train__crop": 4}, "expected config.train.crop 0 with"),
        ({"train__random_crop": 33}, "expected config.train.random_crop up to 32 pixels"),
        ({"train__random_crop": 24, "train__random_resized_crop": 24}, "expected config.train.random_crop 0 with"),
        ({"dataset__name": "imagenet100", "dataset__train_size": 31}, "train_size of at least image_size 32"),
        ({"dataset__resize": "squash"}, "expected config.dataset.resize 'crop' with shapes"),
        ({"dataset__turn": True}, "expected config.dataset.turn False with shapes"),
        ({"dataset__name": "cifar10", "dataset__train_size": 64}, "expected config.dataset.train_size 0 with cifar10"),
        ({"train__schedule": "cosine", "train__warmup_epochs": 40}, "config.train.warmup_epochs below 40 epochs"),
        ({"train__warmup_epochs": 1}, "expected config.train.warmup_epochs 0 with schedule 'step'"),
        ({"train__init_from": "standard", "study__finetune__warmup_epochs": 1}, "config.study.finetune.warmup_epochs"),
        (
            {"train__init_from": "standard", "train__batch_norm": "groups=8", "study__finetune__batch_size": 100},
            "expected config.study.finetune.batch_size to be a multiple of 8, found 100",
        ),
        ({"train__batch_norm": "groups=3"}, "expected config.train.batch_size to be a multiple of 3, found 256"),
        ({"train__jsd_weight": 12.0}, "expected config.train.jsd_weight with a config.train.scheme"),
        (JSD | {"train__corruption": "noc/hue"}, "found scheme 'augmix' and corruption 'noc/hue'"),
        (JSD | {"train__label_smoothing": 0.1}, "expected config.train.label_smoothing 0"),
        ({"train__stability_weight": 0.1}, "train.stability_noise both above 0, or both 0, found 0.1 and 0.0"),
        (JSD | STABLE, "expected config.train.stability_weight 0"),
        (STABLE | {"train__mixup": True}, "a train.jsd_weight or train.stability_weight, found True with 0.0 and 0.1"),
        ({"adapt__images": 100}, "expected config.adapt.images of at least a batch of 500, found 100"),
        ({"eval__adapt": "test", "eval__stored": "DIR"}, "expected no config.eval.stored with config.eval.adapt"),
        ({"eval__images": "FILE", "eval__stored": "DIR"}, "expected no config.eval.images with config.eval.stored"),
        ({"eval__adapt": "test", "eval__enhance": "clahe"}, "expected no config.eval.enhance with config.eval.adapt"),
        ({"eval__verify": True}, "expected config.eval.stored with config.eval.verify, found True alone"),
        ({"eval__natural_dir": "DIR"}, "expected config.eval.natural with config.eval.natural_dir, found 'DIR' alone"),
        ({"eval__pseudo_count": 4.0}, "expected config.eval.adapt with config.eval.pseudo_count, found 4.0 alone"),
        ({"train__flip_alternates": True, "train__flip": False}, "expected config.train.flip with"),
        (
            {"train__reading": "code", "train__corrupted_fraction": 0.3},
            "expected no config.train.corrupted_fraction with",
        ),
        ({"calibrate__targets": (0.5, 0.95)}, "mild > severe, found (0.5, 0.95)"),
        ({"msd__subsets__pool": 100}, "expected config.msd.subsets.sizes up to the pool of 100, found 1000"),
        ({"msd__toy__second": "imagenet_c/motion_blur"}, "expected two corruptions in config.msd.toy"),
        ({"model__name": "alexnet"}, "expected images of at least"),
        ({"model__dropout": 0.5}, "for small_resnet, found dropout"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(SettingsError) as caught:
        cli.check(changed(**values))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_every_wrong_setting_is_named_and_unknown_ones_with_the_likeliest():
    wrong = changed(train__epochs=-1, train__momentum=5.0)
    wrong.train.epoch = 3
    wrong.model.wdths = (3,)
    with pytest.raises(SettingsError) as caught:
        cli.check(wrong)
    assert str(caught.value).splitlines() == [
        "there is no setting config.model.wdths; did you mean config.model.widths?",
        "there is no setting config.train.epoch; did you mean config.train.epochs?",
        "config.train.epochs: expected a whole number from 0 to 1000000, found -1",
        "config.train.momentum: expected a number in [0, 1), found 5.0",
    ]


@pytest.mark.parametrize(
    "key, text, meant",
    [
        ("train.lr", ".1", "config.train.learning_rate?"),
        ("lr", ".1", "config.train.learning_rate?"),
        ("train.wd", "0", "config.train.weight_decay?"),
        ("train.learning_rate", "10%", "0.1?"),
        ("train.epochs", "10%", None),
        ("train.xyz", "3", None),
    ],
)
def test_a_first_guess_of_a_setting_is_answered_by_the_one_that_was_meant(key, text, meant):
    with pytest.raises(SettingsError) as caught:
        cli.overridden(default.get_config(), {key: text})
    said = str(caught.value)
    assert said.endswith(f"did you mean {meant}") if meant else "did you mean" not in said


def test_the_initial_values_are_set_on_the_command_line_of_any_config(monkeypatch):
    """Empty is the network's default, and is not stored."""
    holder = flags.FlagValues()
    config_flags.DEFINE_config_file("config", lock_config=True, flag_values=holder)
    command = ["train.py", f"--config={ROOT / 'configs/default.py'}", "--config.model.init=goyal"]
    monkeypatch.setattr(sys, "argv", command)  # where ml_collections finds which settings are given
    holder(command)
    given = holder.config
    cli.check(given)
    plain = {"name": "small_resnet", "dtype": ""}
    assert study.model_config(given, "standard", 0).model.to_dict() == plain | {"init": "goyal"}
    assert study.model_config(default.get_config(), "standard", 0).model.to_dict() == plain


def test_a_config_that_lacks_settings_is_refused():
    config = default.get_config()
    del config.train.epochs
    refuses(lambda: cli.check(config), "no such setting", "default", kind=SettingsError)


def test_the_page_of_settings_is_made_of_them():
    assert (ROOT / "docs/reference/settings.md").read_text() == settings.page(), "python -m tools.settings writes it"


def test_help_lists_every_setting_with_its_default(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cli, "_default", "configs/overlap_shapes.py")
    monkeypatch.setattr("__main__.__doc__", "A command.")
    listed = cli.help_text(every=True).partition("Settings:\n")[2].replace("  --", "").splitlines()
    assert [line.split("=")[0].split(":")[0] for line in listed] == [f"config.{key}" for key in sections.SETTINGS]
    assert "config.train.epochs=6: epochs of training (a whole number from 0 to 1000000)" in listed


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("configs/aug_fog.py", "runs/aug_fog"),
        ("configs/aug.py:mixture=imagenet_noc", "runs/aug-mixture=imagenet_noc"),
        ("configs/aug.py:noc/contrast", "runs/aug-noc.contrast"),
    ],
)
def test_the_default_workdir_has_the_name_of_the_config_and_of_its_argument(given, expected, monkeypatch):
    class Flags(dict):
        workdir = None

    monkeypatch.setattr(cli.flags, "FLAGS", Flags(config=None))
    monkeypatch.setattr(cli.config_flags, "get_config_filename", lambda flag: given)
    assert str(cli._workdir()) == expected
