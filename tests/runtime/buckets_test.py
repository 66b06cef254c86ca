"""Workdirs in buckets, on a store in this process's memory: what is read on one machine is what another wrote."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import types

import numpy as np
import PIL.Image
import pytest

import data
from analysis.errors import reference
from corruptions import objects
from evaluation import trained_models
from runtime import artifacts, buckets, command, files, leases, mirrors, workdirs
from runtime.log import log
from runtime.settings import SettingsError
from runtime.workdirs import WorkdirError
from tests.training import tiny
from training import ranges, study

CONFIG = {"seed": 1, "train": {"epochs": 2}}


def bucket(name="b"):
    return objects.Bucket("memory", name)


def put(key, content):
    bucket().write(key, content)


def opened(address="memory://b/run", config=CONFIG):
    return workdirs.open_workdir(files.local(address, use="hold"), config)


def content(folder):
    """{name: bytes} of a folder's files."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("text", ["az://b/c", "https://h/c", "gs://", "b/c", "hdfs://b"])
def test_other_addresses_are_refused_by_name(text, machine):
    with pytest.raises(ValueError, match=r"expected .* gs://BUCKET/\.\.\. or s3://"):
        objects.parse(text)
    if ":/" in text:
        with pytest.raises(SettingsError, match=f"^weights: expected .*, found the address {text}; copy its files"):
            files.local(text, "weights")


def test_a_workdir_is_what_another_machine_left(machine):
    with opened() as workdir:
        workdir.write_json("a.json", {"value": 1})
        artifacts.write(workdir / "answers" / "fog.npz", {"x": np.arange(3)}, {"seed": 1})
        workdir.write_text("old.csv", "gone")
        workdir.remove("old.csv")
        times = {name: os.stat(workdir / name).st_mtime_ns for name in ("a.json", "answers/fog.npz")}
        here = content(workdir)
    assert ".lock" not in {key.partition("/")[2] for key in bucket().list()}, "the lease is released"
    machine("second")
    read = files.local("memory://b/run")
    assert content(read) == {name: value for name, value in here.items() if name != ".lock"}
    assert {name: os.stat(pathlib.Path(read, name)).st_mtime_ns for name in times} == times
    with opened() as workdir:  # continues
        assert artifacts.read(workdir / "answers" / "fog.npz").arrays["x"].tolist() == [0, 1, 2]
    with pytest.raises(WorkdirError, match="another config"), opened(config=CONFIG | {"seed": 2}):
        pass


def test_the_bucket_is_right(machine):
    """Files that a killed run did not upload go, and objects that changed elsewhere are fetched again."""
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
        workdir.write_text("b.csv", "1")
    pathlib.Path(workdir, "a.csv").write_text("edited here")
    pathlib.Path(workdir, "answers").mkdir()
    pathlib.Path(workdir, "answers", "lost.npz").write_text("never uploaded")
    put("run/b.csv", b"changed there")
    buckets._mirrors.clear()
    with opened() as again:
        assert (again / "a.csv").read_text() == "1" and (again / "b.csv").read_text() == "changed there"
        assert not (again / "answers").exists()


def test_what_did_not_change_is_not_fetched_again(machine):
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
    before = os.stat(workdir / "a.csv").st_ino
    buckets._mirrors.clear()
    with opened() as workdir:
        assert os.stat(workdir / "a.csv").st_ino == before


def test_names_that_lead_out_of_the_mirror_are_left_where_they_are(machine, tmp_path):
    for name in ("run/../../escape", "run//x", "run/a/", "run/.lock/x"):
        put(name, b"hostile")
    put("run/a.csv", b"1")
    folder = pathlib.Path(files.local("memory://b/run"))
    assert (folder / "a.csv").read_bytes() == b"1"
    assert not list(tmp_path.rglob("escape"))


def test_names_that_lead_out_of_the_folder_of_copies_are_not_copied(machine, tmp_path):
    """Python takes the absolute path of two that it joins."""
    outside = tmp_path / "outside"
    for name in (f"set/{outside}", "set/../../escape", "set/a/", "set/"):
        put(name, b"hostile")
    put("set/a.csv", b"1")
    assert content(objects.copied("memory://b/set")) == {"a.csv": b"1"}
    assert not outside.exists() and not list(tmp_path.rglob("escape"))


def test_one_object_and_patterns_are_read(machine):
    for name in ("w/net.pth", "w/net.pth2", "scans/a.npz", "scans/b.npz", "scans/c.txt"):
        put(name, name.encode())
    assert pathlib.Path(files.local("memory://b/w/net.pth")).read_bytes() == b"w/net.pth"
    named = files.local("best=memory://b/w/net.pth")
    assert named.startswith("best=/") and pathlib.Path(named.partition("=")[2]).is_file()
    pattern = pathlib.Path(files.local("memory://b/scans/*.npz"))
    assert sorted(path.name for path in pattern.parent.glob(pattern.name)) == ["a.npz", "b.npz"]
    assert not pathlib.Path(files.local("memory://b/nothing")).exists()


def test_results_join_those_in_the_bucket(machine):
    first = workdirs.Workdir(files.local("memory://b/out", use="write"))
    first.write_text("a.csv", "1")
    machine("second")
    second = workdirs.Workdir(files.local("memory://b/out", use="write"))
    second.write_text("b.csv", "2")
    assert bucket().list("out/") == ["out/a.csv", "out/b.csv", "out/provenance.json"]
    assert set(json.loads(bucket().read("out/provenance.json").content)["files"]) == {"a.csv", "b.csv"}
    files.write_atomically("memory://b/one.csv", "3")
    assert bucket().read("one.csv").content == b"3"


def test_a_second_run_is_refused_while_the_first_renews(machine, monkeypatch):
    monkeypatch.setenv("JAX_CORRUPTIONS_LEASE_SECONDS", "2")
    with opened():
        machine("second")
        started = time.monotonic()
        with pytest.raises(
            WorkdirError, match=r"workdir memory://b/run is in use on \S+ by process \d+; wait"
        ) as raised:
            with opened():
                pass
        assert time.monotonic() - started < 10 and "\n" not in str(raised.value)


def test_a_dead_run_is_followed_after_its_term_and_stops_before_it_writes(machine, monkeypatch):
    """Its renewals stop, as of a process that is frozen; its successor's files stay as they are."""
    monkeypatch.setenv("JAX_CORRUPTIONS_LEASE_SECONDS", "4")
    monkeypatch.setattr(threading.Event, "wait", lambda event, timeout=None: time.sleep(0.05) or True)
    with pytest.raises(leases.LostLeaseError, match="memory://b/run: this run lost its lease"):
        with opened() as frozen:
            mirrors = buckets._mirrors
            machine("second")
            monkeypatch.setenv("JAX_CORRUPTIONS_LEASE_SECONDS", "60")
            with opened() as successor:
                successor.write_text("a.csv", "the successor's")
                buckets._mirrors.update(mirrors)  # the frozen one wakes
                frozen.write_text("a.csv", "the frozen one's")
    assert bucket().read("run/a.csv").content == b"the successor's"


def test_a_run_that_did_not_renew_for_a_term_writes_nothing(machine, monkeypatch):
    """Where no successor wrote, either: the bucket would accept the write."""
    monkeypatch.setenv("JAX_CORRUPTIONS_LEASE_SECONDS", "600")
    with pytest.raises(leases.LostLeaseError, match="it was not renewed for 600 s"):
        with opened() as workdir:
            later = leases._clock() + 601
            monkeypatch.setattr(leases, "_clock", lambda: later)
            workdir.write_text("a.csv", "1")
    assert bucket().read("run/a.csv").content is None


def test_a_renewal_whose_answer_was_lost_keeps_the_lease(machine, monkeypatch):
    """The bucket took the write, and the answer did not arrive: the generation that the run knows is an old one."""
    monkeypatch.setenv("JAX_CORRUPTIONS_LEASE_SECONDS", "3")
    with opened() as workdir:
        store = type(bucket())
        write, writes = store.write, []

        def lost(self, key, content, *generation):
            taken = write(self, key, content, *generation)
            if key.endswith(".lock"):
                writes.append(taken)
                if len(writes) == 1:
                    raise OSError("timed out")
            return taken

        monkeypatch.setattr(store, "write", lost)
        time.sleep(4)
        workdir.write_text("a.csv", "1")
    assert writes[0] is not None and writes[1] is None and None not in writes[2:]
    assert bucket().read("run/a.csv").content == b"1"


def test_a_successor_waits_for_the_term_of_the_dead_run_not_its_own(machine, monkeypatch):
    monkeypatch.setenv("JAX_CORRUPTIONS_LEASE_SECONDS", "6000")
    put("run/.lock", json.dumps({"owner": "dead", "term": 600}).encode())
    waits = []
    monkeypatch.setattr(leases, "_clock", lambda: sum(waits))
    monkeypatch.setattr(leases, "time", types.SimpleNamespace(sleep=waits.append))
    with opened():
        assert 600 <= sum(waits) < 610


def test_models_that_another_machine_trained_are_found(machine):
    given = tiny.config()
    with opened(config=study.model_config(given, "standard", given.seed).to_dict()):
        pass
    machine("second")
    with trained_models.open_workdir(pathlib.Path(files.local("memory://b/run", use="hold")), given) as trained:
        assert (trained.seed, trained.train.epochs) == (given.seed, given.train.epochs)
    with pytest.raises(FileNotFoundError, match="found no directory"):
        with trained_models.open_workdir(pathlib.Path(files.local("memory://b/nothing", use="hold")), given):
            pass


def test_a_report_of_another_machine_does_not_stop_a_run(machine):
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
        put("run/provenance.json", b"{}")
        workdir.write_text("a.csv", "2")
    assert bucket().read("run/a.csv").content == b"2"


def folders(root, *steps):
    for path in root.iterdir() if root.exists() else ():
        if path.name not in map(str, steps):
            shutil.rmtree(path)
    for step in steps:
        (root / str(step) / "state").mkdir(parents=True, exist_ok=True)
        (root / str(step) / "state" / "array").write_bytes(bytes([step]) * 100)


def test_a_checkpoint_is_one_object(machine):
    with opened() as workdir:
        checkpoints = workdir / "checkpoints"
        for steps in ((1,), (1, 2), (2, 3)):
            folders(checkpoints, *steps)
            buckets.publish(checkpoints)
        here = content(checkpoints)
    assert bucket().list("run/checkpoints") == ["run/checkpoints/2.tar", "run/checkpoints/3.tar"]
    machine("second")
    with opened() as workdir:
        checkpoints = workdir / "checkpoints"
        assert not checkpoints.exists(), "who does not read checkpoints does not fetch them"
        buckets.unpack(checkpoints)
        assert content(checkpoints) == here
        folders(checkpoints, 2, 3, 4)  # a run that is killed before the upload
    buckets._mirrors.clear()
    with opened() as workdir:
        buckets.unpack(workdir / "checkpoints")
        assert content(workdir / "checkpoints") == here
    put("run/checkpoints/3.tar", b"damaged")
    machine("third")
    with opened() as workdir:
        buckets.unpack(workdir / "checkpoints")
        assert set(content(workdir / "checkpoints")) == {"2/state/array"}
        assert (workdir / "checkpoints" / "3").is_dir(), "the reader of checkpoints refuses it by name"


def test_a_file_that_grows_is_uploaded_now_and_then_and_before_a_checkpoint(machine, monkeypatch):
    with opened() as workdir:
        path = workdir / "metrics.jsonl"
        files.write_atomically(path, "", grows=True)

        def add(text, **options):
            with open(path, "a") as file:
                file.write(text)
            buckets.appended(path, **options)
            return bucket().read("run/metrics.jsonl").content

        assert add("a") is None
        folders(workdir / "checkpoints", 1)
        buckets.publish(workdir / "checkpoints")
        assert bucket().read("run/metrics.jsonl").content == b"a"
        monkeypatch.setattr(mirrors, "_APPENDED_SECONDS", 0)
        assert add("b") == b"ab"
        monkeypatch.setattr(mirrors, "_APPENDED_SECONDS", 60)
        assert add("c") == b"ab"
        assert add("d", last=True) == b"abcd"


def test_messages_name_the_address(machine, monkeypatch, capsys):
    path = files.local("memory://b/run", use="hold")
    assert buckets.shown(f"{path}/a.csv is written") == "memory://b/run/a.csv is written"
    assert str(buckets.address_of(pathlib.Path(path, "a.csv"))) == "memory://b/run/a.csv"
    assert buckets.address_of(pathlib.Path("/elsewhere")) is None
    monkeypatch.setattr(sys.stdout, "write", sys.stdout.write)
    for handler in log.handlers:
        monkeypatch.setattr(handler, "filters", list(handler.filters))
    command._show_addresses()
    print(f"in {path}")
    assert capsys.readouterr().out == "in memory://b/run\n"


def test_a_full_disk_of_the_mirror_is_named(machine, monkeypatch, tmp_path):
    put("run/a.csv", b"1" * 100)

    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        files.local("memory://b/run")
    assert str(tmp_path / "first") in raised.value.filename
    assert not [path for path in tmp_path.rglob("*") if ".part-" in path.name]


def test_paths_of_this_machine_import_no_store():
    code = (
        "import sys; from runtime import files, workdirs, command\n"
        "files.local('/tmp/x'); import tempfile, pathlib\n"
        "with tempfile.TemporaryDirectory() as folder, workdirs.open_workdir(folder, {'seed': 1}) as w: w.write_text('a', 'b')\n"
        "print({'tensorstore', 'fsspec', 'gcsfs', 's3fs'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_files_that_other_code_wrote_are_uploaded(machine):
    folder = pathlib.Path(files.local("memory://b/data"))
    for name, text in {"cifar10/3.0.2/info.json": "{}", "cifar10/3.0.2/test.array_record": "records"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    buckets.upload(folder / "cifar10")
    machine("second")
    assert content(files.local("memory://b/data")) == content(folder)


def test_images_in_a_bucket_are_those_of_a_folder(machine, tmp_path):
    """Also on the second machine, which finds the same times of change."""
    for number in range(12):
        path = tmp_path / "tree" / ("train", "val")[number % 2] / "ab"[number // 6] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(np.full((20, 20, 3), number, np.uint8)).save(path)
        put(f"tree/{path.relative_to(tmp_path / 'tree')}", path.read_bytes())
    local = data.load("image_folder", data_dir=tmp_path / "tree", image_size=16)
    times = []
    for name in ("first", "second"):
        machine(name)
        found = data.load("image_folder", data_dir="memory://b/tree", image_size=16)
        np.testing.assert_array_equal(found.train.images, local.train.images)
        np.testing.assert_array_equal(found.test.labels, local.test.labels)
        times.append(
            [path.stat().st_mtime_ns for path in sorted(pathlib.Path(files.local("memory://b/tree")).rglob("*.png"))]
        )
    assert times[0] == times[1] and len(times[0]) == 12


def test_settings_name_files_in_a_bucket(machine):
    put("ranges.json", json.dumps({"image_shape": [32, 32, 3], "corruptions": {}}).encode())
    assert ranges.read_content("memory://b/ranges.json")["image_shape"] == [32, 32, 3]
    put("reference.json", b"{}")
    with pytest.raises(files.DamagedFileError, match=r"reference\.json: expected name"):
        reference.read("memory://b/reference.json")
    command.mirror_settings({"ranges": "memory://b/ranges.json", "dataset": {"data_dir": ""}, "names": ["a"]})
    with pytest.raises(SettingsError, match=r"^config\.dataset\.data_dir: .* found the address az://b/c"):
        command.mirror_settings({"dataset": {"data_dir": "az://b/c"}})


def test_a_reader_leaves_alone_what_another_process_of_this_machine_writes(machine):
    with opened("memory://b/runs/a") as workdir:
        workdir.write_text("a.csv", "1")
        (workdir / "unfinished").write_text("not in the bucket yet")
        put("runs/a/a.csv", b"changed there")
        put("runs/b/b.csv", b"2")
        mine = dict(buckets._mirrors)
        buckets._mirrors.clear()  # another process
        above = pathlib.Path(files.local("memory://b/runs"))
        assert (above / "b" / "b.csv").read_bytes() == b"2"
        assert (workdir / "unfinished").exists() and (workdir / "a.csv").read_text() == "1"
        assert pathlib.Path(files.local("memory://b/runs/a"), "a.csv").read_text() == "1"
        buckets._mirrors.update(mine)
    buckets._mirrors.clear()
    assert pathlib.Path(files.local("memory://b/runs/a"), "a.csv").read_text() == "changed there"
