"""A few cases of `make torture`, in this process, and its own parts: the log, the comparison, the table."""

import json

import numpy as np
import pytest

from analysis import answers
from runtime.files import DamagedFileError
from tests.torture import cases, commands, damages, fuzz, hostile, outcomes, views
from tests.torture.outcomes import FAILURES, Outcome


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [("noc/border", (16, 16), "uint8"), ("cbar/lines", (16, 16), "uint8"), ("noc/contrast", (16, 16), "float32")],
)
def test_a_slice_of_fuzz(name, shape, kind):
    outcome = fuzz.attack(cases.generator("fuzz", 1, 0), name, shape, kind)
    assert outcome.kind == "same" and outcome.count == 5 * 20 + 1, outcome


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "one channel"])
def test_a_slice_of_unusual_pictures(kind):
    outcome = fuzz.attack(cases.generator("fuzz", 1, 1), "noc/border", (16, 16), kind)
    assert outcome.kind in ("same", "refused"), outcome


def test_fuzz_sees_a_pixel_that_leaves_the_range_and_one_that_depends_on_the_batch():
    images = np.random.default_rng(0).random((3, 16, 16, 3), np.float32)
    assert fuzz._properties(images, images * 1.1, np.zeros(3)) and not fuzz._properties(images, images, np.zeros(3))
    assert fuzz._properties(images, images * np.nan, np.zeros(3))
    levels = (255 * images).astype(np.uint8)
    assert fuzz.same_pixels(levels ^ 1, levels, "alone") and not fuzz.same_pixels(levels, levels, "alone")


def test_fuzz_sees_a_corruption_that_is_not_its_reference(monkeypatch):
    rng = np.random.default_rng(0)
    assert fuzz.compare(rng, "noc/contrast", (16, 16)) == []
    monkeypatch.setattr(fuzz.noc, "contrast", lambda image, params: image)
    assert fuzz.compare(rng, "noc/contrast", (16, 16))


@pytest.mark.parametrize("attack", ["clips", "each"])
def test_a_slice_of_clips_and_of_many_sizes_and_that_they_see_other_draws(attack, monkeypatch):
    monkeypatch.setattr(views, "NAMES", ("noc/border",))
    monkeypatch.setattr(views, "_CLIP_SHAPES", ((16, 16),))
    outcome = getattr(views, attack)(cases.generator(attack, 1, 0))
    assert outcome.kind == "same", outcome
    corrupt, each = views.corruptions.corrupt, views.corruptions.corrupt_each

    def corrupt_others(key, images, name, severity, axis=None, **given):
        return corrupt(key, images[::-1] if axis else images, name, severity, axis=axis, **given)

    def each_others(key, images, name, severity, **given):
        return each(key, images, name, severity if given else severity / 2, **given)

    monkeypatch.setattr(views.corruptions, "corrupt", corrupt_others)
    monkeypatch.setattr(views.corruptions, "corrupt_each", each_others)
    outcome = getattr(views, attack)(cases.generator(attack, 1, 0))
    assert outcome.kind == "wrong", outcome


def test_a_process_that_takes_no_time_hangs_and_one_whose_output_nobody_reads_ends(monkeypatch):
    done = commands.Process(["-c", "print('x' * 300_000)"], streams="| true").wait()
    assert done.status != 0 and not done.hung
    monkeypatch.setattr(commands, "LIMIT", 0.6)
    hanging = commands.Process(["-c", "import time; time.sleep(60)"], anew=True).wait()
    assert hanging.hung and hanging.status == -9 and hanging.seconds < 30
    busy = commands.Process(["-c", "while True: pass"], anew=True).wait()
    assert busy.hung and busy.status == -9


@pytest.mark.parametrize("number", range(2))
def test_a_slice_of_bad_calls(number):
    outcome = hostile.calls(cases.generator("calls", 1, number))
    assert outcome.kind == "refused" and outcome.count == 100, outcome


@pytest.mark.parametrize("number", range(6))
def test_a_slice_of_hostile_images(number, tmp_path):
    outcome = hostile.images(cases.generator("images", 1, number), tmp_path)
    assert outcome.kind not in FAILURES, outcome


def test_damaged_answers_are_refused_or_read_as_they_were(tmp_path):
    rng = np.random.default_rng(2)
    truth = {("standard", 0): rng.random(70) < 0.5, ("noc/fog", 3): rng.random(70) < 0.5}
    refused = 0
    for _ in range(150):
        path = tmp_path / "clean-0.npz"
        answers.write(tmp_path, truth, answers.Record("clean", 0, None, 70, {}))
        what = damages.damage(rng, path)
        try:
            found = answers.read_file(path)[0]
        except (DamagedFileError, FileNotFoundError):
            refused += 1
            continue
        assert found.keys() == truth.keys(), what
        for key, bits in found.items():
            np.testing.assert_array_equal(bits, truth[key], what)
    assert refused > 75


def test_every_damage_changes_what_is_there(tmp_path):
    rng = np.random.default_rng(0)
    seen = set()
    for number in range(120):
        folder = tmp_path / str(number)
        (folder / "checkpoints" / "4" / "state").mkdir(parents=True)
        (folder / "checkpoints" / "4" / "state" / "0.bin").write_bytes(bytes(range(256)))
        (folder / "counts.csv").write_text("model,correct\nstandard,12\nnoc,3\n")
        (folder / "final.json").write_text(json.dumps({"step": 12, "digest": "ab1"}))
        before = _content(folder)
        what = damages.damage(rng, damages._pick(rng, folder))
        assert _content(folder) != before, what
        seen.add(" ".join(what.split()[:2]))
    assert len(seen) >= 7


def _content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_comparison_sees_one_byte_and_half_written_files_but_not_the_speed_of_a_run(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, speed in ((one, 10.5), (other, 7)):
        (folder / "checkpoints" / "10").mkdir(parents=True)
        line = {"step": 10, "loss": 2.5, "accuracy": 0.1, "images_per_second": speed}
        (folder / "metrics.jsonl").write_text(json.dumps(line))
        np.savez(folder / "subset.npz", mix=np.arange(3), about=json.dumps({"written": str(speed), "numbers": [1]}))
        (folder / "counts.csv").write_text("model,correct\nstandard,12\n")
        (folder / "provenance.json").write_text(json.dumps({"speed": speed}))
        (folder / "report.html").write_text(f"<p>Made on 2026-11-22 10:{speed:02.0f} UTC</p>")
    expected = outcomes.snapshot(one)
    assert expected.keys() == {"metrics.jsonl", "counts.csv", "checkpoints", "report.html", "subset.npz"}
    assert not outcomes.differences(outcomes.snapshot(other), expected)
    (other / ".part-counts.csv.0a").write_text("half")
    left = outcomes.differences(outcomes.snapshot(other), expected)
    assert outcomes.kind(left) == "litter"
    (other / "counts.csv").write_text("model,correct\nstandard,13\n")
    (other / "checkpoints" / "10").rmdir()
    np.savez(other / "subset.npz", mix=np.arange(3), about=json.dumps({"written": "7", "numbers": [2]}))
    lines = outcomes.differences(outcomes.snapshot(other), expected)
    assert len(lines) == 4 and outcomes.kind(lines) == "wrong"


def test_metrics_of_a_run_that_was_stopped_within_a_block_are_those_of_the_whole_block(tmp_path):
    def metrics(name, *lines):
        (tmp_path / name).mkdir()
        lines = [json.dumps({"step": step, "loss": loss, "accuracy": 0.5}) for step, loss in lines]
        (tmp_path / name / "metrics.jsonl").write_text("\n".join(lines))
        return outcomes.snapshot(tmp_path / name)

    whole = metrics("whole", (10, 2.0), (20, 1.0))
    assert metrics("stopped", (10, 2.0), (12, 1.4), (20, 0.9)) == whole
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "metrics.jsonl").write_text('{"step": 10, "lo')
    assert outcomes.snapshot(tmp_path / "damaged") != whole
    assert metrics("lost", (20, 1.0)) != whole != metrics("wrong", (10, 2.0), (12, 1.4), (20, 1.0))


def test_a_torture_that_was_stopped_continues_with_the_next_case_and_repeats_one_exactly(tmp_path):
    drawn = []

    def run_case(attack, rng):
        drawn.append(float(rng.random()))
        if len(drawn) in (4, 7):
            raise KeyboardInterrupt
        return Outcome("wrong" if len(drawn) == 2 else "same", "a case", 3)

    torture = cases.Torture(tmp_path, 7, run_case)
    with pytest.raises(KeyboardInterrupt):
        torture.run(1, ("kills",))
    with open(tmp_path / "kills.jsonl", "a") as file:
        file.write('{"attack": "kil')  # left by a torture that was killed while it wrote
    with pytest.raises(KeyboardInterrupt):
        torture.run(1, ("kills",))
    assert [record["seed"] for record in torture.records()] == [0, 1, 2, 3, 4]
    assert drawn[4] == drawn[3] and len(set(drawn[:4])) == 4  # the case that was interrupted is run again
    torture.case("kills", 1)
    assert drawn[-1] == drawn[1]
    assert cases.Torture(tmp_path, 8, run_case).records() == []  # other seeds, other cases
    row = next(line for line in torture.summary().splitlines() if line.startswith("| kills"))
    assert "15 kills" in row and "1 (wrong)" in row
    torture.run_failed_again()
    row = next(line for line in torture.summary().splitlines() if line.startswith("| kills"))
    assert "15 kills" in row and "wrong" not in row


def test_a_torture_ends_when_its_cases_took_the_minutes_over_all_calls(tmp_path):
    record = {"attack": "kills", "base": 7, "seed": 3, "kind": "same", "count": 1, "seconds": 61.0, "what": ""}
    (tmp_path / "kills.jsonl").write_text(json.dumps(record) + "\n")
    torture = cases.Torture(tmp_path, 7, lambda attack, rng: pytest.fail("a case too many"))
    torture.run(1, ("kills",))


def test_time_in_which_the_torture_was_stopped_does_not_count(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(commands.time, "monotonic", lambda: now[0])
    clock = commands.Clock()
    now[0] += 3
    assert clock.tick() == 3
    now[0] += 3600  # stopped
    assert clock.tick() <= 13


def test_a_table_counts_each_outcome():
    records = [
        {"attack": "kills", "seed": number, "kind": kind, "count": 2, "seconds": 60}
        for number, kind in enumerate(("same", "same", "refused", "lost", "unclear"))
    ]
    head, _, row = outcomes.summary(records, {"kills": "kills"}).splitlines()
    cells = dict(zip(head.split("|"), row.split("|"), strict=True))
    cells = {key.strip(): value.strip() for key, value in cells.items()}
    assert cells["as undisturbed"] == "2" and cells["refused clearly"] == "1" and cells["minutes"] == "5"
    assert cells["units"] == "10 kills" and cells["seeds of failures"] == "3 (lost), 4 (unclear)"


def test_an_outcome_of_no_kind_is_refused():
    with pytest.raises(ValueError, match="expected an outcome among same"):
        Outcome("fine", "a case")


def test_what_a_torture_that_is_given_up_started_is_ended():
    process = commands.Process(["-c", "import time; time.sleep(60)"], anew=True)
    assert process.running()
    commands.end_all()
    assert not process.running() and process not in commands._LIVE
