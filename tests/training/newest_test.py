"""Commands take the newest corruptions by name."""

import sys

import numpy as np
import PIL.Image
import pytest

from tests import processes
from tests.analysis.made_up import read_counts
from tests.reference.photographs import photographs

NAMES = "('laion_c/mosaic','optics/coma','camera/dark','robodepth/fog')"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_study_of_the_newest_corruptions(tmp_path):
    """Four small networks and a standard one are trained, evaluated and compared, with a bank from a folder."""
    (tmp_path / "bank").mkdir()
    for number, tile in enumerate(photographs(12, 32, 32)):
        PIL.Image.fromarray(np.asarray(tile)).save(tmp_path / "bank" / f"{number}.png")
    given = [f"--workdir={tmp_path / 'study'}", f"--config.bank={tmp_path / 'bank'}"]
    smaller = ["--config.train.epochs=1", "--config.train.milestones=()", "--config.dataset.train_limit=500"]
    command = ["overlap.py", "--config=configs/overlap_imagenet100.py:smoke", f"--config.study.corruptions={NAMES}"]
    done = processes.run([sys.executable, *command, *given, *smaller], timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    shown = {count.corruption for count in read_counts(tmp_path / "study" / "counts.csv")}
    assert shown == {"clean", "laion_c/mosaic", "optics/coma", "camera/dark", "robodepth/fog"}
