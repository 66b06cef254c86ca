"""tools.exits on an untrained network with exits, and its tables."""

import numpy as np
import pandas as pd
import pytest

from models import costs
from tests.training import tiny
from tools import exits


@pytest.mark.slow
def test_exits_are_counted_clean_and_corrupted(tmp_path, monkeypatch):
    config = tiny.config()
    config.model.name = "msdnet"
    config.model.update({"exits": 2, "step": 1, "base": 1})
    config.eval.corruptions, config.eval.severity = ("noc/border",), "random"
    workdir = tiny.untrained_workdir(tmp_path / "w", config)
    text = exits.run(config, workdir)
    alone = pd.read_csv(workdir / "exits.csv", dtype=str).to_numpy().tolist()
    up_to = costs.at_exits("msdnet", 32, 10, exits=2, step=1, base=1)
    assert [(r[2], r[3], r[4], int(r[5]), r[7]) for r in alone] == [
        (corruption, severity, str(number), cost, "70")
        for corruption, severity in (("clean", "0"), ("noc/border", "random"))
        for number, cost in enumerate(up_to, 1)
    ]
    adaptive = pd.read_csv(workdir / "adaptive.csv", dtype=str).to_numpy().tolist()
    assert len(adaptive) == 2 * len(exits.BUDGETS) and {r[7] for r in adaptive} == {"35"}
    means = [int(r[5]) for r in adaptive if r[2] == "clean"]
    assert means == sorted(means) and up_to[0] < np.mean(means) < up_to[1]
    assert text.count("\n| standard, 0 |") == 2 + len(exits.BUDGETS)
    monkeypatch.setattr("evaluation.correctness.of_exits", lambda *_: pytest.fail("answered again"))
    assert exits.run(config, workdir) == text
