"""tools.check names every file that is damaged, edited or stale, and what to run; a good folder passes."""

import json
import shutil

import numpy as np
import pytest
from absl import app
from PIL import Image

import corruptions
import data
import eval as evaluation
from analysis import answers
from analysis.overlap import study as overlap_study
from analysis.report import inputs
from analysis.selection import benchmark
from configs import default
from corruptions.augment import stored
from corruptions.write import write_dataset
from data import cache
from data.imagenet import store
from runtime import artifacts, files, workdirs
from tests.refusing import refuses
from tests.tools import report_studies
from tests.training import tiny
from tools import calibrate, check
from training import loop, study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makes the files of train.py, eval.py, tools.calibrate and, in part, of tools.msd."""
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("made") / "work", tiny.config())
    config = default.get_config()
    config.eval.update({"corruptions": ("noc/border",), "batch_size": 32})
    config.calibrate.update({"corruptions": ("imagenet_c/fog",), "images": 70})
    evaluation.run(config, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "Robustness", tiny.QuickRobustness)
        calibrate.run(config, folder)
        patch.setattr(calibrate, "Robustness", None)
        calibrate.run(config, folder)  # measures nothing again
    workdirs.write_json(folder / "benchmark.json", {"members": ["noc/border"], "threshold": 0.1})
    settings = {"model": "standard", "model_seed": 0}
    files.write_json(folder / "msd" / "settings.json", settings)
    made_from = {"model": workdirs.read_final(folder)["digest"], "settings": artifacts.digest(settings)}
    artifacts.write(folder / "msd" / "centres" / "clean-0.npz", {"centre": np.ones(3)}, made_from)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "work")


def change(path, **changed):
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def test_a_good_workdir_passes(made, capsys):
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    assert check.main(["check", str(made), str(made)]) == 0
    # config, checkpoint, two answers, ranges, settings, centre, evaluation; the benchmark is of no study
    *notes, last = capsys.readouterr().out.splitlines()
    assert last == f"{made}: 8 verified, 0 wrong, 1 not compared" and notes[1] == last
    assert notes[0] == notes[2] and notes[0].startswith(f"{made / 'benchmark.json'}: not compared, ")
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()} == before


EDITS = {
    "config.json": lambda path: change(path, seed=5),
    "final.json": lambda path: change(path, digest="0" * 64),
    "checkpoints/0": shutil.rmtree,
    "answers/clean-0.npz": lambda path: shutil.copy(path.with_name("noc.border-random.npz"), path),
    "ranges.json": lambda path: change(path, targets=[0.9, 0.4]),
    "msd/settings.json": lambda path: change(path, seed=5),
    "benchmark.json": lambda path: change(path, members=["noc/hue"]),
    "evaluation.json": lambda path: path.write_text(path.read_text()[:-20]),
}
REMEDY = dict.fromkeys(
    ("answers/clean-0.npz", "msd/settings.json", "benchmark.json", "evaluation.json"), "remove it and run again: "
)
REMEDY["ranges.json"] = "move it away and run python -m tools.calibrate --workdir="
NAMED = {  # damage to a file may also show in files that were made from it
    "checkpoints/0": ("work holds a finished model",),
    "msd/settings.json": ("centres/clean-0.npz",),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_was_edited_or_lost_is_named_with_what_to_run(folder, capsys, name):
    EDITS[name](folder / name)
    assert check.main(["check", str(folder)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    lines = [line for line in lines if ": not compared, " not in line]
    assert f" {len(lines)} wrong" in last and lines
    (line, *_) = [line for line in lines if any(part in line for part in NAMED.get(name, (name,)))]
    assert REMEDY.get(name, "give the command that made the folder again: ") in line


def reorigin(record, **changed):
    return record._replace(origin=dict(record.origin) | changed)


def reshown(record, **changed):
    return record._replace(shown=dict(record.shown) | changed)


OTHER = {  # answers that nobody edited by hand: they were made from something else
    "images.labels": lambda record: reshown(record, images=record.shown["images"] | {"labels": "0" * 64}),
    "version": lambda record: reorigin(record, version=2),
    "generator": lambda record: reorigin(reshown(record, prng="rbg, partitionable: True"), generator="rbg"),
    "table": lambda record: record._replace(about=record.about | {"described": dict(record.about["described"], table="imagenet")}),
    "code": lambda record: reorigin(record, code="another", probe=record.origin["probe"] | {"values": "AAAA" * 341 + "AA=="}),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHER)
def test_answers_that_follow_from_something_else_are_named_by_one_line(folder, what):
    path = folder / "answers" / "noc.border-random.npz"
    found, record = answers.read_answered(path)
    answers.write(path.parent, found, OTHER[what](record))
    (line,) = check.verify_workdir(folder).problems
    assert line.startswith(f"{path}: {what}: ") or f": {what}: " in line or what in line.partition(": stored")[0], line
    assert "remove it and run again: " in line


def test_answers_to_a_dataset_on_disk_are_compared_with_its_files(folder, tmp_path):
    source, clean = tmp_path / "set", study.load_dataset(tiny.config()).test
    source.mkdir()
    np.save(source / "brightness.npy", np.concatenate([clean.images // k for k in range(1, 6)]))
    np.save(source / "labels.npy", np.tile(clean.labels, 5))
    config = tiny.config()
    config.eval.update({"stored": str(source)})
    evaluation.run(config, folder)
    of = lambda: [line for line in check.verify_workdir(folder).problems if "stored/set" in line]  # noqa: E731
    assert of() == []
    np.save(source / "brightness.npy", np.concatenate([clean.images // k for k in range(2, 7)]))
    assert len(of()) == 5 and all("source.content: stored" in line for line in of())
    shutil.rmtree(source)
    assert of() == [] and any("not at hand" in line for line in check.verify_workdir(folder).notes)


def test_training_images_that_are_others_now_are_named(folder):
    config = tiny.config()
    found = study.load_dataset(config).provenance
    files.write_json(folder / "data.json", {"name": "shapes", **found})
    assert check.verify_workdir(folder).problems == []
    edited = found["train"] | {"sha256": found["train"]["sha256"] | {"index": "0" * 64}}
    files.write_json(folder / "data.json", {"name": "shapes", **found, "train": edited})
    (line,) = check.verify_workdir(folder).problems
    assert "data.json: first.index: stored '000" in line


def test_nothing_is_verified_that_was_not_compared(folder, monkeypatch):
    monkeypatch.setattr(loop, "read_back", lambda *args, **kwargs: None)  # slow
    whole = check.verify_workdir(folder)
    monkeypatch.setattr(study, "load_dataset", lambda *given, **more: data.load("cifar10", data_dir=folder))
    without = check.verify_workdir(folder)
    assert without.problems == [] and without.verified == whole.verified - 2
    assert any("2 not compared" in line or "and 1 more: not compared" in line for line in without.notes)
    change(folder / "evaluation.json", seed=3)
    content = json.loads((folder / "evaluation.json").read_text())
    files.write_json(folder / "evaluation.json", {k: v for k, v in content.items() if k != artifacts.SEAL})
    left = check.verify_workdir(folder)  # an edited file that lost its digest
    assert left.problems == [] and left.verified == without.verified - 1
    images, labels = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), np.uint8), np.arange(4) % 2
    corruptions.evaluate(lambda x: np.asarray(x).mean((1, 2))[:, :2], images, labels, corruptions="noc/hue", severity=1,
                         batch_size=4, path=folder / "own", progress=False)  # fmt: skip
    assert check.check(folder / "own").summary == "0 verified, 0 wrong, 2 not compared"


def test_a_benchmark_that_the_answers_do_not_give_is_named_by_check_and_refused_by_who_reads_it(tmp_path):
    work = tmp_path / "work"
    names = ["noc/border", "noc/hue", "imagenet_c/fog", "imagenet_c/contrast"]
    report_studies.write(work, names)
    benchmark.select_benchmark(overlap_study.read_study(work).measured, work / "benchmark.json", 0.1)
    at = lambda: [line for line in check.verify_workdir(work).problems if "benchmark.json" in line]  # noqa: E731
    assert at() == []
    content = files.read_json(work / "benchmark.json")
    members = content["members"]
    artifacts.write_record(work / "benchmark.json", content | {"members": names})  # with a digest of its own
    (line,) = at()
    assert "benchmark.json: members: stored " in line and len(members) < len(names)
    files.write_json(work / "benchmark.json", content | {"threshold": 0.9})  # by hand
    (line,) = at()
    known = overlap_study.read_study(work).measured
    asked = {"threshold": 0.1, "coverage": str(work / "benchmark.json")}
    for read in (lambda: inputs.read(work), lambda: benchmark.select_benchmark(known, tmp_path / "b.json", **asked)):
        with pytest.raises(files.DamagedFileError, match=r"benchmark\.json.*edited"):
            read()


def test_what_is_left_of_an_earlier_model_is_named(folder):
    tiny.train_again(folder, tiny.config())
    wrong = check.verify_workdir(folder).problems
    for name in ("answers/clean-0.npz", "answers/noc.border-random.npz", "ranges.json", "centres/clean-0"):
        assert any(name in line for line in wrong), (name, wrong)
    assert len(wrong) == 4


def test_enhanced_models_and_what_lies_deeper_in_a_study_are_checked(tmp_path):
    """Folders of projects.structural.enhancement_study and tools.cbar; they hold only the files that the check reads."""
    names = ("standard+enhance=clahe", "standard+train=clahe+enhance=nlm")
    for number, folder in enumerate((tmp_path, tmp_path / "train=clahe")):
        workdirs.write_final(folder / "models" / "standard" / "seed0", step=0, digest=str(number), num_classes=10)
    for name, corruption in zip(names, ("noc/hue", "noc/border"), strict=True):
        record = answers.Record(corruption, 0, None, 5, {}, {}, {(name, 0): "earlier"})
        answers.write(tmp_path / "answers", {(name, 0): np.ones(5, bool)}, record)
    run = tmp_path / "features" / "run0"
    files.write_json(run / "settings.json", {"model": "standard", "model_seed": 0})
    artifacts.write(run / "centres" / "clean-0.npz", {"centre": np.ones(3)}, {"model": "earlier"})
    wrong = check.verify_workdir(tmp_path).problems
    for name in ("noc.hue-0.npz", "noc.border-0.npz", "clean-0.npz", "train=clahe/models/standard/seed0/config"):
        assert any(name in line for line in wrong), (name, wrong)


def test_stored_transforms_are_read(folder, monkeypatch):
    """tools.msd --experiment=subsets writes them beside its settings; tools.scheme_study reads them."""
    monkeypatch.setattr(loop, "read_back", lambda *args, **kwargs: None)  # slow
    shutil.copytree(folder / "msd", folder / "subsets")
    path = folder / "subsets" / "closest_3.npz"
    stored.write(path, stored.Stored("augmix", (32, 32, 3), "closest_3", {"weight": np.ones(3)}, {}))
    assert check.verify_workdir(folder).problems == []
    path.write_bytes(path.read_bytes()[:100])
    (line,) = check.verify_workdir(folder).problems
    assert "closest_3.npz: expected a file of stored transforms, found another or a damaged one" in line


def test_no_damage_is_a_traceback(folder, made, monkeypatch):
    monkeypatch.setattr(loop, "read_back", lambda *args, **kwargs: None)  # slow; its damages: above
    assert check.verify_workdir(folder).problems == []
    for name in ("config.json", "final.json", "ranges.json", "msd/settings.json", "msd/centres/clean-0.npz",
                 "answers/clean-0.npz", "answers/noc.border-random.npz"):  # fmt: skip
        path = folder / name
        whole = path.read_bytes()
        half = len(whole) // 2
        flipped = whole[:half] + bytes([whole[half] ^ 255]) + whole[half + 1 :]
        for content in (b"", whole[:half], flipped, b"[]", b"{}", b'{"inputs": 3, "provenance": []}', b"\xff\xfe"):
            path.write_bytes(content)
            wrong = check.verify_workdir(folder).problems
            assert any(path.name in line or "centres/" in line for line in wrong), (name, content, wrong)
        path.write_bytes(whole)
    assert check.verify_workdir(folder).problems == []


def test_a_folder_in_use_is_left_to_its_run(folder):
    with files.locked(folder):
        assert "in use by another run" in check.verify_workdir(folder).problems[0]


def cached(folder):
    images = np.arange(2 * 16 * 16 * 3, dtype=np.uint32).astype(np.uint8).reshape(2, 16, 16, 3)
    entry = cache.cached("a", "key", lambda notes: iter([(images, np.arange(2), np.arange(2))]), folder)
    assert entry.images.shape == images.shape
    return next(folder.glob("*/images.npy")), 3, ""


def written(folder):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)
    write_dataset(folder, (images, np.zeros(12, int)), corruptions="noc/contrast", severities=[1])
    return folder / "contrast.npy", 2, "; mend it with "  # labels.npy too


def prepared(folder):
    (folder / "shards").mkdir()
    for name in ("a", "b"):
        Image.fromarray(np.full((16, 16, 3), 200, np.uint8)).save(folder / f"{name}.png")
    items = [(name, 0, str(folder / f"{name}.png")) for name in ("a", "b")]
    paths = {split: folder / "shards" / f"{split}-0.npy" for split in store.SPLITS}
    records = {split: [store.write_shard(path, items, 16, 18)] for split, path in paths.items()}
    store.finish(folder, "imagenet100", ["n0"], {"sides": {"train": (16, 18), "test": (16, 18)}}, records)
    return paths["test"], 2, "python -m data.prepare"


@pytest.mark.parametrize("make", [cached, written, prepared])
def test_a_folder_of_images_is_checked_by_its_own_room(tmp_path, capsys, make):
    path, number, said = make(tmp_path)
    assert check.run([tmp_path]) == 0
    path.write_bytes(path.read_bytes()[:-500] + bytes(500))
    assert check.run([tmp_path]) == 1
    first, line, last = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path}: {number} verified, 0 wrong" and last == f"{tmp_path}: {number - 1} verified, 1 wrong"
    assert str(path.parent) in line and said in line and (not said or line.startswith(f"{path}: expected sha256"))


def test_a_damaged_manifest_is_named(tmp_path):
    written(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for harm in ({"layout": 3, "images": "x"}, {"corruptions": {"noc/contrast": []}}, {"files": {"contrast.npy": 1}}):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | harm))
        (line,) = check.check(tmp_path).problems
        assert "manifest.json is not a readable manifest" in line


def test_other_folders_are_named_and_none_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        (line,) = check.check(path).problems
        assert str(path) in line and "expected a folder (workdir" in line
    refuses(lambda: check.main(["check"]), "one or more folders", kind=app.UsageError)
