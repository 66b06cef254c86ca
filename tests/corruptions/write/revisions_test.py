"""A dataset that was begun is completed by the same pixels, whatever code, generator or revision continues it."""

import errno
import os

import jax
import numpy as np
import pytest

from corruptions.write import WriteError, __main__, manifests, write_dataset, writer
from tests.corruptions.write.datasets import IMAGES, LABELS, contents, register_mine, register_of_file
from tests.refusing import refuses

FORMS = {
    "npy": {},
    "folders": {"layout": "folders"},
    "png": {"layout": "folders", "jpeg_quality": None},
    "parquet": {"layout": "parquet"},
    "webdataset": {"layout": "webdataset"},
}
OF = {"corruptions": ["mine/darker"], "severities": [1, 2, 3]}


@pytest.fixture(params=FORMS)
def form(request, own_registry):
    return OF | FORMS[request.param]


def stopped(out, form, monkeypatch, severities=1):
    """Begins a dataset, and ends with a full disk after some severities."""
    layout = writer.LAYOUTS[form.get("layout", "npy")]
    begin, calls = layout.begin, []

    def begin_some(self, *args):
        calls.append(args)
        if len(calls) > severities:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return begin(self, *args)

    with monkeypatch.context() as patch, pytest.raises(WriteError, match="No space left"):
        patch.setattr(layout, "begin", begin_some)
        write_dataset(out, (IMAGES, LABELS), **form)


def without_record(out):
    """Takes from a manifest what version 0.2 did not record."""
    manifest = manifests.load(out)
    for entry in manifest["corruptions"].values():
        del entry["origins"]
    manifests.save(out, manifest)


@pytest.mark.parametrize("recorded", [True, False], ids=["", "0.2"])
def test_a_stopped_write_is_completed_by_the_same_pixels_only(form, recorded, tmp_path, monkeypatch, capsys):
    register_mine(10)
    whole, out = tmp_path / "whole", tmp_path / "out"
    write_dataset(whole, (IMAGES, LABELS), **form)
    stopped(out, form, monkeypatch)
    if not recorded:
        without_record(out)
    before = contents(out)
    register_mine(20)
    refuses(lambda: write_dataset(out, (IMAGES, LABELS), **form), "at severity 1: code", kind=WriteError)
    assert contents(out) == before
    register_mine(10, unused=1)  # another code that makes the same pixels
    write_dataset(out, (IMAGES, LABELS), **form)
    assert contents(out) == contents(whole) and manifests.load(out)["complete"]
    assert __main__.main(["--verify", f"--out={out}"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if "mine/darker: severities 1 by code" in line and "2, 3 by code" in line]
    assert __main__.main(["--verify", f"--out={whole}"]) == 0
    assert "by code" not in capsys.readouterr().out


def test_a_finished_dataset_of_other_code_is_not_taken_for_that_of_this_code(form, tmp_path):
    register_mine(10)
    write_dataset(tmp_path, (IMAGES, LABELS), **form)
    register_mine(20)
    refuses(lambda: write_dataset(tmp_path, (IMAGES, LABELS), **form), "at severity 1: code", kind=WriteError)


def test_code_that_made_the_same_pixels_once_is_not_probed_again(tmp_path, monkeypatch):
    write_dataset(tmp_path, (IMAGES, LABELS), corruptions="noc/hue", severities=[0.5])
    monkeypatch.setattr("corruptions.core.code._of_library", lambda: "edited")
    write_dataset(tmp_path, (IMAGES, LABELS), corruptions="noc/hue", severities=[0.5])
    monkeypatch.setattr("corruptions.write.revisions.corrupt", lambda *args, **options: pytest.fail("probed"))
    write_dataset(tmp_path, (IMAGES, LABELS), corruptions="noc/hue", severities=[0.5])


def test_a_data_file_of_a_corruption_that_changed_is_noticed(own_registry, tmp_path):
    register_of_file(tmp_path / "level.npy", 10)
    write_dataset(tmp_path / "out", (IMAGES, LABELS), **OF)
    before = contents(tmp_path / "out")
    write_dataset(tmp_path / "out", (IMAGES, LABELS), **OF)
    register_of_file(tmp_path / "level.npy", 20)
    refuses(lambda: write_dataset(tmp_path / "out", (IMAGES, LABELS), **OF), "at severity 1: code", kind=WriteError)
    assert contents(tmp_path / "out") == before


def test_a_raised_version_is_refused_without_a_probe(own_registry, tmp_path):
    register_mine(10)
    write_dataset(tmp_path, (IMAGES, LABELS), **OF)
    register_mine(10, version=2)
    refuses(lambda: write_dataset(tmp_path, (IMAGES, LABELS), **OF), "stored 1, asked 2", kind=WriteError)
    manifest = manifests.load(tmp_path)
    del manifest["corruptions"]["mine/darker"]["version"]  # as 0.2.0, whose pixels were those of version 1
    manifests.save(tmp_path, manifest)
    refuses(lambda: write_dataset(tmp_path, (IMAGES, LABELS), **OF), "stored 1, asked 2", kind=WriteError)
    refuses(lambda: register_mine(10, version=0), "version")


def test_random_severities_are_probed_at_several(own_registry, tmp_path, monkeypatch):
    form = {"corruptions": ["mine/darker", "noc/contrast"], "severities": ["random"]}
    register_mine(10)
    stopped(tmp_path, form, monkeypatch)
    (found,) = manifests.load(tmp_path)["corruptions"]["mine/darker"]["origins"].values()
    assert found["probe"]["places"] == list(range(len(IMAGES)))
    register_mine(12)
    refuses(lambda: write_dataset(tmp_path, (IMAGES, LABELS), **form), "at severity random: code", kind=WriteError)


@pytest.mark.parametrize("setting", [{"jax_threefry_partitionable": False}, {"jax_default_prng_impl": "rbg"}])
def test_a_stopped_write_is_not_completed_by_another_generator(own_registry, tmp_path, monkeypatch, setting):
    register_mine(10)
    stopped(tmp_path, OF, monkeypatch)
    before = {name: getattr(jax.config, name) for name in setting}
    try:
        for name, value in setting.items():
            jax.config.update(name, value)
        refuses(lambda: write_dataset(tmp_path, (IMAGES, LABELS), **OF), "prng: stored", "asked", kind=WriteError)
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def test_images_of_many_sizes_are_probed_too(own_registry, tmp_path):
    from PIL import Image

    from corruptions.write import sources

    for position, side in enumerate((32, 48, 40)):
        (tmp_path / "in" / "a").mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((side, 32, 3), 99, np.uint8)).save(tmp_path / "in" / "a" / f"{position}.png")
    source = sources.from_folder(tmp_path / "in", size="keep")
    form = OF | {"layout": "folders", "jpeg_quality": None}
    register_mine(10)
    write_dataset(tmp_path / "out", source, **form)
    register_mine(10, unused=1)
    write_dataset(tmp_path / "out", source, **form)
    register_mine(20)
    refuses(lambda: write_dataset(tmp_path / "out", source, **form), "at severity 1: code", kind=WriteError)
