"""Training on a CPU in pieces of blocks: the same bits in pieces of any length, and a stop within one piece."""

import json
import os
import signal

import chex
import pytest

from tests.training import tiny
from training import loop, rows, steps, study


def train(dataset, folder, mesh, **options):
    folder.mkdir(exist_ok=True)
    config = study.model_config(tiny.config(), "standard", 0)
    return loop.train(config, dataset.train.to_device(), dataset.num_classes, folder, mesh=mesh, **options)[1]


def lines(folder):
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line["loss"], line["accuracy"]) for line in found]


def record_spans(monkeypatch):
    spans, original = [], steps.train_models_block

    def call(*arguments, spans_=spans, **options):
        spans_.append(None if options["spans"] is None else options["spans"].tolist())
        return original(*arguments, **options)

    monkeypatch.setattr(steps, "train_models_block", call)
    return spans


@pytest.fixture(scope="module")
def whole(dataset, mesh, tmp_path_factory):
    """Folder and state of a run in whole blocks of 5 steps, as accelerators train."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "in_pieces", lambda mesh: False)
        spans = record_spans(patch)
        state = train(dataset, folder, mesh)
    assert spans == [None, None]
    return folder, state


@pytest.mark.parametrize("seconds, number", [(0, 10), (1000, 4)])
def test_pieces_of_any_length_train_to_the_same_bits(dataset, mesh, tmp_path, whole, monkeypatch, seconds, number):
    monkeypatch.setattr(rows, "PIECE_SECONDS", seconds)
    spans = record_spans(monkeypatch)
    state = train(dataset, tmp_path, mesh)
    assert len(spans) <= number and spans[0] == [[0, 1]]
    chex.assert_trees_all_equal(state, whole[1])
    assert lines(tmp_path) == lines(whole[0]) and [step for step, *_ in lines(tmp_path)] == [5, 10]


@pytest.mark.parametrize("in_pieces", [True, False])
def test_a_run_stopped_within_a_block_continues_to_the_same_bits(
    dataset, mesh, tmp_path, whole, monkeypatch, caplog, in_pieces
):
    """The first part stops in a piece of a block; the second continues in pieces, or as an accelerator does."""
    monkeypatch.setattr(rows, "PIECE_SECONDS", 0)
    original, calls = steps.train_models_block, []

    def third_is_last(*arguments, **options):
        calls.append(options["spans"])
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(steps, "train_models_block", third_is_last)
        train(dataset, tmp_path, mesh)
    assert end.value.code == 143 and (tmp_path / "checkpoints" / "3").is_dir()
    assert [step for step, *_ in lines(tmp_path)] == [3]
    monkeypatch.setattr(rows, "in_pieces", lambda mesh: in_pieces)
    chex.assert_trees_all_equal(train(dataset, tmp_path, mesh), whole[1])
    assert [step for step, *_ in lines(tmp_path)] == [3, 5, 10] and lines(tmp_path)[2] == lines(whole[0])[1]
