"""Clips: one draw for all frames, noise of their own where it is asked for."""

import jax
import numpy as np
import pytest

import corruptions
from tests.corruptions.comparing import assert_same
from tests.pages import example_of
from tests.reference.photographs import photographs

KEY = jax.random.key(3)
CLIPS = photographs(6, 32, 32).reshape(2, 3, 32, 32, 3)
INDEX = [7, 4]


def corrupted(clips, name, severity=None, **more):
    return np.asarray(corruptions.corrupt(KEY, clips, name, severity, index=INDEX, axis="time", **more))


def test_each_frame_is_the_single_image_with_the_draws_of_its_clip():
    severity = np.array([0.2, 0.9])
    found = corrupted(CLIPS, "noc/border", severity)
    for frame in range(CLIPS.shape[1]):
        assert_same(found[:, frame], corruptions.corrupt(KEY, CLIPS[:, frame], "noc/border", severity, index=INDEX))
    assert (found[0] != CLIPS[0]).any()


def test_inside_a_program_with_the_index_of_many_bits():
    run = jax.jit(lambda clips: corruptions.corrupt(KEY, clips, "noc/border", index=[2**40, 4], axis="time"))
    alone = corruptions.corrupt(KEY, CLIPS[:, 2], "noc/border", index=[2**40, 4])
    assert_same(run(CLIPS)[:, 2], alone)


def test_fresh_noise_has_the_severity_of_its_clip_and_the_first_frame_as_it_was():
    still = np.full((2, 3, 32, 32, 3), 128, np.uint8)
    name = "noc/gaussian"
    fresh = corrupted(still, name, fresh_noise=True)
    assert_same(fresh[:, 0], corruptions.corrupt(KEY, still[:, 0], name, index=INDEX))
    noise = fresh.astype(np.float32) - 128
    deviation = noise.std((2, 3, 4))
    # Of another severity it would be up to 3.6 times that.
    np.testing.assert_allclose(deviation, np.broadcast_to(deviation[:, :1], (2, 3)), rtol=0.05)
    for clip in noise.reshape(2, 3, -1):
        np.testing.assert_allclose(np.corrcoef(clip), np.eye(3), atol=0.08)  # of 3,072 values: .018
    given = corrupted(still, name, 0.5, fresh_noise=True)
    alone = corruptions.corrupt(KEY, still[:, 2], name, 0.5, index=[7 + 2 * 2**32, 4 + 2 * 2**32])
    assert_same(given[:, 2], alone)


def test_what_is_no_noise_stays_the_same_over_a_clip():
    np.testing.assert_array_equal(corrupted(CLIPS, "noc/border", fresh_noise=True), corrupted(CLIPS, "noc/border"))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"axis": "frames"}, "expected axis=None, 'time', 'camera' or .*, found 'frames'"),
        ({"axis": None, "fresh_noise": True}, "expected axis='time' with fresh_noise=True, found axis=None"),
        ({"axis": None}, r"found shape \(2, 3, 32, 32, 3\); clips go with axis='time'"),
        (
            {"images": CLIPS[0]},
            r"clips of shape \(number, time, .*found shape \(3, 32, 32, 3\); images alone go without",
        ),
        ({"images": "clip.mp4"}, "expected an array of clips, found str"),
        ({"images": CLIPS / 255 * 2}, r"values in \[0, 1\], found values from"),
        ({"severity": np.ones(3)}, r"a scalar severity or one of shape \(2,\), found \(3,\)"),
        ({"index": [1, 2, 3]}, r"an index of shape \(2,\), found \(3,\)"),
        (
            {"index": [2**31, 4], "fresh_noise": True, "name": "noc/gaussian"},
            r"an index below 2\*\*31 with fresh_noise",
        ),
        ({"fresh_noise": True, "name": corruptions.compose("noc/gaussian")}, "whose parts draw together"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    given = {"key": KEY, "images": CLIPS, "name": "noc/border", "axis": "time"} | change
    with pytest.raises((ValueError, TypeError), match=message):
        corruptions.corrupt(**given)


def test_the_example_of_the_how_to():
    found = {"corruptions": corruptions, "key": KEY, "clips": CLIPS, "positions": INDEX}
    exec(example_of("docs/howto/corrupt.md", "Corrupt clips"), found)
    assert found["turned"].shape == found["noisy"].shape == CLIPS.shape
    assert found["where"].shape == (2, 32, 32, 2)
