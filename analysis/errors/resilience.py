"""Scores of camera benchmarks: corruption errors and resilience rates of RoboDepth and RoboBEV.

An error lies in [0, 1]: RoboDepth's DEE, (absolute relative error - delta_1 + 1) / 2, or RoboBEV's 1 - NDS. It is
averaged over the severities of a corruption before anything is divided.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

Errors = Mapping[str, float | Sequence[float]]


def scores(errors: Errors, clean: float, baseline: Errors, baseline_clean: float) -> pd.DataFrame:
    """Scores one model against a baseline, a row for each corruption and a last row `mean`.

    CE_c = E_c / B_c, RR_c = (1 - E_c) / (1 - E_clean), relative CE_c = (E_c - E_clean) / (B_c - B_clean), each times
    100 (S. Xie et al., RoboBEV; L. Kong et al., RoboDepth). Means over corruptions are mCE, mRR and RmCE.

    Args:
      errors: {corruption: error in [0, 1], or one for each severity}.
      clean: error on clean images.
      baseline, baseline_clean: of the baseline, for the same corruptions.

    Returns:
      Columns `error`, `CE`, `RR`, `relative CE`; a relative CE is NaN where the baseline loses nothing.

    Raises:
      ValueError: corruptions that one of the two lacks, or an error that is not in [0, 1].
    """
    if set(errors) != set(baseline) or not errors:
        odd = sorted(set(errors) ^ set(baseline))
        raise ValueError(
            f"expected errors of the same corruptions for the model and the baseline, found {odd} in one alone"
        )
    ours, theirs = (np.array([np.mean(table[name]) for name in errors]) for table in (errors, baseline))
    everything = np.concatenate([ours, theirs, [clean, baseline_clean]])
    if not ((everything >= 0) & (everything <= 1)).all():
        raise ValueError(f"expected errors in [0, 1], found {everything[~((everything >= 0) & (everything <= 1))][0]}")
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(theirs > baseline_clean, (ours - clean) / (theirs - baseline_clean), np.nan)
    table = pd.DataFrame(
        {
            "error": ours,
            "CE": 100 * ours / theirs,
            "RR": 100 * (1 - ours) / (1 - clean),
            "relative CE": 100 * relative,
        },
        index=list(errors),
    )
    table.loc["mean"] = table.mean(skipna=False)
    return table
