"""Buffers that the caller overwrites as soon as a call returns: the pixels at the moment of the call count."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import corruptions
from corruptions import augment, enhance
from tests.pages import ROOT

KEY = jax.random.key(0)
TRIALS = 12


def _frames(dtype):
    """Random images of 360x640; as many values as one call takes on a core."""
    levels = np.random.default_rng(0).integers(0, 256, (TRIALS, 360, 640, 3), dtype=np.uint8)
    return levels if dtype == np.uint8 else (levels / 255).astype(dtype)


NOISE = {"noise": np.full((360, 640, 3), 0.1, np.float32)}
PLACES = np.broadcast_to(np.stack(np.mgrid[:360, :640], -1)[None] + 1.0, (1, 360, 640, 2)).astype(np.float32)


ENTRIES = {
    "corrupt": lambda x: corruptions.corrupt(KEY, x, "imagenet_c/contrast", 3),
    "range": lambda x: corruptions.corrupt(KEY, x, "noc/brightness", 0.5, value_range=(-1, 1)),
    "where": lambda x: corruptions.corrupt(KEY, x, "noc/brightness", 0.5, where=x[..., 0] > 0),
    "clip": lambda x: corruptions.corrupt(KEY, x[None], "imagenet_c/contrast", 3, axis="time"),
    "cameras": lambda x: corruptions.corrupt(KEY, x[:, None], "imagenet_c/contrast", 3, axis="camera"),
    "record": lambda x: corruptions.noc.brightness(KEY, x[0], 0.5),
    "apply": lambda x: corruptions.imagenet_c.gaussian_noise.apply(x[0], NOISE),
    "mapped over keys": lambda x: jax.vmap(lambda k: corruptions.corrupt(k, x, "noc/brightness", 0.5))(KEY[None]),
    "augment": lambda x: augment.augment(KEY, x, "augmix"),
    "enhance": lambda x: enhance.enhance(x, "clahe_rgb"),
    "enlarged": lambda x: enhance.enlarged(x[0]),
    "masks": lambda x: corruptions.move_masks(x, PLACES),
    "positions": lambda x: corruptions.move_masks(PLACES, x[..., :2]),
    "one image": lambda x: corruptions.corrupt_image(x[0], "contrast", 3, seed=0),
}
OF_FLOATS = ("record", "apply", "range", "positions")


def _wrong(entry, frames):
    """Counts the results that differ from those of frames that nobody overwrites; `entry` takes views of one buffer."""
    expected = [np.asarray(entry(frame[None].copy())) for frame in frames]
    buffer, found = np.empty_like(frames[:1]), []
    for frame in frames:
        buffer[:] = frame
        found.append(entry(buffer))
        buffer[:] = 0
    return sum(not np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def _wrong_of_each(dtype):
    """Counts the wrong images of `corrupt_each` over a generator that fills one buffer, and of a view of it with alpha."""
    frames = _frames(dtype)[:, :100, :120]
    frames = np.concatenate([frames, frames[..., :1]], -1)
    expected = list(corruptions.corrupt_each(KEY, list(frames), "imagenet_c/fog", 3))
    buffer = np.empty_like(frames[0])

    def read():
        for frame in frames:
            buffer[:] = frame
            yield buffer

    found = list(corruptions.corrupt_each(KEY, read(), "imagenet_c/fog", 3))
    return sum(not np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def count_all():
    """Counts the wrong results of all entries, {entry and dtype: number}."""
    kinds = [(name, kind) for name in ENTRIES for kind in (np.uint8, np.float32)]
    kinds = [(name, kind) for name, kind in kinds if kind == np.float32 or name not in OF_FLOATS]
    counts = {f"{name} {kind.__name__}": _wrong(ENTRIES[name], _frames(kind)) for name, kind in kinds}
    return counts | {f"each {kind.__name__}": _wrong_of_each(kind) for kind in (np.uint8, np.float32)}


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_video_and_a_generator_that_fill_one_buffer(dtype):
    assert _wrong(ENTRIES["corrupt"], _frames(dtype)) == 0
    assert _wrong_of_each(dtype) == 0


def test_a_loader_that_fills_one_buffer(tmp_path, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(12) % 3

    def predict(images):
        return images.mean((1, 2))  # red, green or blue

    class Loader:
        def __iter__(self):
            pixels, classes = np.empty_like(images[:4]), np.empty_like(labels[:4])
            for start in range(0, 12, 4):
                pixels[:], classes[:] = images[start : start + 4], labels[start : start + 4]
                yield pixels, classes

    asked = {"corruptions": "noc/hue", "severity": "random"}
    expected = corruptions.evaluate(predict, images, labels, batch_size=4, **asked)
    assert corruptions.evaluate(predict, Loader(), path=tmp_path, **asked) == expected
    monkeypatch.setattr(
        corruptions.core.origin, "code_digest", lambda *given: "another"
    )  # so that the first images are compared
    assert corruptions.evaluate(predict, Loader(), path=tmp_path, **asked) == expected


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_every_entry_takes_the_pixels_of_the_moment_of_the_call(cores):
    if cores > len(os.sched_getaffinity(0)):
        pytest.skip(f"this machine has fewer than {cores} cores")
    code = (
        f"import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cores}])\n"
        "from tests.corruptions import buffers_test; print(buffers_test.count_all())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = eval(done.stdout.splitlines()[-1])
    assert len(found) > 20 and not any(found.values()), found
