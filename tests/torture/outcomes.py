"""The outcome of a case, and the table of all cases."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

KINDS = {  # outcome -> its column of the table
    "same": "as undisturbed",
    "refused": "refused clearly",
    "unread": "damage not read",
    "litter": "files left over",
    "unclear": "unclear",
    "lost": "lost",
    "wrong": "silently wrong",
}
FAILURES = ("unclear", "lost", "wrong")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How one case ended.

    Attributes:
      kind: `same` (the result of an undisturbed run, or every property holds); `refused` (a message
        that names what is wrong); `unread` (the same result, by commands that do not read what was
        damaged); `litter` (the same result beside half-written files); `unclear` (a traceback, a
        message without a name, a hang); `lost` (the same command does not finish any more); `wrong`
        (status 0 and another result).
      what: the case in words; of failures also what was found.
      count: units attacked: kills, pictures, damages.
    """

    kind: str
    what: str
    count: int = 1

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"expected an outcome among {', '.join(KINDS)}, found {self.kind!r}")


def summary(records: Iterable[Mapping[str, Any]], units: Mapping[str, str]) -> str:
    """Returns the Markdown table of logged cases: a row for each attack.

    Args:
      records: of the log: attack, seed, kind, count, seconds.
      units: attack -> what its counts count.
    """
    by_attack = collections.defaultdict(list)
    for record in records:
        by_attack[record["attack"]].append(record)
    lines = [
        f"| attack | cases | units | {' | '.join(KINDS.values())} | seeds of failures | minutes |",
        "|---|" + "---|" * (len(KINDS) + 4),
    ]
    for attack, found in by_attack.items():
        counts = collections.Counter(record["kind"] for record in found)
        failed = [f"{r['seed']} ({r['kind']})" for r in found if r["kind"] in FAILURES]
        shown = ", ".join(failed[:20]) + (f" and {len(failed) - 20} more" if len(failed) > 20 else "")
        cells = [attack, len(found), f"{sum(r['count'] for r in found):,} {units.get(attack, '')}"]
        cells += [counts[kind] for kind in KINDS] + [shown, f"{sum(r['seconds'] for r in found) / 60:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"
