"""One rule for the name of a corruption, and the paths of 0.2."""

import subprocess
import sys

import numpy as np
import pytest

import corruptions
from corruptions.core.errors import Refused, UnknownCorruption
from tests.processes import ROOT

SHORT = [name.partition("/")[2] for name in corruptions.names("imagenet_c") + corruptions.names("imagenet_c_extra")]


@pytest.mark.parametrize("name", SHORT)
def test_a_short_name_of_imagenet_c_means_imagenet_c(name):
    assert corruptions.get(name) is corruptions.get(f"imagenet_c/{name}")


def test_the_same_pixels_by_short_name_from_every_function():
    import jax

    image, key = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8), jax.random.key(3)
    expected = corruptions.corrupt(key, image[None], "imagenet_c/brightness", 2)[0]
    np.testing.assert_array_equal(corruptions.corrupt(key, image[None], "brightness", 2)[0], expected)
    np.testing.assert_array_equal(corruptions.corrupt_image(image, "brightness", 2, seed=3), expected)
    (each,) = corruptions.corrupt_each(key, [image], "brightness", 2, table="by_size")
    np.testing.assert_array_equal(each, corruptions.corrupt_image(image, "imagenet_c/brightness", 2, seed=3))


def test_another_registration_later_does_not_take_a_short_name(own_registry):
    mine = corruptions.registrar("mine_too", corruptions.Levels(5), "nearest", "a test")
    mine("weather", lambda key, shape, severity: {}, {}, name="fog")(lambda image, params: image)
    assert corruptions.get("fog").qualified_name == "imagenet_c/fog"


def test_other_short_names_are_unique_or_refused():
    by_short = {}
    for name in corruptions.names():
        by_short.setdefault(name.partition("/")[2], []).append(name)
    for short, sharing in by_short.items():
        if short in SHORT:
            continue
        if len(sharing) > 1 or short == "elastic":
            with pytest.raises(Refused) as found:
                corruptions.get(short)
            assert sharing[0] in found.value.hint
        else:
            assert corruptions.get(short).qualified_name == sharing[0]


def test_an_unknown_name_has_its_parts_as_fields():
    with pytest.raises(UnknownCorruption) as found:
        corruptions.get("nobody/fog")
    assert found.value.actual == "'nobody/fog'" and found.value.unknown_prefix == "nobody"
    with pytest.raises(UnknownCorruption) as found:
        corruptions.get("fgo")
    assert found.value.unknown_prefix == ""


@pytest.mark.parametrize(
    "line, path",
    [
        ("from corruptions.contract import Levels, truncated", "corruptions.core.severity"),
        ("import corruptions.registry; corruptions.registry.get('fog')", "corruptions.core.registry"),
        ("from corruptions import devices; devices.cpu_count, devices.stage", "corruptions.primitives.staging"),
        ("from corruptions.write.files import contained", "corruptions.files"),
    ],
)
def test_paths_of_the_release_before_import_with_a_warning_that_names_the_new_one(line, path):
    command = [sys.executable, "-W", "always::FutureWarning", "-c", f"import corruptions\n{line}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "FutureWarning" in done.stderr and path in done.stderr and "<string>:2" in done.stderr
