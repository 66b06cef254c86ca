"""Workdirs in buckets, on fsspec's store in memory: what is read on one machine is what another wrote."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import PIL.Image
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import data
from analysis.errors import reference
from corruptions import remote
from evaluation import trained_models
from runtime import artifacts, command, files, workdirs
from runtime.log import log
from runtime.settings import SettingsError
from runtime.workdirs import WorkdirError
from tests import stores
from tests.training import tiny
from training import ranges, study

CONFIG = {"seed": 1, "train": {"epochs": 2}}
OWNER = "run/.owner.json"


def put(key, content):
    MemoryFileSystem().pipe_file(f"b/{key}", content)


def got(key):
    """The content of an object; None where there is none."""
    return MemoryFileSystem().cat_file(f"b/{key}") if key in listed() else None


def listed(prefix=""):
    keys = [key.removeprefix("/b/") for key in MemoryFileSystem.store if key.startswith("/b/")]
    return sorted(key for key in keys if key.startswith(prefix))


def opened(address="memory://b/run", config=CONFIG):
    return workdirs.open_workdir(files.local(address, use="hold"), config)


def content(folder):
    """{name: bytes} of a folder's files."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("text", ["gs://b/runs/a/", "gs:/b/runs/a"])  # the latter as pathlib writes it
def test_an_address_is_written_in_one_way(text):
    assert remote.parse(text) == "gs://b/runs/a"
    assert remote.parse("s3://b") == "s3://b"


@pytest.mark.parametrize("text", ["az://b/c", "https://h/c", "gs://", "b/c", "hdfs://b"])
def test_other_addresses_are_refused_by_name(text, machine):
    with pytest.raises(ValueError, match=r"expected .* gs://BUCKET/\.\.\. or s3://"):
        remote.parse(text)
    if ":/" in text:
        with pytest.raises(SettingsError, match=f"^weights: expected .*, found the address {text}; copy its files"):
            files.local(text, "weights")


def test_a_workdir_is_what_another_machine_left(machine):
    with opened() as workdir:
        workdir.write_json("a.json", {"value": 1})
        artifacts.write(workdir / "answers" / "fog.npz", {"x": np.arange(3)}, {"seed": 1})
        workdir.write_text("old.csv", "gone")
        workdir.remove("old.csv")
        assert OWNER in listed()
        here = content(workdir)
    assert OWNER not in listed()
    machine("second")
    read = files.local("memory://b/run")
    assert content(read) == {name: value for name, value in here.items() if name != ".lock"} | {
        "provenance.json": got("run/provenance.json")
    }
    with opened() as workdir:  # continues
        assert artifacts.read(workdir / "answers" / "fog.npz").arrays["x"].tolist() == [0, 1, 2]
    with pytest.raises(WorkdirError, match="another config"), opened(config=CONFIG | {"seed": 2}):
        pass


def test_the_bucket_is_right(machine):
    """Files that a killed run did not upload go, and objects that changed elsewhere are fetched again."""
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
        workdir.write_text("b.csv", "1")
        workdir.write_text("c.csv", "1")
    pathlib.Path(workdir, "a.csv").write_text("edited here")
    pathlib.Path(workdir, "answers").mkdir()
    pathlib.Path(workdir, "answers", "lost.npz").write_text("never uploaded")
    put("run/b.csv", b"changed there")
    MemoryFileSystem().rm_file("b/run/c.csv")
    machine("first")
    read = pathlib.Path(files.local("memory://b/run"))
    assert (read / "b.csv").read_text() == "changed there" and not (read / "c.csv").exists()
    with opened() as again:
        assert (again / "a.csv").read_text() == "1" and not (again / "answers" / "lost.npz").exists()


def test_a_workdir_that_was_removed_from_the_bucket_begins_anew(machine):
    """Also on a machine that has a copy of it."""
    with opened() as workdir:
        artifacts.write(workdir / "answers" / "fog.npz", {"x": np.arange(3)}, {"seed": 1})
    MemoryFileSystem.store.clear()
    machine("first")
    with opened(config=CONFIG | {"seed": 2}) as workdir:
        assert not (workdir / "answers").exists()
    assert json.loads(got("run/config.json"))["seed"] == 2


def test_what_did_not_change_is_not_fetched_again(machine):
    """Also what this machine wrote itself."""
    put("data/x.npz", b"1")
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
    paths = pathlib.Path(files.local("memory://b/data"), "x.npz"), workdir / "a.csv"
    before = [os.stat(path).st_ino for path in paths]
    for _ in range(2):
        machine("first")
        files.local("memory://b/data")
        with opened():
            assert [os.stat(path).st_ino for path in paths] == before


@pytest.mark.needs("s3fs", "moto")
def test_an_object_that_changed_in_its_size_while_a_run_here_wrote_is_fetched(machine, monkeypatch, tmp_path):
    """The store tells its MD5; a file with the content of its object is not fetched again."""
    with stores.serve("s3", tmp_path / "objects") as store:
        store.create("bucket")
        for name, value in store.env.items():
            monkeypatch.setenv(name, value)
        with opened("s3://bucket/run") as workdir:
            workdir.write_text("a.csv", "1,2")
            workdir.write_text("b.csv", "1,2")
            before = os.stat(workdir / "b.csv").st_ino
            copy = files.copy_of(workdir.path)
            copy.call("pipe_file", copy.key("a.csv"), b"7,8")
        machine("first")
        read = pathlib.Path(files.local("s3://bucket/run"))
        assert (read / "a.csv").read_text() == "7,8"
        assert (read / "b.csv").stat().st_ino == before


def test_one_object_and_patterns_are_read(machine):
    for name in ("w/net.pth", "w/net.pth2", "scans/a.npz", "scans/b.npz", "scans/c.txt"):
        put(name, name.encode())
    assert pathlib.Path(files.local("memory://b/w/net.pth")).read_bytes() == b"w/net.pth"
    named = files.local("best=memory://b/w/net.pth")
    assert named.startswith("best=/") and pathlib.Path(named.partition("=")[2]).is_file()
    pattern = pathlib.Path(files.local("memory://b/scans/*.npz"))
    assert sorted(path.name for path in pattern.parent.glob(pattern.name)) == ["a.npz", "b.npz"]
    assert not pathlib.Path(files.local("memory://b/nothing")).exists()
    MemoryFileSystem().rm_file("b/w/net.pth")
    machine("first")
    assert not pathlib.Path(files.local("memory://b/w/net.pth")).exists(), "it left the bucket"


def test_results_join_those_in_the_bucket(machine, tmp_path):
    first = workdirs.Workdir(files.local("memory://b/out", use="write"))
    first.write_text("a.csv", "1")
    machine("second")
    second = workdirs.Workdir(files.local("memory://b/out", use="write"))
    second.write_text("b.csv", "2")
    assert listed("out/") == ["out/a.csv", "out/b.csv", "out/provenance.json"]
    assert set(json.loads(got("out/provenance.json"))["files"]) == {"a.csv", "b.csv"}
    files.write_atomically("memory://b/one.csv", "3")
    assert got("one.csv") == b"3"


def test_a_second_run_is_refused_while_the_first_renews(machine, monkeypatch):
    with opened():
        machine("second")
        monkeypatch.setattr(time, "sleep", lambda _: put(OWNER, got(OWNER)[:-1] + b', "renewed": 1}'))
        with pytest.raises(WorkdirError, match=r"workdir memory://b/run is in use on \S+ by process \d+; wait") as said:
            with opened():
                pass
        assert "\n" not in str(said.value)


def test_a_dead_run_is_followed_and_stops_when_it_wakes(machine, monkeypatch):
    """Its time is not renewed, as of a process that is frozen; its successor's files stay as they are."""
    monkeypatch.setattr(remote, "TERM", 0.5)
    with pytest.raises(remote.InUseError, match=r"memory://b/run was taken over on .* by process"):
        with opened() as frozen:
            copies = remote.copies
            machine("second")
            with opened() as successor:
                successor.write_text("a.csv", "the successor's")
                monkeypatch.setattr(remote, "copies", copies)  # the frozen one wakes
                files.copy_of(frozen.path).check(before_checkpoint=True)
    assert got("run/a.csv") == b"the successor's"


def test_a_run_of_release_0_2_is_refused_while_it_renews_its_lease_and_followed_when_it_is_dead(machine, monkeypatch):
    lease = b'{"owner": "a", "host": "old", "process": 7, "term": 60, "renewed": %d}'
    put("run/.lock", lease % 0)
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: put("run/.lock", lease % 1))
        with pytest.raises(WorkdirError, match="in use on old by process 7"):
            with opened():
                pass
    monkeypatch.setattr(remote, "TERM", 0.2)
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
    assert got("run/a.csv") == b"1" and got("run/.lock") is None


def test_a_write_long_after_the_last_one_looks_at_the_owner_first(machine, monkeypatch):
    with pytest.raises(remote.InUseError, match="this run writes nothing more"):
        with opened() as workdir:
            put(OWNER, b'{"owner": "another", "time": 1}')
            later = time.time() + 60
            monkeypatch.setattr(time, "time", lambda: later)
            workdir.write_text("a.csv", "1")
    assert got("run/a.csv") is None and b"another" in got(OWNER)


def test_a_clock_that_is_set_back_does_not_hide_another_owner(machine, monkeypatch):
    with pytest.raises(remote.InUseError, match="this run writes nothing more"):
        with opened() as workdir:
            put(OWNER, b'{"owner": "another", "time": 1}')
            earlier = time.time() - 3600
            monkeypatch.setattr(time, "time", lambda: earlier)
            workdir.write_text("a.csv", "1")
    assert got("run/a.csv") is None


def test_an_owner_object_that_somebody_removed_stops_the_run_in_a_line_that_names_it(machine):
    with pytest.raises(
        remote.InUseError, match=r"^memory://b/run lost its \.owner\.json: .*; this run writes nothing more$"
    ):
        with opened() as workdir:
            MemoryFileSystem().rm_file(f"b/{OWNER}")
            files.copy_of(workdir.path).check(before_checkpoint=True)


class Died(BaseException):
    """The end of a machine."""


def job():
    """A run of two checkpoints: a file of answers for each, and a log that grows."""
    with opened() as workdir:
        for number in range(2):
            if not (workdir / f"answers/{number}.npz").exists():
                artifacts.write(workdir / f"answers/{number}.npz", {"x": np.arange(number)}, {"seed": 1})
            files.write_atomically(workdir / "metrics.jsonl", "line\n" * (number + 1), grows=True)
            files.copy_of(workdir.path).check(before_checkpoint=True)
        workdir.write_text("counts.csv", "1,2\n")


def left():
    """{object: content, if no time stands in it}."""
    return {key: got(key) if key.endswith(("csv", "jsonl")) else "there" for key in listed()}


@pytest.mark.parametrize("ends", ["dies", "is refused", "has no answer"])
def test_a_run_that_ends_at_any_request_is_continued_elsewhere(ends, machine, monkeypatch):
    """The machine is gone, the request fails, or it comes to pass and the answer is lost."""
    monkeypatch.setattr(remote, "TERM", 0.1)
    real, count, last = remote.Copy.call, 0, 0

    def call(self, *given, **options):
        nonlocal count
        count += 1
        if count >= last > 0 and ends == "dies":
            raise Died
        if count == last and ends == "has no answer":
            real(self, *given, **options)
        if count == last:
            self._failed = True
            raise remote.RemoteError("no answer")
        return real(self, *given, **options)

    monkeypatch.setattr(remote.Copy, "call", call)
    job()
    whole, requests = left(), count
    assert requests > 12 and len(whole) == 6
    for last in range(1, requests + 1, 1 if ends == "dies" else 3):
        MemoryFileSystem.store.clear()
        count = 0
        machine(f"{last} first")
        with contextlib.suppress(Died, remote.RemoteError, WorkdirError):
            job()
        machine(f"{last} second")
        last = 0
        job()
        assert left() == whole
    assert count


@pytest.mark.parametrize(
    "owner",
    [b"", b"{", b"[]", b'{"time": "x"}', b"\xff", b"[" * 100_000, b'{"time": %s}' % (b"9" * 400)],
)
def test_an_owner_that_is_none_is_written_over(owner, machine):
    put(OWNER, owner)
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
    assert got("run/a.csv") == b"1"


def test_a_machine_that_vanished_long_ago_is_not_waited_for(machine, monkeypatch):
    put(OWNER, json.dumps({"owner": "dead", "time": time.time() - 3600}).encode())
    monkeypatch.setattr(time, "sleep", None)
    with opened():
        pass


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


def test_a_file_that_grows_is_written_before_a_checkpoint_and_at_the_end(machine):
    with opened() as workdir:
        path = workdir / "metrics.jsonl"
        for text in ("a", "ab"):
            files.write_atomically(path, text, grows=True)
            assert got("run/metrics.jsonl") is None
        files.copy_of(path).check(before_checkpoint=True)
        assert got("run/metrics.jsonl") == b"ab"
        files.write_atomically(path, "abc", grows=True)
    assert got("run/metrics.jsonl") == b"abc"


def test_messages_name_the_address(machine, monkeypatch, capsys):
    path = files.local("memory://b/run", use="hold")
    assert files.shown(f"{path}/a.csv is written") == "memory://b/run/a.csv is written"
    assert files.copy_of(pathlib.Path("/elsewhere")) is None
    monkeypatch.setattr(sys.stdout, "write", sys.stdout.write)
    for handler in log.handlers:
        monkeypatch.setattr(handler, "filters", list(handler.filters))
    command._show_addresses()
    print(f"in {path}")
    assert capsys.readouterr().out == "in memory://b/run\n"


def test_a_full_disk_is_named(machine, monkeypatch, tmp_path):
    put("run/a.csv", b"1" * 100)

    def full(self, keys, paths, **_):
        raise OSError(28, "No space left on device", paths[0])

    monkeypatch.setattr(MemoryFileSystem, "get", full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        files.local("memory://b/run")
    assert str(tmp_path / "first") in raised.value.filename
    assert list(content(tmp_path)) == [next(name for name in content(tmp_path) if name.endswith("/lock"))]


def test_paths_of_this_machine_import_no_store():
    code = (
        "import sys; from runtime import files, workdirs, command\n"
        "files.local('/tmp/x'); import tempfile, pathlib\n"
        "with tempfile.TemporaryDirectory() as folder, workdirs.open_workdir(folder, {'seed': 1}) as w: w.write_text('a', 'b')\n"
        "print({'fsspec', 'gcsfs', 's3fs'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize("scheme", ["gs", "s3", "memory"])
def test_a_missing_package_is_told_in_a_line_that_names_the_extra(scheme):
    code = (
        "import sys; sys.modules |= dict.fromkeys(['fsspec', 'gcsfs', 's3fs'])\n"
        "from corruptions import remote\n"
        f"try: remote.staged('{scheme}://b/c')\n"
        "except OSError as error: print(error)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "pip install 'jax-corruptions[cloud]'" in said and said.count("\n") == 1


@pytest.mark.needs("s3fs")
def test_a_store_that_never_answers_is_told_soon(machine, monkeypatch):
    monkeypatch.setattr(remote, "SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        began = time.monotonic()
        with pytest.raises(remote.RemoteError, match=r"s3://silent/a: the store cannot be reached .no answer in 2 s"):
            remote.staged("s3://silent/a")
    assert time.monotonic() - began < 20


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
    command.fetch_settings({"ranges": "memory://b/ranges.json", "dataset": {"data_dir": ""}, "names": ["a"]})
    with pytest.raises(SettingsError, match=r"^config\.dataset\.data_dir: .* found the address az://b/c"):
        command.fetch_settings({"dataset": {"data_dir": "az://b/c"}})


def test_a_reader_leaves_alone_what_another_process_of_this_machine_writes(machine):
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
        (workdir / "unfinished").write_text("not in the bucket yet")
        put("run/a.csv", b"changed there")
        machine("first")  # another process
        read = pathlib.Path(files.local("memory://b/run"))
        assert (read / "a.csv").read_text() == "1" and (read / "unfinished").exists()
    machine("first")
    assert pathlib.Path(files.local("memory://b/run"), "a.csv").read_text() == "changed there"
