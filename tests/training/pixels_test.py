"""A model is trained with one code of its corruption."""

import numpy as np
import pytest

import corruptions
import train
from runtime import workdirs
from runtime.settings import WorkdirError
from tests.corruptions.write.datasets import register_mine, register_of_file
from tests.refusing import refuses
from tests.training import tiny
from training import loop, run

MINE = tiny.config(epochs=1, corruption="mine/darker")


def test_a_finished_model_is_not_taken_for_one_of_edited_code(own_registry, tmp_path):
    register_mine(10)
    accuracy = train.train_and_evaluate(MINE, tmp_path / "work")
    register_mine(10, unused=1)  # as an edited comment
    assert train.train_and_evaluate(MINE, tmp_path / "work") == accuracy
    register_mine(40)
    refuses(lambda: train.train_and_evaluate(MINE, tmp_path / "work"), "other pixels: code", kind=WorkdirError)
    (tmp_path / "work" / "corruptions.json").unlink()  # as an earlier version left it
    assert train.train_and_evaluate(MINE, tmp_path / "work") == accuracy


def test_a_stopped_training_is_not_continued_with_another_data_file(own_registry, tmp_path, monkeypatch):
    register_of_file(tmp_path / "level.npy", 10)
    of_two = tiny.config(epochs=2, checkpoint_epochs=1, corruption="mine/darker")
    with monkeypatch.context() as patch:
        patch.setattr(run.Run, "save", save_and_stop(run.Run.save))
        with pytest.raises(KeyboardInterrupt):
            train.train_and_evaluate(of_two, tmp_path / "work")
    assert not workdirs.finished(tmp_path / "work")
    register_of_file(tmp_path / "level.npy", 20)
    refuses(lambda: train.train_and_evaluate(of_two, tmp_path / "work"), "other pixels: code", kind=WorkdirError)
    register_of_file(tmp_path / "level.npy", 10)
    train.train_and_evaluate(of_two, tmp_path / "work")


def save_and_stop(save):
    """Ends the process after the first checkpoint."""

    def stop(run, state):
        save(run, state)
        raise KeyboardInterrupt

    return stop


def test_a_run_that_has_no_step_yet_begins_with_the_present_code(own_registry, tmp_path, monkeypatch):
    register_mine(10)
    with monkeypatch.context() as patch:
        patch.setattr(loop.Rows, "train", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train.train_and_evaluate(MINE, tmp_path / "work")
    register_mine(40)
    assert np.isfinite(train.train_and_evaluate(MINE, tmp_path / "work"))


def test_a_raised_version_of_a_corruption_is_refused(own_registry, tmp_path):
    register_mine(10)
    train.train_and_evaluate(MINE, tmp_path / "work")
    register_mine(10, version=2)
    refuses(lambda: train.train_and_evaluate(MINE, tmp_path / "work"), "stored 1, requested 2", kind=WorkdirError)


def test_the_record_of_another_model_and_a_grown_benchmark_are_refused(own_registry, tmp_path):
    register_mine(10)
    corruptions.register_benchmark("mine", ["mine/darker"])
    mixture = tiny.config(epochs=1, corruption="mixture=mine")
    train.train_and_evaluate(mixture, tmp_path / "work")
    register_mine(10, name="brighter")
    corruptions.register_benchmark("mine", ["mine/darker", "mine/brighter"], replace=True)
    refuses(
        lambda: train.train_and_evaluate(mixture, tmp_path / "work"),
        "mine/darker, requested mine/brighter, mine/darker",
        kind=WorkdirError,
    )
