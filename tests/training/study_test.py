"""The models of a study: names, schemes, fine-tuning, and a second dataset."""

import json
import shutil
import sys
import types

import chex
import jax
import numpy as np
import pytest
from PIL import Image

import data
import train
from corruptions.augment import stored
from evaluation.shown import Shown
from runtime import meshes, workdirs
from tests import processes
from tests.analysis.made_up import read_counts
from tests.reference.photographs import photographs
from tests.refusing import refuses
from tests.training import tiny
from training import augmentation, batches, steps, study
from training.batches import Plan
from training.checkpoints import Checkpoints


@pytest.fixture
def stored_schemes(tmp_path):
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


def test_files_of_transforms_are_found_by_a_pattern(stored_schemes):
    found = augmentation.expand_schemes((f"stored={stored_schemes}/*.npz",))
    assert [name.partition("@")[0] for name in found] == ["stored=closest_1", "stored=closest_2"]
    assert list(found.values()) == [f"stored={stored_schemes}/closest_1.npz", f"stored={stored_schemes}/closest_2.npz"]
    both = augmentation.expand_schemes((f"stored={stored_schemes}/*_1.npz+jsd",))
    assert [name[:17] for name in both] == ["stored=closest_1@"] and all(name.endswith("+jsd") for name in both)
    refuses(lambda: augmentation.expand_schemes((f"stored={stored_schemes}/gone/*.npz",)), "of stored transforms at")


@pytest.mark.parametrize("name", ["augmxi", "noc/hue", "mixture=imagenet_noc", "augmix=spin"])
def test_what_is_no_scheme_is_refused(name):
    with pytest.raises(ValueError, match=r"expected config.study.schemes of|expected an operation of"):
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
    config.train.enhance = "clahe:clip=4,grid=4x4"
    assert study.name_of(config.train) == "standard+train=clahe:clip=4,grid=4x4"
    config.train.enhance = "clahe"
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


def finetuned():
    found = tiny.config(init_from="standard")
    recipe = {"learning_rate": 0.0, "epochs": 1, "schedule": "step", "milestones": (), "weight_decay": 0.0}
    found.study.finetune = recipe
    return found


def differ(first, second):
    return not all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(first.params), jax.tree.leaves(second.params)))


def test_finetuned_models_start_from_the_standard_model_and_use_their_own_settings(
    dataset, mesh, tmp_path, monkeypatch
):
    # Traced once for the standard models and once for the fine-tuned ones, whose optimiser is another.
    chex.clear_trace_counter()
    monkeypatch.setattr(steps, "train_block", chex.assert_max_traces(steps.train_block, n=2))
    split = dataset.train.to_device(meshes.replicated(mesh))
    found = study.Trainings(finetuned(), ("standard", "noc/border"), (0, 1), tmp_path, dataset, split, mesh).train()
    for seed in (0, 1):
        standard, border = found["standard", seed][1], found["noc/border", seed][1]
        assert (int(standard.step), int(border.step)) == (10, 5)
        chex.assert_trees_all_equal(standard.params, border.params)  # at learning rate 0 nothing else moves them
    assert differ(found["standard", 0][1], found["standard", 1][1])
    again = study.Trainings(finetuned(), ("standard", "noc/border"), (0, 1), tmp_path, dataset, split, mesh).train()
    chex.assert_trees_all_equal(again["noc/border", 1][1], found["noc/border", 1][1])


def test_finetuned_models_have_their_own_batches(tmp_path):
    """Their size enters the mesh and the seconds of training; statistics per device become groups."""
    config = finetuned()
    config.study.finetune.update({"batch_size": 16, "batch_norm": "per_device"})
    made = study.finetuned_config(config, study.model_config(config, "standard", 0), "noc/border", devices=2)
    assert (made.train.batch_size, made.train.batch_norm) == (16, "groups=2")
    for name in ("standard", "noc/border"):
        folder = study.model_dir(tmp_path, name, 0)
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text('{"step": 10, "images_per_second": 32.0}\n')
    study.write_timing(config, tmp_path, [("standard", 0), ("noc/border", 0)])
    written = json.loads((tmp_path / "timing.json").read_text())
    assert written["training_seconds"] == {"standard|0": 10.0, "noc/border|0": 5.0}


STOPPED = """
import pathlib, sys, jax, data
jax.config.update("jax_num_cpu_devices", 2)
from runtime import meshes
from tests.training import study_test, tiny
from training import loop, states, study
mesh, one = meshes.data_mesh(32), study.model_config(tiny.config(), "noc/border", 0)
split = data.load("shapes", train_limit=160, test_limit=70).train.to_device(meshes.replicated(mesh))
another = study.model_config(tiny.config(), "standard", 1)
start = states.initial_state(*states.build_model(another, 10, 32)[1:], states.make_optimizer(one.train, 5))
def end(name):
    (folder := pathlib.Path(sys.argv[1], name)).mkdir(exist_ok=True)
    return loop.train(one, split, 10, folder, mesh=mesh, initial=start)[1]
whole, save = end("whole"), loop.Checkpoints.save
def stop(self, state):
    save(self, state)
    raise KeyboardInterrupt
loop.Checkpoints.save = stop
try:
    end("halves")
except KeyboardInterrupt:
    pass
loop.Checkpoints.save = save
halves = end("halves")
assert len(jax.devices()) == 2 and int(halves.step) == 10 and not study_test.differ(whole, halves)
print("equal")
"""


def test_a_finetuned_run_that_was_stopped_continues_on_several_devices(tmp_path):
    """Two CPU devices, stopped after an epoch (its checkpoint is kept): it ends like an undisturbed run."""
    done = processes.run([sys.executable, "-c", STOPPED, tmp_path])
    assert done.returncode == 0 and done.stdout.endswith("equal\n"), done.stderr


def test_another_standard_recipe_makes_other_finetuned_models():
    one, other = finetuned(), finetuned()
    other.train.epochs = 3
    configs = [study.finetuned_config(c, study.model_config(c, "standard", 0), "noc/border") for c in (one, other)]
    configs = [c.to_dict() for c in configs]
    assert configs[0]["train"] == configs[1]["train"]
    assert configs[0]["start"] != configs[1]["start"]


@pytest.mark.parametrize(
    "train, message",
    [
        ({"init_from": "runs/other"}, "init_from '' or 'standard' in a study, found 'runs/other'"),
        ({"scheme": "augmix"}, "expected config.train.scheme '' in a study, found 'augmix'; tools.scheme_study"),
    ],
)
def test_settings_that_a_study_has_of_its_own_are_refused(tmp_path, train, message):
    with pytest.raises(ValueError, match=message):
        study.Trainings(tiny.config(**train), ("standard",), (0,), tmp_path, None, None, meshes.data_mesh())


def test_a_model_to_start_from_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    refuses(
        lambda: train.train_and_evaluate(tiny.config(init_from="nowhere"), tmp_path / "work"),
        "none in nowhere",
        kind=FileNotFoundError,
    )
    assert not (tmp_path / "work").exists()


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
    folder(root, "plain", 0)
    folder(root, "styled", 100)
    return root


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
    order = batches.epoch_order(jax.random.key(1), plan.images_per_epoch)
    seen = []
    for begin in range(0, 4, plan.block_steps):
        images, labels = batches.block(plan, split, order, begin, tiny.KEYS, mesh)
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
    refuses(
        lambda: train.train_and_evaluate(settings(root), tmp_path / "run"),
        "trained on other images",
        "mixed_in.images",
        kind=workdirs.WorkdirError,
    )
    changed.write_bytes(before)
    refuses(
        lambda: train.train_and_evaluate(settings(root, name=""), tmp_path / "run"),
        "stored 'image_folder', asked ''",
        kind=workdirs.WorkdirError,
    )


def test_a_run_on_one_dataset_refuses_other_images_too(root, tmp_path):
    shutil.copytree(root / "plain", tmp_path / "plain")
    config = settings(tmp_path, name="")
    train.train_and_evaluate(config, tmp_path / "run")
    Image.fromarray(np.full((16, 16, 3), 9, np.uint8)).save(tmp_path / "plain" / "train" / "left" / "more.png")
    refuses(lambda: train.train_and_evaluate(config, tmp_path / "run"), "first.images", kind=workdirs.WorkdirError)


def test_a_dataset_of_ones_own_without_digests_is_bound_by_a_sample(tmp_path, monkeypatch):
    """Labels and index are digested whole, and 2,000 images; a run of an earlier version recorded none, and continues."""
    monkeypatch.setattr(data, "_SOURCES", dict(data._SOURCES))
    pixels = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)

    def load(name, **_):
        train_split, test = (
            data.Split(pixels[part], np.arange(6, dtype=np.int32), np.arange(6)) for part in np.split(np.arange(12), 2)
        )
        return data.Dataset(name, tuple("abcdef"), train_split, test, {"source": "mine"})

    data.register("mine", load)
    config, mesh, workdir = tiny.config(), meshes.data_mesh(16), workdirs.Workdir(tmp_path)
    config.dataset.update({"name": "mine", "train_limit": 0, "test_limit": 0})
    workdir.write_json("data.json", {"name": "mine"})
    for _ in range(2):
        dataset, *_ = study.load_for_training(config, mesh, workdir)
    sample = workdir.read_json("data.json")["train"]["sample"]
    assert (
        sample["number"] == 6
        and Shown.of(config, dataset.test, mesh, dataset).digests == dataset.provenance["test"]["sample"]
    )
    pixels[3] = 255 - pixels[3]
    refuses(lambda: study.load_for_training(config, mesh, workdir), "first.images", kind=workdirs.WorkdirError)


def test_a_second_dataset_that_is_missing_or_has_other_classes_is_refused(root, tmp_path):
    other = folder(tmp_path, "styled", 100, ("left", "top"))
    missing = r"config\.train\.mix_in: expected a folder of images .*gone"
    for name, place, error, message in (
        ("image_folder", other, ValueError, r"expected the class names of image_folder .* different in right, top"),
        ("image_folder", tmp_path / "gone", FileNotFoundError, missing),
        ("imagenet", tmp_path / "gone", FileNotFoundError, missing),
    ):
        with pytest.raises(error, match=message):
            study.load_data(settings(root, name=name, data_dir=str(place)), meshes.data_mesh(16), mixed=True)


OF_FOUR = "('laion_c/mosaic','optics/coma','camera/dark','robodepth/fog')"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_study_of_corruptions_of_four_benchmarks(tmp_path):
    """Four small networks and a standard one are trained, evaluated and compared, with a bank from a folder."""
    (tmp_path / "bank").mkdir()
    for number, tile in enumerate(photographs(12, 32, 32)):
        Image.fromarray(np.asarray(tile)).save(tmp_path / "bank" / f"{number}.png")
    given = [f"--workdir={tmp_path / 'study'}", f"--config.bank={tmp_path / 'bank'}"]
    smaller = ["--config.train.epochs=1", "--config.train.milestones=()", "--config.dataset.train_limit=500"]
    command = ["overlap.py", "--config=configs/overlap_imagenet100.py:smoke", f"--config.study.corruptions={OF_FOUR}"]
    done = processes.run([sys.executable, *command, *given, *smaller], timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    shown = {count.corruption for _, count in read_counts(tmp_path / "study" / "counts.csv")}
    assert shown == {"clean", "laion_c/mosaic", "optics/coma", "camera/dark", "robodepth/fog"}


def test_a_run_continues_only_from_the_model_that_it_started_from(tmp_path, monkeypatch):
    config = tiny.config()
    begun, work, save = tiny.untrained_workdir(tmp_path / "begun", config), tmp_path / "work", Checkpoints.save
    config.train.init_from = str(begun)

    def stop(self, state):
        save(self, state)
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr(Checkpoints, "save", stop)
        train.train_and_evaluate(config, work)
    tiny.train_again(begun, config)
    with pytest.raises(workdirs.WorkdirError, match=r"start\.digest: stored '[0-9a-f]{64}', asked '[0-9a-f]{64}'"):
        train.train_and_evaluate(config, work)
    tiny.finish(begun, config)  # the first one again
    accuracy = train.train_and_evaluate(config, work)
    shutil.rmtree(begun)
    assert train.train_and_evaluate(config, work) == accuracy
