"""The trainer of the decoder: its losses, its pictures, and a run that was stopped."""

import hashlib
import json

import numpy as np
import pytest
from PIL import Image

from projects.structural import pictures, train_style_decoder, weights
from projects.structural.adain import READINGS
from projects.structural.configs import style_decoder
from runtime import artifacts, workdirs


@pytest.mark.parametrize("name", READINGS)
def test_the_loss_of_style_is_zero_for_the_style_itself_and_sums_as_its_reading_says(name):
    rng, reading = np.random.default_rng(0), READINGS[name]
    maps = [tuple(rng.random((2, 2, 1, 1, c), np.float32)) for c in (3, 5)]
    others = [tuple(rng.random((2, 2, 1, 1, c), np.float32)) for c in (3, 5)]
    assert train_style_decoder.style_loss(maps, maps, reading) == 0
    over = np.sum if reading.summed else np.mean
    squares = [np.square(a - b) for one, other in zip(maps, others) for a, b in zip(one, other)]
    expected = sum(over(square, -1).mean() for square in squares)
    np.testing.assert_allclose(train_style_decoder.style_loss(maps, others, reading), expected, rtol=1e-5)


def test_styles_are_the_centres_of_what_is_large_enough(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    (tmp_path / "deep").mkdir()
    picture = np.zeros((20, 40, 3), np.uint8)
    picture[:, 10:30] = 200
    Image.fromarray(picture).save(tmp_path / "deep" / "wide.png")
    Image.fromarray(picture[:15, :15]).save(tmp_path / "small.png")
    (tmp_path / "broken.jpg").write_bytes(b"none")
    styles, described = pictures.styles(str(tmp_path), 0, 16, 0)
    assert styles.shape == (1, 16, 16, 3) and (styles[:, :, 1:-1] == 200).all() and described["pictures"] == 1
    with pytest.raises(ValueError, match="of at least 24x24 pixels, found none"):
        pictures.styles(str(tmp_path), 0, 24, 0)
    with pytest.raises(FileNotFoundError, match="found no folder"):
        pictures.styles(str(tmp_path / "gone"), 0, 24, 0)
    monkeypatch.setattr(pictures, "_PIECE", 2)
    for number in range(5):
        Image.fromarray(np.full((20, 20, 3), number, np.uint8)).save(tmp_path / f"{number}.png")
    styles, described = pictures.styles(str(tmp_path), 0, 16, 0)
    assert isinstance(styles, np.memmap) and described["pictures"] == 6  # not in memory, however many there are
    assert styles[:, 8, 8, 0].tolist() == [0, 1, 2, 3, 4, 200]
    assert described["sha256"] == hashlib.sha256(np.ascontiguousarray(styles)).hexdigest()


def config(**adain):
    asked = style_decoder.get_config("smoke")
    asked.adain.update({"widths": (4, 4, 8, 8), "drawn": 6, "batch_size": 4, "steps": 6} | adain)
    return asked


def test_a_workdir_is_bound_to_what_the_files_hold(tmp_path, monkeypatch):
    (tmp_path / "styles").mkdir()
    encoder = ["vgg.pth, sha256 1"]
    monkeypatch.setattr(train_style_decoder, "build", lambda asked, seed: (None, {"encoder": encoder[-1]}))
    monkeypatch.setattr(train_style_decoder, "write", lambda path, *given: path.touch())
    asked = config(styles=str(tmp_path / "styles"), steps=0)

    def run(level):
        Image.fromarray(np.full((32, 32, 3), level, np.uint8)).save(tmp_path / "styles" / "one.png")
        train_style_decoder.run(asked, tmp_path / "run")

    run(10)
    run(10)
    with pytest.raises(workdirs.WorkdirError, match=r"adain\.made_from\.styles\.sha256: stored"):
        run(20)
    encoder.append("vgg.pth, sha256 2")
    with pytest.raises(workdirs.WorkdirError, match=r"adain\.made_from\.encoder: stored 'vgg\.pth, sha256 1', asked"):
        run(10)


@pytest.mark.slow
def test_a_stopped_run_ends_in_the_same_weights_and_lowers_the_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(train_style_decoder, "_EVERY", 2)
    whole = train_style_decoder.run(config(), tmp_path / "whole")
    rows, calls = train_style_decoder._rows, []

    def stopping(*given):
        calls.append(given)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return rows(*given)

    monkeypatch.setattr(train_style_decoder, "_rows", stopping)
    with pytest.raises(KeyboardInterrupt):
        train_style_decoder.run(config(), tmp_path / "stopped")
    monkeypatch.setattr(train_style_decoder, "_rows", rows)
    again = train_style_decoder.run(config(), tmp_path / "stopped")
    assert weights.read(again).digest == weights.read(whole).digest
    _, made_from = artifacts.read(whole)
    assert made_from["encoder"] == "random values, seed 0" and made_from["styles"]["pictures"] == 6
    longer = train_style_decoder.run(config(steps=60), tmp_path / "longer")
    lines = (longer.parent / "metrics.jsonl").read_text().splitlines()
    totals = [line["content_loss"] + 10 * line["style_loss"] for line in map(json.loads, lines)]
    assert np.mean(totals[-5:]) < 0.8 * np.mean(totals[:5])
