"""Tables tell the versions of pixels, and refuse records that were edited."""

import dataclasses

import numpy as np
import pytest

import corruptions
from analysis import answers
from runtime import artifacts
from tests.corruptions.write.datasets import IMAGES, LABELS, register_mine
from tests.refusing import refuses
from tests.tools.tables_test import NOC, command, conditions, run, write


def test_tables_say_which_pixels_are_of_a_later_version_and_keep_versions_apart(tmp_path, capsys):
    known = conditions()
    later = {name: {**of, "version": 2} if name == NOC[0] else of for name, of in known.corruptions.items()}
    first, other = (
        write(tmp_path / "a", 0),
        write(tmp_path / "b", 0.1, held=dataclasses.replace(known, corruptions=later)),
    )
    for by in ("benchmark", "corruption"):
        run(command.errors, [first], by=by, measures=["mean_error"])
        assert "later version" not in capsys.readouterr().out
        run(command.errors, [other], by=by, measures=["mean_error"])
        assert f"of a later version: {NOC[0]} 2." in capsys.readouterr().out
    with pytest.raises(ValueError, match=f"{NOC[0]}, version of its pixels: 1, here 2"):
        run(command.errors, [first, other])


def test_tables_say_which_jpeg_codec_was_not_the_default_and_keep_codecs_apart(tmp_path, capsys):
    known = conditions()
    other_codec = {
        n: {**of, "options": {"codec": "libjpeg9"}} if n == NOC[0] else of for n, of in known.corruptions.items()
    }
    first, other = (
        write(tmp_path / "a", 0),
        write(tmp_path / "b", 0.1, held=dataclasses.replace(known, corruptions=other_codec)),
    )
    run(command.errors, [other], by="benchmark", measures=["mean_error"])
    assert f"Pixels of another JPEG codec: {NOC[0]} libjpeg9." in capsys.readouterr().out
    with pytest.raises(ValueError, match=f"{NOC[0]}, options: .*libjpeg9"):
        run(command.errors, [first, other])


def test_an_edited_record_of_an_evaluation_is_refused(tmp_path):
    folder = write(tmp_path / "a", 0)
    artifacts.write_record(folder / "evaluation.json", {"provenance": {"device": "a device"}})
    run(command.errors, [folder])
    path = folder / "evaluation.json"
    path.write_text(path.read_text().replace("a device", "an H100"))
    refuses(lambda: run(command.errors, [folder]), "evaluation.json", "edited")


def test_a_folder_of_evaluate_keeps_the_version_that_it_was_made_with(own_registry, tmp_path):
    register_mine(10, version=2)
    predict = lambda images: np.asarray(images).mean((1, 2))  # noqa: E731
    of = {"corruptions": "mine/darker", "severity": 1, "batch_size": 12, "progress": False}
    corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **of)
    for version in (2, 1, 3):
        register_mine(10, version=version)
        assert answers.read(tmp_path).conditions["corruptions"]["mine/darker"]["version"] == 2
