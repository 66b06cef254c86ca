"""Attacks this checkout for an hour, and says what held.

    python -m tests.torture [--minutes=60] [--seed=0] [--out=build/torture] [--attacks=kills,fuzz]
    python -m tests.torture --only=kills:17            # one case again, exactly
    python -m tests.torture --failed                   # all that failed, after the code was mended

A case is chosen by (attack, --seed, its number). Each is a line of OUT/ATTACK.jsonl; the same command continues until
the cases of that folder have taken --minutes in all. Prints a Markdown table, which is OUT/summary.md too.
"""

import os
import sys


def main(argv=None):
    for name, value in (("JAX_PLATFORMS", "cpu"), ("OPENBLAS_NUM_THREADS", "1")):
        os.environ.setdefault(name, value)
    from tests.torture import cases

    return cases.main(argv, __doc__)


if __name__ == "__main__":
    sys.exit(main())
