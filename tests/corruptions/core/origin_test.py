"""The record of origin: what it compares, which code a digest covers, and what a probe tells apart."""

import dataclasses
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

import corruptions
from corruptions.core import origin
from corruptions.core.origin import UNKNOWN, Origin, code_digest, differences, make, probe, same_probe
from tests.refusing import refuses

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), np.uint8)
OF = {
    "data": {"images": "a" * 64, "labels": "b" * 64},
    "network": "resnet",
    "corruption": "noc/hue",
    "options": {"range": (0.1, 0.5)},
    "levels": (1, 3),
    "seed": 0,
    "evaluator": {"temperature": 2.0},
}
MINE = """
import helper
from corruptions import Levels, registrar

def sample(key, shape, severity):
    return {"by": severity * helper.SCALE}

def deferred():
    import later

@registrar("mine", Levels(3), "nearest", "a test", replace=True)("noise", sample, {"by": "unit"})
def dim(image, params):
    return image * (1 - params["by"])
"""


def test_a_record_comes_back_from_json():
    made = make(**OF)
    assert Origin.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert made.table == UNKNOWN and made.partitionable in (True, False) and made.recorded["cores"] >= 1
    refuses(lambda: Origin.from_json(made.to_json() | {"weather": "fine"}), "'weather'", "newer")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"data": {"images": "c" * 64, "labels": "b" * 64}}, "data.images"),
        ({"network": "vit"}, "network"),
        ({"options": {}}, "options.range"),
        ({"version": 2}, "version"),
        ({"levels": None}, "levels"),
        ({"seed": 1}, "seed"),
        ({"generator": "rbg"}, "generator"),
        ({"partitionable": "neither"}, "partitionable"),
        ({"evaluator": {"temperature": 1.0}}, "evaluator.temperature"),
    ],
)
def test_each_difference_is_a_line(change, field):
    stored, requested = make(**OF), make(**OF | change)
    (line,) = differences(stored, requested, remedy="use folder B")
    assert line.startswith(f"{field}: stored ") and ", requested " in line and line.endswith(" or use folder B")
    assert "\n" not in line and not differences(stored, stored)


def test_what_is_unknown_or_only_recorded_is_not_compared():
    old = Origin.from_json({"seed": 0})
    assert not differences(old, make(**OF)) and not differences(make(**OF), old)
    assert not differences(make(**OF), make(**OF, recording={"revision": "1234"}))
    assert differences(old, make(**OF | {"seed": 1}))


def test_another_code_is_probed_and_the_same_is_not():
    key, index = jax.random.key(1), np.arange(20)
    of = lambda severity: probe("noc/contrast", IMAGES, severity, key=key, index=index, options={})  # noqa: E731
    stored = dataclasses.replace(make(**OF), probe=of(0.5))
    assert not differences(stored, make(**OF), lambda: pytest.fail("the code is the same"))
    edited = dataclasses.replace(make(**OF), code="another")
    assert not differences(stored, edited, lambda: of(0.5))  # a comment
    (line,) = differences(stored, edited, lambda: of(0.6))
    assert line.startswith("code: ") and "noc/hue" in line
    unknown = dataclasses.replace(stored, code=UNKNOWN)
    assert differences(unknown, dataclasses.replace(edited, code=UNKNOWN), lambda: of(0.6))
    assert not differences(
        dataclasses.replace(unknown, probe=UNKNOWN), edited, lambda: pytest.fail("nothing to compare")
    )


@pytest.mark.parametrize("severity", [0.5, None])
def test_a_probe_holds_1024_values_of_images_from_the_first_to_the_last(severity):
    given = {"key": jax.random.key(1), "index": np.arange(20), "options": {}}
    found = probe("noc/contrast", IMAGES, severity, **given)
    corrupted = np.asarray(corruptions.corrupt(jax.random.key(1), IMAGES, "noc/contrast", severity))
    places = found["places"]
    assert json.loads(json.dumps(found)) == found and len(places) == (16 if severity is None else 4)
    assert places[0] == 0 and places[-1] == 19 and same_probe(found, origin.values_of(corrupted[places], places))
    assert len(found["values"]) == 4 * -(-1024 // 3)
    earlier = origin.values_of(corrupted[:2], None)  # of the first images, as earlier versions stored it
    assert same_probe(earlier, probe("noc/contrast", IMAGES, severity, **given, stored=earlier))
    assert not same_probe(earlier, probe("noc/contrast", IMAGES ^ 32, severity, **given, stored=earlier))


def test_a_blank_first_image_hides_no_change():
    images = IMAGES.copy()
    images[0] = 128  # a change of contrast leaves grey as it is
    at = lambda severity: probe(  # noqa: E731
        "noc/contrast", images, severity, key=jax.random.key(1), index=np.arange(20), options={}
    )
    assert not same_probe(at(0.5), at(0.6))


def test_a_probe_takes_one_level_everywhere_and_more_in_one_value_of_1024():
    image = np.random.default_rng(2).integers(2, 250, (1, 64, 48, 3), np.uint8)
    values_of = lambda images: origin.values_of(images, range(len(images)))  # noqa: E731
    stored = values_of(image)
    assert same_probe(stored, values_of(image + 1))
    assert not same_probe(stored, values_of(image + np.uint8(2)))
    for channel in range(3):  # each channel takes part
        changed = image.copy()
        changed[..., channel] += 3
        assert not same_probe(stored, values_of(changed))
    corner = image.copy()
    corner[:, :16, :16] ^= 128
    assert not same_probe(stored, values_of(corner))
    assert not same_probe(stored, values_of(np.concatenate([image, image])))


@pytest.fixture
def mine(tmp_path, monkeypatch, own_registry):
    """Writes modules of a user's and imports them; returns what does so again, with other content."""
    folders = iter(range(9))

    def written(**content):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        for name, text in ({"mine": MINE, "helper": "SCALE = .1\n", "later": "A = 1\n"} | content).items():
            (folder / f"{name}.py").write_text(text)
            os.utime(folder / f"{name}.py", (1, 1))
        for name in ("mine", "helper", "later"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(folder)
            importlib.import_module("mine")
            return code_digest(corruption="mine/dim"), code_digest(), code_digest(corruption="noc/hue")

    return written


def test_the_digest_of_code_follows_the_files_of_a_corruption_and_what_they_import(mine):
    before = mine()
    assert UNKNOWN not in before and before == mine()  # in another folder
    library = before[2]
    for change in ({"helper": "SCALE = .2\n"}, {"later": "A = 2\n"}, {"mine": MINE.replace("1 -", "2 -")}):
        own, everything, hue = mine(**change)
        assert own != before[0] and everything != before[1] and hue == library


def test_the_digest_of_code_follows_every_folder_of_the_library(tmp_path):
    library = shutil.copytree(pathlib.Path(corruptions.__file__).parent, tmp_path / "corruptions")
    code = "from corruptions.core.code import code_digest; print(code_digest(corruption='noc/hue'))"

    def digest():
        for path in library.rglob("*.py"):
            os.utime(path, (1, 1))
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    found = [digest()]
    for name in ("core/batch.py", "noc/color.py", "primitives/color.py", "files.py"):
        with (library / name).open("a") as file:
            file.write("# edited\n")
        found.append(digest())
    assert len(set(found)) == 5 and UNKNOWN not in found


def test_the_digest_of_code_follows_what_a_corruption_was_made_with():
    made = [corruptions.compose("noc/hue", "noc/contrast", probability=p, name="mine/both") for p in (0.5, 0.5, 0.6)]
    digests = [code_digest(corruption=one) for one in made]
    assert UNKNOWN not in digests and digests[0] == digests[1] != digests[2]


def test_code_that_cannot_be_told_equals_no_code(mine, tmp_path):
    mine()
    os.utime(sys.modules["helper"].__file__)  # edited since it was imported, as far as one sees
    assert code_digest(corruption="mine/dim") == UNKNOWN != code_digest(corruption="noc/hue")
    assert not origin.same_code(Origin(code=UNKNOWN), UNKNOWN)
