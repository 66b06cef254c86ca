"""Written datasets that were damaged: what is found by stamps, what by reading everything, and what is written again."""

import json
import logging
import os
import re
import shlex
import shutil
import sys

import numpy as np
import pytest

from corruptions.write import WriteError, __main__, manifests, verify, write_dataset
from data.corrupted import open_corrupted
from tests.corruptions.write.datasets import IMAGES, LABELS, contents
from tests.refusing import refuses

SOURCE = IMAGES, LABELS
NUMBER = len(IMAGES)
OPTIONS = {"corruptions": ["noc/contrast", "noc/hue"], "severities": [0, 0.5, 1], "jpeg_quality": None}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    root = tmp_path_factory.mktemp("originals")
    for layout in ("npy", "folders"):
        write_dataset(root / layout, SOURCE, layout=layout, **OPTIONS)
    return root


@pytest.fixture
def copy(originals, tmp_path):
    return lambda layout: shutil.copytree(originals / layout, tmp_path / layout)


def change(path, position, keep_time=False):
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    if keep_time:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def rot(path, position):
    """Flips a bit and keeps size and time, as a failing disk does."""
    change(path, position, keep_time=True)


HUE = 128 + NUMBER * 32 * 32 * 3  # where severity 0.5 begins in hue.npy
IMAGE = "hue/0.5/1/04.png"
HARMS = {  # layout, damage, message, blocks to write
    "nothing": ("npy", lambda f: None, None, 0),
    "a bit": ("npy", lambda f: change(f / "hue.npy", HUE), "hue.npy: expected sha256", 3),
    "the header": ("npy", lambda f: change(f / "hue.npy", 3), "hue.npy: expected sha256", 3),
    "another time": ("npy", lambda f: os.utime(f / "hue.npy"), None, 0),
    "a shorter file": ("npy", lambda f: os.truncate(f / "hue.npy", 9000), "hue.npy: expected sha256", 3),
    "no file": ("npy", lambda f: (f / "hue.npy").unlink(), "hue.npy is missing", 3),
    "labels": ("npy", lambda f: change(f / "labels.npy", -8), "labels.npy: expected sha256", 0),
    "no labels": ("npy", lambda f: (f / "labels.npy").unlink(), "labels.npy is missing", 0),
    "no stamps": ("npy", lambda f: (f / ".checks.json").unlink(), None, 0),
    "no stamps, and a bit": (
        "npy",
        lambda f: ((f / ".checks.json").unlink(), rot(f / "hue.npy", HUE)),
        "hue.npy: expected sha256",
        3,
    ),
    "damaged stamps": ("npy", lambda f: (f / ".checks.json").write_text('{"hue.npy": {"blocks": 3}}'), None, 0),
    "stamps of another kind": ("folders", lambda f: (f / ".checks.json").write_text("[]"), None, 0),
    "an image": ("folders", lambda f: change(f / IMAGE, -20), f"{IMAGE}: expected sha256", 1),
    "no image": ("folders", lambda f: (f / IMAGE).unlink(), f"{IMAGE} is missing", 1),
    "half an image": ("folders", lambda f: os.truncate(f / IMAGE, 50), f"{IMAGE}: expected sha256", 1),
    "no severity": ("folders", lambda f: shutil.rmtree(f / "hue/0.5"), "hue/0.5 is missing", 1),
    "a list": ("folders", lambda f: change(f / "checksums/hue-1.sha256", 0), "hue-1.sha256 is not the list", 1),
    "no list": ("folders", lambda f: (f / "checksums/hue-1.sha256").unlink(), "hue-1.sha256 is not the list", 1),
    "other times": ("folders", lambda f: [os.utime(path) for path in f.rglob("*.png")], None, 0),
}


@pytest.mark.parametrize("harm", HARMS)
def test_damage_is_named_and_written_again(originals, copy, caplog, harm):
    layout, do, message, blocks = HARMS[harm]
    folder = copy(layout)
    do(folder)
    for everything in (False, True):
        lines = verify(folder, everything=everything)
        assert len(lines) == (message is not None), lines
        assert message is None or (message in lines[0] and lines[0].startswith(str(folder)))
    if message is None:
        open_corrupted(folder)
    else:
        refuses(lambda: open_corrupted(folder), "since they were written", "Mend them with")
    with caplog.at_level(logging.INFO):
        write_dataset(folder, SOURCE, layout=layout, **OPTIONS)
    assert f"{blocks} of 6 blocks to write" in caplog.text
    assert message is None or (message in caplog.text and "written again" in caplog.text)
    assert contents(folder, manifest=True) == contents(originals / layout, manifest=True)
    assert verify(folder, everything=True) == []
    stamps = json.loads((folder / ".checks.json").read_text())
    units = {"hue.npy", "contrast.npy"} if layout == "npy" else {"hue/0.5", "hue/1", "contrast/0"}
    assert units <= stamps.keys()


def test_rot_at_the_same_size_and_time_is_found_by_verify(copy):
    for layout, file, position in (("npy", "hue.npy", HUE), ("folders", IMAGE, -20)):
        folder = copy(layout)
        rot(folder / file, position)
        assert verify(folder) == [] and len(verify(folder, everything=True)) == 1
        open_corrupted(folder)
        with pytest.raises(ValueError, match=f"1 of its files changed since they were written:\\n.*{file}"):
            open_corrupted(folder, verify=True)
        write_dataset(folder, SOURCE, layout=layout, **OPTIONS)
        assert len(verify(folder, everything=True)) == 1
        write_dataset(folder, SOURCE, layout=layout, verify=True, **OPTIONS)
        assert verify(folder, everything=True) == []


def test_the_command_verifies_by_the_manifest_alone(copy, capsys):
    """It changes nothing, and fails where files differ."""
    folder = copy("folders")
    assert __main__.main(["--verify", f"--out={folder}"]) == 0
    assert capsys.readouterr().out == f"{folder}: {6 * NUMBER} files verified, 0 problems\n"
    rot(folder / IMAGE, -20)
    before = contents(folder, manifest=True)
    assert __main__.main([f"--out={folder}", "--verify"]) == 1
    out, err = capsys.readouterr()
    assert out == f"{folder}: {6 * NUMBER} files verified, 1 problems\n"
    assert f"{IMAGE}: expected sha256" in err and "repairs it: " in err and contents(folder, manifest=True) == before
    assert __main__.main([f"--out={folder / 'hue'}", "--verify"]) == 1
    assert "expected a dataset of corruptions.write, with manifest.json" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        __main__.main([f"--out={folder}"])
    assert "required: --source (or --verify" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        __main__.main([f"--out={folder}", "--verify", "--seed=3"])
    assert "expected --verify and --out alone without --source, found --seed" in capsys.readouterr().err


def test_each_command_that_wrote_a_part_is_named():
    runs = [f"{__main__.__file__} --out=a --corruptions={name}" for name in ("noc/hue", "noc/border", "noc/hue")]
    first, second = (f"python -m corruptions.write --out=a --corruptions={name}" for name in ("noc/hue", "noc/border"))
    manifest = {"runs": [{"command": run} for run in runs]}
    assert manifests.command(manifest) == f"{first} && {second}"
    assert manifests.command(manifest, "--verify") == f"{first} --verify && {second} --verify"


def test_the_command_verifies_and_is_named_as_what_mends(originals, tmp_path, monkeypatch, caplog):
    np.savez(tmp_path / "source.npz", images=SOURCE[0], labels=SOURCE[1])
    out = tmp_path / "out"
    flags = [f"--source={tmp_path / 'source.npz'}", f"--out={out}", "--corruptions=noc/contrast,noc/hue"]
    flags += ["--severities=0,0.5,1", "--no-progress"]
    monkeypatch.setattr(sys, "argv", [__main__.__file__, *flags])
    assert __main__.main(flags) == 0 and contents(out, manifest=True) == contents(originals / "npy", manifest=True)
    rot(out / "hue.npy", HUE)
    named = f"Mend them with:\n  python -m corruptions.write {shlex.join(flags)} --verify"
    with pytest.raises(ValueError, match=re.escape(named)):
        open_corrupted(out, verify=True)
    assert __main__.main(flags) == 0 and len(verify(out, everything=True)) == 1
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert __main__.main([*flags, "--verify"]) == 0 and contents(out, manifest=True) == contents(
            originals / "npy", manifest=True
        )
    assert "3 files verified, 3 of 6 blocks to write" in caplog.text


def test_a_foreign_image_is_named_and_left_alone(copy, caplog):
    folder = copy("folders")
    shutil.copy(folder / IMAGE, folder / "hue/0.5/1/mine.png")
    [line] = verify(folder)
    assert "hue/0.5/1/mine.png was not written by this program; move it away" in line
    refuses(lambda: open_corrupted(folder), "mine.png was not written")
    write_dataset(folder, SOURCE, layout="folders", **OPTIONS)
    assert "mine.png was not written by this program" in caplog.text and (folder / "hue/0.5/1/mine.png").exists()


@pytest.mark.parametrize(
    "harm", [lambda m: m.update(seed=1), lambda m: m["files"].popitem(), lambda m: m.pop("sha256")]
)
def test_a_manifest_that_was_changed_is_refused(copy, harm):
    folder = copy("npy")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    harm(manifest)
    path.write_text(json.dumps(manifest))
    before = path.read_bytes()
    message = (
        r"manifest\.json is not a readable manifest \((ValueError: expected fields of sha256 \w+, found \w|KeyError)"
    )
    for call in (verify, lambda f: write_dataset(f, SOURCE, **OPTIONS), open_corrupted):
        with pytest.raises((WriteError, ValueError), match=message):
            call(folder)
    assert path.read_bytes() == before


def _entry(**changes):
    return lambda folder, manifest: manifest["corruptions"]["noc/hue"].update(changes)


def _link(name):
    """Moves a part of the dataset to another folder and leaves a link."""

    def harm(folder, manifest):
        del manifest
        (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.move(folder / name, folder.parent / "outside")
        (folder / name).symlink_to(folder.parent / "outside")

    return harm


OUTSIDE = {  # tricks of a downloaded manifest or folder to reach files elsewhere, and the name in the refusal
    "an absolute path": (_entry(path="/etc"), "/etc"),
    "a parent": (_entry(path=".."), r"\.\."),
    "a path through a parent": (_entry(path="hue/../../hue"), "hue/../../hue"),
    "a hidden folder": (_entry(path=".part"), r"\.part"),
    "a number as a path": (_entry(path=3), "3"),
    "a path as a severity": (_entry(severities=["../../x"], written=["../../x"]), "../../x"),
    "a class above": (lambda folder, manifest: manifest["class_names"].append("../x"), "../x"),
    "an entry that is none": (lambda folder, manifest: manifest["corruptions"].update(x=[]), "TypeError"),
    "a link in the place of a corruption": (_link("hue"), "hue"),
    "a link in the place of a severity": (_link("hue/0.5"), "hue/0.5"),
    "a link in the place of unfinished blocks": (_link(".part"), r"\.part"),
    "a link in the place of the checksums": (_link("checksums"), "checksums"),
}


@pytest.mark.parametrize("harm", OUTSIDE)
def test_paths_out_of_the_folder_are_refused_by_name(copy, harm):
    do, named = OUTSIDE[harm]
    folder = copy("folders")
    manifest = manifests.load(folder)
    do(folder, manifest)
    manifests.save(folder, manifest)  # sealed: whoever publishes a manifest can seal it
    outside = sorted(path for path in folder.parent.rglob("*") if not path.is_relative_to(folder))
    for call in (verify, open_corrupted, lambda f: write_dataset(f, SOURCE, layout="folders", **OPTIONS)):
        with pytest.raises((WriteError, ValueError), match=rf"manifest\.json .*{named}"):
            call(folder)
    assert sorted(path for path in folder.parent.rglob("*") if not path.is_relative_to(folder)) == outside


def test_a_link_among_the_hidden_files_is_not_followed(copy):
    folder, precious = copy("npy"), copy("folders").parent / "precious"
    precious.write_text("")
    for name in (".part-manifest.json.00000000", ".part-.checks.json.00000000"):
        (folder / name).symlink_to(precious)
    (folder / "hue.npy").unlink()
    write_dataset(folder, SOURCE, **OPTIONS)
    assert precious.read_text() == "" and verify(folder, everything=True) == []
    (folder / ".lock").unlink()
    (folder / ".lock").symlink_to(precious)
    refuses(lambda: write_dataset(folder, SOURCE, **OPTIONS), "write to the folder", kind=WriteError)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    refuses(lambda: verify(tmp_path), "with manifest.json, in", kind=FileNotFoundError)
