"""tools.check names every file that is damaged, edited or stale, and what to run; a good folder
passes.
"""

import json
import shutil

import numpy as np
import pytest
from absl import app
from PIL import Image

import eval as evaluation
from analysis import answers
from configs import default
from corruptions.write import write_dataset
from data import cache
from data.imagenet import shard, store
from evaluation import verification
from runtime import bindings, files
from tests.training import tiny
from tools import calibrate, check
from training import loop


class Quick:
    """In place of `evaluation.robustness.Robustness`."""

    clean = 0.9

    def __init__(self, *args, **options):
        pass

    def calibrated(self, targets):
        return {"range": [2.0, 4.0]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What train.py, eval.py, tools.calibrate and tools.msd leave, the last in little."""
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("made") / "work", tiny.config())
    config = default.get_config()
    config.eval.update({"corruptions": ("noc/border",), "batch_size": 32})
    config.calibrate.update({"corruptions": ("imagenet_c/fog",), "images": 70})
    evaluation.run(config, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "Robustness", Quick)
        calibrate.run(config, folder)
    settings = {"model": "standard", "model_seed": 0}
    files.write_json(folder / "msd" / "settings.json", settings)
    made_from = {"model": bindings.model_digest(folder, "standard", 0), "settings": bindings.digest(settings)}
    bindings.write_arrays(folder / "msd" / "centres" / "clean-0.npz", {"centre": np.ones(3)}, made_from)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "work")


def change(path, **changed):
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def test_a_good_workdir_passes(made, capsys):
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    assert check.main(["check", str(made), str(made)]) == 0
    # config, checkpoint, two answers, two tables, ranges, centre; draws, settings and two records
    # have no digest
    assert capsys.readouterr().out == 2 * (
        f"{made}: 10 verified, 4 without a digest (they could only be read), 0 wrong\n"
    )
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()} == before


def test_a_checkpoint_is_verified_whatever_it_was_trained_on(made, monkeypatch):
    """Such as a folder of images, whose classes only its run knew."""
    monkeypatch.setattr(verification, "_CLASSES", {})
    found = verification.verify(made)
    assert (found.problems, found.verified, found.unbound) == ([], 10, 4)


def lose(path):
    shutil.rmtree(path)


EDITS = {
    "config.json": lambda path: change(path, seed=5),
    "final.json": lambda path: change(path, digest="0" * 64),
    "checkpoints/0": lose,
    "answers/draws.json": lambda path: change(path, seed=5),
    "answers/clean-0.npz": lambda path: shutil.copy(path.with_name("noc.border-random.npz"), path),
    "counts.csv": lambda path: path.write_text(path.read_text().replace(",70\n", ",71\n", 1)),
    "scores.csv": lambda path: path.write_text(path.read_text().partition("\n")[2].replace(",70,", ",71,")),
    "ranges.json": lambda path: change(path, targets=[0.9, 0.4]),
    "msd/settings.json": lambda path: change(path, seed=5),
}
NAMED = {  # what is wrong with a file may be seen in those that were made from it
    "final.json": ("final.json", "work holds a finished model"),
    "checkpoints/0": ("work holds a finished model",),
    "answers/draws.json": ("clean-0.npz",),
    "answers/clean-0.npz": ("counts.csv",),
    "msd/settings.json": ("centres/clean-0.npz",),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_was_edited_or_lost_is_named_with_what_to_run(folder, capsys, name):
    EDITS[name](folder / name)
    assert check.main(["check", str(folder)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert last.endswith(f"{len(lines)} wrong") and lines
    (line, *_) = [line for line in lines if any(part in line for part in NAMED.get(name, (name,)))]
    assert "again: python" in line or "python -m" in line or "Restore it" in line


def test_what_is_left_of_an_earlier_model_is_named(folder):
    tiny.train_again(folder, tiny.config())
    wrong = verification.verify(folder).problems
    for name in (
        "answers/clean-0.npz",
        "answers/noc.border-random.npz",
        "counts.csv",
        "ranges.json",
        "centres/clean-0",
    ):
        assert any(name in line for line in wrong), (name, wrong)
    assert len(wrong) == 5


def test_answers_to_natural_test_sets_are_to_other_images(folder):
    made_from = answers.MadeFrom("1" * 64, 5, {("standard", 0): bindings.model_digest(folder, "standard", 0)})
    for name in ("natural/imagenet_r", "clean/imagenet_r", "noc/hue"):
        path = folder / "answers" / f"{answers.file_stem(name, 0)}.npz"
        answers.write(path, {("standard", 0): np.ones(5, bool)}, made_from)
    (line,) = verification.verify(folder).problems
    assert "noc.hue-0.npz: expected answers to the images that draws.json tells of" in line


def test_enhanced_models_and_what_lies_deeper_in_a_study_are_checked(tmp_path):
    """Folders of projects.structural.enhancement_study and tools.cbar; only what is looked at is there."""
    names = ("standard+enhance=clahe", "standard+train=clahe+enhance=nlm")
    for number, study in enumerate((tmp_path, tmp_path / "train=clahe")):
        files.write_json(study / "models" / "standard" / "seed0" / "final.json", {"step": 0, "digest": str(number)})
    assert [bindings.model_digest(tmp_path, name, 0) for name in names] == ["0", "1"]
    assert bindings.model_digest(tmp_path, "standard+bn=test:16", 0) == "0"
    made_from = answers.MadeFrom("1" * 64, 5, {(name, 0): "earlier" for name in names})
    for name, corruption in zip(names, ("noc/hue", "noc/border"), strict=True):
        path = tmp_path / "answers" / f"{answers.file_stem(corruption, 0)}.npz"
        answers.write(path, {(name, 0): np.ones(5, bool)}, made_from)
    run = tmp_path / "features" / "run0"
    files.write_json(run / "settings.json", {"model": "standard", "model_seed": 0})
    bindings.write_arrays(run / "centres" / "clean-0.npz", {"centre": np.ones(3)}, {"model": "earlier"})
    wrong = verification.verify(tmp_path).problems
    for name in ("noc.hue-0.npz", "noc.border-0.npz", "clean-0.npz", "train=clahe/models/standard/seed0/config"):
        assert any(name in line for line in wrong), (name, wrong)


def test_no_damage_is_a_traceback(folder, made, monkeypatch):
    monkeypatch.setattr(loop, "read_back", lambda *args, **kwargs: None)  # which takes long; its damages: above
    assert verification.verify(folder).problems == []
    names = [path for path in made.rglob("*") if path.is_file() and "checkpoints" not in path.parts]
    names = [path.relative_to(made) for path in names if path.name not in (".lock", "metrics.jsonl")]
    assert len(names) == 14
    for name in names:
        whole = (folder / name).read_bytes()
        half = len(whole) // 2
        flipped = whole[:half] + bytes([whole[half] ^ 255]) + whole[half + 1 :]
        for content in (b"", whole[:half], flipped, b"[]", b"{}", b'{"inputs": 3, "provenance": []}', b"\xff\xfe"):
            (folder / name).write_bytes(content)
            wrong = verification.verify(folder).problems
            without = name.name in ("provenance.json", "evaluation.json", "draws.json", "settings.json")
            named = any(name.name in line for line in wrong)
            assert named or (without and content[:1] == b"{"), (name, content, wrong)  # an object, with no digest of it
        (folder / name).write_bytes(whole)
    assert verification.verify(folder).problems == []


def test_a_folder_in_use_is_left_to_its_run(folder):
    with files.locked(folder):
        assert "in use by another run" in verification.verify(folder).problems[0]


def test_a_cache_is_checked_by_its_own_room(tmp_path):
    images = np.arange(2 * 16 * 16 * 3, dtype=np.uint32).astype(np.uint8).reshape(2, 16, 16, 3)
    entry = cache.cached("a", "key", lambda notes: iter([(images, np.arange(2), np.arange(2))]), tmp_path)
    assert entry.images.shape == images.shape and check.run([tmp_path]) == 0
    (path,) = tmp_path.glob("*/images.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    assert check.run([tmp_path]) == 1


def test_a_written_dataset_is_checked_by_its_own_room(tmp_path, capsys):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)
    write_dataset(tmp_path, (images, np.zeros(12, int)), corruptions="noc/contrast", severities=[1])
    assert check.run([tmp_path]) == 0
    (tmp_path / "contrast.npy").write_bytes((tmp_path / "contrast.npy").read_bytes()[:-500] + bytes(500))
    assert check.run([tmp_path]) == 1
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith(f"{tmp_path / 'contrast.npy'}: expected sha256") and "; mend it with " in line
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for harm in ({"layout": 3, "images": "x"}, {"corruptions": {"noc/contrast": []}}, {"files": {"contrast.npy": 1}}):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | harm))
        (line,) = check.check(tmp_path).problems
        assert "manifest.json is not a readable manifest" in line


def test_a_prepared_imagenet_is_checked_by_its_own_room(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), np.uint8)
    (tmp_path / "shards").mkdir()
    for name in ("a", "b"):
        Image.fromarray(images[0]).save(tmp_path / f"{name}.png")
    items = [(name, 0, str(tmp_path / f"{name}.png")) for name in ("a", "b")]
    records = {split: [shard.write(tmp_path / "shards" / f"{split}-0.npy", items, 16, 18)] for split in store.SPLITS}
    store.finish(tmp_path, "imagenet100", ["n0"], {"sides": {"train": (16, 18), "test": (16, 18)}}, records)
    assert check.run([tmp_path]) == 0
    path = tmp_path / "shards" / "test-0.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    (line,) = check.check(tmp_path).problems
    assert line.startswith(f"{path}: expected sha256") and "python -m data.prepare" in line


def test_other_folders_are_named_and_none_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        (line,) = check.check(path).problems
        assert str(path) in line and "expected a folder (workdir" in line
    with pytest.raises(app.UsageError, match="one or more folders"):
        check.main(["check"])
