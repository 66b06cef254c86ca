"""`python -m corruptions.write`: arrays in either form, errors, and what it needs installed."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from corruptions import corrupt, files
from corruptions.write import __main__, manifests, write_dataset
from tests.corruptions.write.datasets import IMAGES, LABELS
from tests.refusing import refuses


def test_arrays_are_written_without_the_optional_packages(tmp_path, monkeypatch, capsys):
    for module in ("PIL", "PIL.Image", "tqdm", "tensorflow_datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    write_dataset(tmp_path / "out", (IMAGES, LABELS), corruptions="noc/hue")
    assert np.load(tmp_path / "out/hue.npy").shape == (60, 32, 32, 3)
    monkeypatch.setattr(files, "EVERY", 0)
    write_dataset(tmp_path / "bar", (IMAGES, LABELS), corruptions="noc/hue", progress=True)
    assert "corrupting: 60 of 60 images\n" in capsys.readouterr().err
    refuses(
        lambda: write_dataset(tmp_path / "folders", (IMAGES, LABELS), corruptions="noc/hue", layout="folders"),
        "image files needs Pillow",
        kind=ModuleNotFoundError,
    )


def test_the_progress_bar_counts_images(tmp_path, capsys):
    write_dataset(tmp_path, (IMAGES, LABELS), corruptions="noc/hue", progress=True)
    assert "corrupting: 100%" in (shown := capsys.readouterr().err) and "60.0/60.0" in shown


def test_the_command_takes_arrays_in_either_form(tmp_path, capsys):
    np.savez(tmp_path / "all.npz", images=IMAGES, labels=LABELS)
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "labels.npy", LABELS)
    shared = ["--corruptions=noc/hue,noc/border", "--severities=0.5,random", "--seed=9", "--limit=7"]
    shared += ['--options={"noc/border": {"range": [2, 4]}}']
    assert __main__.main([f"--source={tmp_path}/all.npz", f"--out={tmp_path}/a", *shared]) == 0
    assert capsys.readouterr().out.strip() == f"{tmp_path}/a/manifest.json"
    more = [f"--labels={tmp_path}/labels.npy", f"--out={tmp_path}/b", *shared]
    assert __main__.main([f"--source={tmp_path}/images.npy", *more]) == 0
    given = {"corruptions": ["noc/hue", "noc/border"], "severities": [0.5, "random"], "seed": 9}
    write_dataset(tmp_path / "c", (IMAGES[:7], LABELS[:7]), options={"noc/border": {"range": (2, 4)}}, **given)
    for name in ("hue.npy", "border.npy", "labels.npy"):
        a, b, c = ((tmp_path / folder / name).read_bytes() for folder in "abc")
        assert a == b == c


def test_a_codec_is_an_option_of_jpeg_compression_that_the_manifest_holds(tmp_path, capsys):
    np.savez(tmp_path / "all.npz", images=IMAGES, labels=LABELS)
    flags = [f"--source={tmp_path}/all.npz", f"--out={tmp_path}/out", "--severities=1", "--limit=4"]
    wanted = "--corruptions=imagenet_c/jpeg_compression"
    assert __main__.main([*flags, wanted, "--codec=libjpeg9"]) == 0
    found = np.load(tmp_path / "out/jpeg_compression.npy")
    image = np.asarray(corrupt(jax.random.key(0), IMAGES[:4], "jpeg_compression", 1, codec="libjpeg9"))
    np.testing.assert_array_equal(found, image)
    entry = manifests.load(tmp_path / "out")["corruptions"]["imagenet_c/jpeg_compression"]
    assert entry["options"]["codec"] == "libjpeg9"
    capsys.readouterr()
    assert __main__.main([*flags, wanted]) == 1
    assert "options.codec" in capsys.readouterr().err
    assert __main__.main([*flags, "--corruptions=noc/hue", "--codec=libjpeg9"]) == 1
    assert "expected --codec with imagenet_c/jpeg_compression" in capsys.readouterr().err


def test_a_reader_that_leaves_loses_no_file(tmp_path):
    np.savez(tmp_path / "all.npz", images=IMAGES, labels=LABELS)
    flags = f"--source={tmp_path}/all.npz --out={tmp_path}/out --corruptions=noc/hue --limit=7"
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "corruptions.write", *flags.split()]
    with os.fdopen(writer, "wb") as stdout:
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and "BrokenPipe" not in done.stderr and (tmp_path / "out/manifest.json").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--source=absent"], "expected a folder of images, found no folder absent"),
        (["--source=absent.npz"], "No such file or directory: 'absent.npz'"),
        (["--source=x.npy"], "--labels: expected labels"),
        (["--source=x.npz", "--size=3"], "--size: expected no size"),
        (["--source=x.npz", "--limit=0"], "--limit: expected a limit of at least 1"),
        (["--source=x.npz", "--labels=y.npy"], "--labels: expected no labels"),
        (["--source=tfds:cifar10", "--labels=y.npy"], "--labels: expected no labels"),
        (["--source=tree", "--data_dir=d"], "--data_dir: expected no data_dir"),
        (["--source=tree", "--split=train"], "--split: expected no split"),
        (["--source=all.npz", "--frost=ice"], "expected --frost with imagenet_c/frost, found --corruptions without"),
        (["--source=tfds:jaxc_absent"], "cannot read 'jaxc_absent'"),
    ],
)
def test_errors_of_the_command_are_one_message(flags, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("all.npz", images=IMAGES, labels=LABELS)
    assert __main__.main([*flags, f"--out={tmp_path}/out", "--corruptions=noc/hue"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--severities=10%", "levels such as 1,3,5, or fractions such as 0,0.5,1, found '10%'"),
        ("--size=large", "expected a number of pixels, or keep, found 'large'"),
        ("--jpeg_quality=best", "expected a whole number from 1 to 100, or none, found 'best'"),
    ],
)
def test_a_value_of_another_kind_is_answered_by_those_that_work(flag, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        __main__.main(["--source=all.npz", f"--out={tmp_path}/out", flag])
    error = capsys.readouterr().err.splitlines()
    assert caught.value.code == 2 and len(error) == 1 and message in error[0]


def test_a_module_of_the_users_own_registers_what_is_written(tmp_path, monkeypatch, capsys, own_registry):
    (tmp_path / "jaxc_mine.py").write_text("import corruptions\ncorruptions.register_benchmark('mine', ['noc/hue'])\n")
    monkeypatch.syspath_prepend(tmp_path)
    np.savez(tmp_path / "all.npz", images=IMAGES[:4], labels=LABELS[:4])
    shared = [f"--source={tmp_path}/all.npz", f"--out={tmp_path}/out", "--corruptions=mine", "--severities=1"]
    assert __main__.main(shared) == 1 and "mine" in capsys.readouterr().err
    assert __main__.main([*shared, "--imports=jaxc_mine"]) == 0
    assert np.load(tmp_path / "out/hue.npy").shape == (4, 32, 32, 3)
    assert __main__.main([*shared, "--imports=jaxc_absent"]) == 1
    assert (
        "--imports: expected modules that Python finds and can import, found No module named" in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
def test_damaged_arrays_are_named(name, tmp_path, capsys):
    """At any place: NumPy and zipfile have an error of another type for each."""
    path = tmp_path / name
    if name == "a.npz":
        np.savez(path, images=IMAGES[:2], labels=LABELS[:2])
    else:
        np.save(path, IMAGES[:2])
    whole = path.read_bytes()
    for damaged in (b"", b"[]", whole[: len(whole) // 2], whole[:-1], whole[:40] + bytes(100) + whole[140:]):
        path.write_bytes(damaged)
        labels = [f"--labels={path}"] * name.endswith(".npy")
        assert __main__.main([f"--source={path}", *labels, f"--out={tmp_path}/out"]) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ") and name in error and error.count("\n") == 1, damaged[:20]


def test_the_help_needs_no_optional_package():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['PIL', 'tqdm', 'tensorflow_datasets']));"
        "sys.argv[1:] = ['--help']; import runpy; runpy.run_module('corruptions.write', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "--jpeg_quality" in done.stdout, done.stderr
