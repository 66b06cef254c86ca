"""Workdirs made of imported weights: evaluated, resumed, used further, and what is refused."""

import hashlib
import json
import shutil
import types

import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image
from safetensors.numpy import save_file

import data
import train
from configs import imagenet
from data import decode
from data.natural import sets
from eval import run as evaluate
from evaluation import trained_models
from runtime import meshes
from runtime.settings import SettingsError
from runtime.workdirs import Workdir, WorkdirError
from tests.analysis.made_up import read_counts
from tests.models import torch_reference
from tests.refusing import refuses
from tests.training import tiny
from tools import calibrate, weights
from training import states, study
from training.checkpoints import CheckpointError

CLASSES, PER_CLASS, SIDE = 3, 8, 33
FIRES_1_1 = ("M", 16, 16, "M", 32, 32, "M", 48, 48, 64, 64)


def forward(network, images):
    """A SqueezeNet 1.1 with six classes, of which every second is kept."""
    return torch_reference.squeezenet(network, images / 255, 6, 64, 3, FIRES_1_1)[:, ::2]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with `tree`, images of three classes, and `squeezenet.safetensors`, weights in torchvision's names."""
    root = tmp_path_factory.mktemp("imported")
    rng = np.random.default_rng(0)
    for label in range(CLASSES):
        for number in range(PER_CLASS):
            path = root / "tree" / "val" / f"n{label:08d}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            coarse = rng.integers(0, 256, (3, 4, 3), np.uint8)
            Image.fromarray(coarse).resize((50, 40), Image.Resampling.BICUBIC).save(path)
    save_file(network(root).arrays, root / "squeezenet.safetensors")
    return root


def network(root, seed=0):
    """Random weights, the biases of the logits such that every class is the answer to some image."""
    found = torch_reference.Network(seed)
    images = np.stack(list(images_of(root)))
    torch_reference.squeezenet(found, images / 255, 6, 64, 3, FIRES_1_1)
    bias = found.arrays["classifier.1.bias"]
    bias += 20  # far from the ReLU behind it
    bias -= torch_reference.squeezenet(found, images / 255, 6, 64, 3, FIRES_1_1).mean(0).astype(np.float32) - 20
    return found


def images_of(root):
    """The images as the evaluation must see them, in the order of their paths."""
    for path in sorted((root / "tree" / "val").rglob("*.png")):
        yield decode.read(path, SIDE)


def asked(root, **changes):
    config = imagenet.get_config("squeezenet1_1")
    config.model.checkpoint = str(root / "squeezenet.safetensors")
    config.model.class_stride = 2
    config.dataset.name = "image_folder"  # three classes, not a thousand
    config.dataset.data_dir = str(root / "tree")
    config.dataset.image_size = SIDE
    config.eval.corruptions = ("imagenet_c/contrast",)
    config.eval.severity = "1,5"
    config.eval.batch_size = 16
    config.update_from_flattened_dict(changes)
    return config


@pytest.fixture(scope="module")
def workdir(root):
    evaluate(asked(root), root / "work")
    return root / "work"


def test_eval_counts_what_the_independent_network_answers(root, workdir):
    counts = read_counts(workdir / "counts.csv")
    contrast = "imagenet_c/contrast"
    assert [(c.corruption, c.severity) for _, c in counts] == [("clean", 0), (contrast, 1), (contrast, 5)]
    images, labels = np.stack(list(images_of(root))), np.repeat(np.arange(CLASSES), PER_CLASS)
    logits = forward(network(root), images)
    margin = np.diff(np.sort(logits, 1))[:, -1]
    assert (margin > 1e-4).all() and len(set(logits.argmax(1))) == CLASSES  # rounding decides nothing
    expected = logits.argmax(1) == labels
    with np.load(workdir / "answers" / "clean-0.npz") as file:
        np.testing.assert_array_equal(np.unpackbits(file["standard|0"], count=len(labels)), expected)
    assert counts[0][1][2:] == (expected.sum(), len(labels))
    assert (workdir / "scores.csv").exists() and "AlexNet" not in (workdir / "errors.csv").read_text()  # no ImageNet


def test_the_weights_are_on_record(root, workdir):
    config = json.loads((workdir / "config.json").read_text())
    digest = hashlib.sha256((root / "squeezenet.safetensors").read_bytes()).hexdigest()
    assert config["imported"] == {"file": "squeezenet.safetensors", "sha256": digest, "class_stride": 2}
    assert config["train"]["epochs"] == 0 and "checkpoint" not in config["model"]
    assert json.loads((workdir / "provenance.json").read_text())["git_revision"]


def test_the_same_command_imports_nothing_again_and_later_ones_need_no_checkpoint(root, workdir, monkeypatch):
    before = (workdir / "final.json").stat().st_mtime_ns
    monkeypatch.setattr("models.torchvision.load", lambda *_, **__: pytest.fail("imported again"))
    first = evaluate(asked(root), workdir)
    more = asked(root, **{"model.checkpoint": "", "eval.corruptions": ("noc/border",), "eval.severity": "1"})
    second = evaluate(more, workdir)
    assert len(first) == 3 and len(second) == 4 and (workdir / "final.json").stat().st_mtime_ns == before


def test_a_damaged_checkpoint_is_imported_again(root, workdir, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(workdir, copy)
    for path in (copy / "checkpoints" / "0").rglob("*"):
        if path.is_file() and path.stat().st_size > 1000:
            path.write_bytes(path.read_bytes()[:500])
    config = asked(root, **{"eval.corruptions": ("noc/border",), "eval.severity": "1"})
    refuses(lambda: evaluate(config, copy), "Remove", "that made it imports", kind=CheckpointError)
    (copy / "final.json").unlink()
    assert len(evaluate(config, copy)) == 4


def test_training_may_start_from_the_workdir(root, workdir):
    config = asked(root)
    dataset, _, _ = study.load_data(config, mesh := meshes.data_mesh())
    begun = trained_models.read_start(workdir, study.model_config(config, "standard", 0), dataset, mesh)
    kernel = network(root).arrays["features.3.expand3x3.weight"].transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(begun.params["fires"][0]["expand3x3"]["kernel"][...], kernel)


def test_a_probe_starts_from_a_file_of_weights_and_a_new_last_layer(root):
    config = asked(root, **{"train.frozen": "backbone"})
    settings = study.model_config(config, "standard", 0)
    dataset, _, _ = study.load_data(config, mesh := meshes.data_mesh())  # of 3 classes, the weights of 6
    drawn = states.build_model(settings, 3, SIDE)[1]["head"]
    found = trained_models.read_start(root / "squeezenet.safetensors", settings, dataset, mesh).params
    kernel = network(root).arrays["features.3.expand3x3.weight"].transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(found["fires"][0]["expand3x3"]["kernel"][...], kernel)
    np.testing.assert_array_equal(found["head"]["kernel"][...], drawn["kernel"][...])
    settings.train.frozen = ""
    refuses(
        lambda: trained_models.read_start(root / "squeezenet.safetensors", settings, dataset, mesh),
        "of 3 classes in",
        "6; eval.py makes",
    )


def test_what_does_not_fit_is_refused_and_leaves_no_workdir(root, tmp_path):
    backbone, fit = {"train.frozen": "backbone", "model.checkpoint": ""}, train.train_and_evaluate
    for place, (run, changes, error, message) in enumerate((
        (evaluate, {"model.checkpoint": "no.pth"}, FileNotFoundError, r"config\.model\.checkpoint, found no file"),
        (evaluate, {"model.name": "resnet18"}, ValueError, "weights of resnet18"),
        (fit, {}, ValueError, r"config\.train\.init_from"),
        (fit, backbone, ValueError, r"config\.train\.init_from: expected a workdir or a file of weights with"),
        (evaluate, {"model.class_stride": 1}, ValueError, r"of 6 classes, .* found 3; --config\.model\.class_stride"),
    )):  # fmt: skip
        with pytest.raises(error, match=message):
            run(asked(root, **changes), tmp_path / str(place))
    assert not {path.name for path in tmp_path.iterdir()} & {"0", "1", "3"}  # the other two open theirs first


def test_a_workdir_takes_no_other_weights_and_random_ones_cannot_be_calibrated(root, workdir):
    save_file(network(root, 1).arrays, root / "other.safetensors")
    other = {"model.checkpoint": str(root / "other.safetensors")}
    contrast = {"calibrate.corruptions": ("imagenet_c/contrast",), "calibrate.images": 0}
    for run, changes, error, message in (
        (evaluate, other, WorkdirError, r"imported\.sha256: stored '[0-9a-f]{64}', asked"),
        (evaluate, {"model.class_stride": 3}, WorkdirError, r"imported\.class_stride: stored 2, asked 3"),
        (calibrate.run, contrast, ValueError, "expected a standard model better than chance"),
    ):
        with pytest.raises(error, match=message):
            run(asked(root, **changes), workdir)


def test_class_folders_in_another_order_than_the_weights_are_refused(tmp_path):
    order = tuple(sets.imagenet().groups)[::10]
    trained = ConfigDict({"imported": {"class_stride": 10}})
    workdir = Workdir(tmp_path)
    trained_models.check_classes(
        trained, types.SimpleNamespace(name="imagenet100", class_names=order, num_classes=100), workdir
    )
    other = types.SimpleNamespace(name="imagenet100", class_names=(order[0], *order[:0:-1]), num_classes=100)
    with pytest.raises(ValueError, match=rf"{order[0]}, {order[1]} .*found {order[-1]} in the place of {order[1]}"):
        trained_models.check_classes(trained, other, workdir)
    trained_models.check_classes(ConfigDict(), other, workdir)  # trained here, before classes were recorded
    workdir.write_json("data.json", {"class_names": order})
    with pytest.raises(
        ValueError, match=rf"models of {tmp_path} were trained on, found {order[-1]} in the place of {order[1]}"
    ):
        trained_models.check_classes(ConfigDict(), other, workdir)
    workdir.write_json("data.json", {"class_names": other.class_names})
    trained_models.check_classes(ConfigDict(), other, workdir)


def test_images_of_other_classes_are_refused_by_whatever_reads_the_models(tmp_path):
    workdir = tiny.untrained_workdir(tmp_path / "work", tiny.config())
    dataset = data.load("shapes", train_limit=10, test_limit=10)
    names = dataset.class_names
    Workdir(workdir).write_json("data.json", {"class_names": [names[1], names[0], *names[2:]]})
    with pytest.raises(
        ValueError, match=rf"models of {workdir} were trained on, found {names[0]} in the place of {names[1]}"
    ):
        trained_models.read_models(workdir, dataset, meshes.data_mesh(1))


def test_the_config_of_imagenet_100_keeps_every_tenth_logit():
    whole, tenth = imagenet.get_config("densenet121"), imagenet.get_config("densenet121,100")
    assert (whole.dataset.name, whole.model.class_stride) == ("imagenet", 1)
    assert (tenth.dataset.name, tenth.model.class_stride) == ("imagenet100", 10)
    assert tenth.model.name == whole.model.name == "densenet121" and tenth.dataset.image_size == 224
    refuses(lambda: imagenet.get_config("resnet50,10"), "'resnet50,10'")


def test_a_table_of_weights_refuses_settings_whose_answers_lie_elsewhere(root, tmp_path):
    for key in ("stored", "superclasses"):
        with pytest.raises(SettingsError, match=rf"expected config\.eval\.{key} '', found 'x'; .* eval\.py does"):
            weights.run(asked(root, **{f"eval.{key}": "x"}), {"first": "FILE"}, tmp_path / "robust")


@pytest.mark.slow
def test_several_files_of_weights_end_in_one_table(root, workdir, tmp_path, capsys):
    """As tools.weights evaluates them: rows are called by the names given to the files."""
    wrapped = {f"module.{name}": array for name, array in network(root, 1).arrays.items()}
    save_file(wrapped, root / "wrapped.safetensors")
    files = {"first": str(root / "squeezenet.safetensors"), "second": str(root / "wrapped.safetensors")}
    config = asked(root, **{"model.checkpoint": ""})
    text = weights.run(config, files, tmp_path / "robust")
    rows = [line for line in text.splitlines() if line.startswith("| ") and ":standard" in line]
    assert [row.split()[1] for row in rows] == ["first:standard", "second:standard"]
    assert (tmp_path / "robust" / "table" / "table.csv").is_file()
    before, after = (read_counts(w / "counts.csv") for w in (workdir, tmp_path / "robust" / "first"))
    assert set(after) <= set(before)
    files["third"] = str(root / "no.safetensors")
    refuses(lambda: weights.run(config, files, tmp_path / "robust"), "no.safetensors", kind=FileNotFoundError)
