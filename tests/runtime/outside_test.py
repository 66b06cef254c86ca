"""Paths that come from others, in addresses, buckets, archives, manifests and workdirs, lead nowhere outside of their folder."""

import io
import pathlib
import shutil
import tarfile
import zipfile

import numpy as np
import pytest

from corruptions import remote, write
from corruptions.files import contained
from corruptions.write import manifests
from runtime import files, workdirs
from runtime.settings import SettingsError
from tests.runtime.remote_test import content, listed, opened, put
from training.checkpoints import Checkpoints


@pytest.fixture
def victim(tmp_path):
    """A folder of the user's; its content must stay."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    (folder / ".part-mine").write_text("precious")
    yield folder
    assert content(folder) == {"thesis.tex": b"precious", ".part-mine": b"precious"}


@pytest.mark.parametrize("path", ["", ".", "..", "/", "a/../b", "/etc", "a//b", "a/", "./a", "a/.", "a\0b"])
def test_what_is_no_path_in_a_folder_is_refused(path, tmp_path):
    with pytest.raises(ValueError, match="expected names between slashes") as refused:
        contained(tmp_path, path)
    assert "\n" not in str(refused.value)


def test_a_path_in_a_folder_is_resolved(tmp_path, victim):
    base = tmp_path / "base"
    (base / "a").mkdir(parents=True)
    (base / "inside").symlink_to(base / "a")
    (base / "outside").symlink_to(victim)
    (base / "loop").symlink_to(base / "loop")
    (tmp_path / "link").symlink_to(base)
    for path in ("a", "a/b/c", "..a", "a..", "...", "a b", "inside/x", "loop/x"):
        assert contained(base, path) == base / path
    assert contained(tmp_path / "link", "a/b") == tmp_path / "link" / "a" / "b"
    for path in ("outside", "outside/x"):
        with pytest.raises(ValueError, match=rf"expected {path} within .*base, found a link to .*victim"):
            contained(base, path)


OUTSIDE = ["memory://b/../../victim", "memory://../victim", "memory://b//victim", "memory://b/run/./x", "memory:/b/.."]


@pytest.mark.parametrize("address", OUTSIDE)
@pytest.mark.parametrize("use", ["read", "write", "hold"])
def test_an_address_that_leads_out_of_the_cache_is_refused_in_one_line(address, use, machine, tmp_path):
    victim = tmp_path / "first" / "victim"
    victim.mkdir(parents=True)
    (victim / "thesis.tex").write_text("precious")
    before = content(tmp_path)
    with pytest.raises(SettingsError, match=r"^dataset\.data_dir: expected .*gs://") as refused:
        files.local(address, "dataset.data_dir", use)
    assert address in str(refused.value) and "\n" not in str(refused.value)
    assert content(tmp_path) == before


@pytest.mark.parametrize("level", ["", "files", "files/run"])
@pytest.mark.parametrize("use", ["read", "hold"])
def test_a_link_in_the_cache_leads_no_copy_out_of_it(level, use, machine, tmp_path):
    """Neither deletion nor fetch follows it."""
    put("run/x.csv", b"of the bucket")
    files.local("memory://b/run")
    (copy,) = (tmp_path / "first" / "jax-corruptions" / "remote").iterdir()
    machine("first")
    victim = tmp_path / "victim"
    (victim / "files" / "run").mkdir(parents=True)
    (victim / "run").mkdir()
    (victim / "thesis.tex").write_text("precious")
    before = content(victim)
    shutil.rmtree(copy / level)
    (copy / level).symlink_to(victim)
    with pytest.raises(ValueError, match=r"expected .* within .*, found a link") as refused:
        files.local("memory://b/run", use=use)
    assert "\n" not in str(refused.value)
    assert content(victim) == before


def test_a_link_in_a_copy_is_followed_by_no_object(machine, tmp_path):
    put("run/a.csv", b"1")
    put("run/notes/x.csv", b"of the bucket")
    folder = pathlib.Path(files.local("memory://b/run"))
    shutil.rmtree(folder / "notes")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.tex").write_text("precious")
    (folder / "notes").symlink_to(victim)
    machine("first")
    with pytest.raises(ValueError, match=r"expected .* within .*, found a link"):
        files.local("memory://b/run")
    with pytest.raises(ValueError, match=r"expected .* within .*, found a link"), opened():
        pass
    assert content(victim) == {"thesis.tex": b"precious"}


def test_names_that_lead_out_of_a_copy_are_left_where_they_are(machine, tmp_path):
    """Python takes the absolute path of two that it joins."""
    outside = tmp_path / "outside"
    for name in (f"run/{outside}", "run/../../escape", "run//x", "run/.lock/x", "run/a/../../../../escape"):
        put(name, b"hostile")
    put("run/a.csv", b"1")
    assert content(remote.staged("memory://b/run")) == {"a.csv": b"1"}
    assert not outside.exists() and not list(tmp_path.rglob("escape"))


def test_results_at_a_bucket_or_above_a_run_remove_nothing(machine):
    """A workdir that is being written there stays, with what is not uploaded yet."""
    with opened("memory://b/runs/a") as workdir:
        (workdir / "unfinished").write_text("not in the bucket yet")
        for address in ("memory://b/runs", "memory://b", "memory://b/runs/a"):
            mine = remote.copies
            machine("first")  # another process
            out = workdirs.Workdir(files.local(address, use="write"))
            out.write_text("report.csv", "1")
            assert (workdir / "unfinished").exists() and (workdir / ".lock").exists()
            remote.copies.clear()
            remote.copies.update(mine)
    assert {"report.csv", "runs/report.csv", "runs/a/report.csv"} <= set(listed())


def test_a_key_that_is_too_long_for_a_file_is_named(machine):
    put("run/" + "k" * 300, b"1")
    with pytest.raises(OSError, match="k" * 300):
        files.local("memory://b/run")


def tarred(*members):
    """A tar of (name, content, or the target of a link as text)."""
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as archive:
        for name, what in members:
            member = tarfile.TarInfo(name)
            if isinstance(what, str):
                member.type, member.linkname = tarfile.SYMTYPE, what
                archive.addfile(member)
            else:
                member.size = len(what)
                archive.addfile(member, io.BytesIO(what))
    return found.getvalue()


def zipped(*members):
    """A zip of the same."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        for name, what in members:
            member = zipfile.ZipInfo(name)
            member.external_attr = (0o120777 if isinstance(what, str) else 0o100644) << 16
            archive.writestr(member, what)
    return found.getvalue()


@pytest.mark.parametrize(("ending", "packed"), [("tar", tarred), ("zip", zipped)])
@pytest.mark.parametrize(
    "members",
    [
        [("../../../../victim/x", b"1")],
        [("/VICTIM/x", b"1")],
        [("./l", "/VICTIM"), ("./l/x", b"1")],
        [("./l", "../../../../victim/x"), ("./l", b"1")],
    ],
)
def test_nothing_is_unpacked_outside_of_a_checkpoint(members, ending, packed, machine, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "x").write_text("precious")
    members = [
        (name.replace("/VICTIM", str(victim)), what.replace("/VICTIM", str(victim)) if isinstance(what, str) else what)
        for name, what in members
    ]
    put(f"run/checkpoints/3.{ending}", packed(("./state/array", b"kept"), *members))
    with opened() as workdir:
        Checkpoints(workdir / "checkpoints").close()
        assert (workdir / "checkpoints" / "3" / "state" / "array").read_bytes() == b"kept"
    assert content(victim) == {"x": b"precious"} and not any(path.is_symlink() for path in tmp_path.rglob("*"))


def test_leftovers_are_removed_from_no_folder_that_a_link_names(tmp_path, victim):
    work = tmp_path / "work"
    with workdirs.open_workdir(work, {"seed": 1}):
        (work / "notes").symlink_to(victim)
        (work / "answers").mkdir()
        (work / "answers" / ".part-fog.npz.0a").touch()
    with workdirs.open_workdir(work, {"seed": 1}):
        assert content(work / "answers") == {}


def test_links_in_a_circle_are_not_followed(tmp_path):
    """Two links of a folder to itself make 2^40 paths of 40 names."""
    with workdirs.open_workdir(tmp_path, {"seed": 1}) as workdir:
        workdir.write_text("a.csv", "1")
        (tmp_path / "notes").mkdir()
        for name in ("l1", "l2"):
            (tmp_path / "notes" / name).symlink_to(".")
    with workdirs.open_workdir(tmp_path, {"seed": 1}):
        assert (tmp_path / "a.csv").read_text() == "1"


ARRAYS = (np.zeros((4, 32, 32, 3), np.uint8), [0, 1, 0, 1])


@pytest.mark.parametrize("link", [".part", ".part/fog.npy", "fog.npy"])
def test_a_dataset_that_others_began_leads_nowhere(link, tmp_path):
    """Its second severity is missing; a link `.part/fog.npy` to a file of the array's size would be written through."""
    folder, outside = tmp_path / "out", tmp_path / "outside"
    wanted = {"corruptions": "fog", "severities": [1, 2]}
    write.write_dataset(folder, ARRAYS, **wanted)
    manifest = manifests.load(folder)
    manifest["corruptions"]["imagenet_c/fog"]["written"] = [1]
    del manifest["files"]["fog.npy"]
    manifests.save(folder, manifest)
    outside.mkdir()
    (folder / "fog.npy").rename(outside / "fog.npy")
    (outside / "fog.npy").write_bytes(b"x" * (outside / "fog.npy").stat().st_size)
    before = content(outside)
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(outside if link == ".part" else outside / "fog.npy")
    with pytest.raises((write.WriteError, ValueError), match=r"found a link to|exists and was not written"):
        write.write_dataset(folder, ARRAYS, **wanted)
    assert content(outside) == before
