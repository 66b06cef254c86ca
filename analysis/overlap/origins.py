"""Whether the answers of an overlap study have one origin: the same test images, draws and options, and the same code."""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from analysis import answers
from analysis.answers import Record
from analysis.frames import CLEAN
from corruptions.core.code import code_digest
from corruptions.core.origin import UNKNOWN, Origin, differences, same_code
from runtime import artifacts

_REMEDY = "remove the file and run overlap.py again"
_PRESENT = "present"
_LISTED = 3


def refuse_mixed(workdir: pathlib.Path, records: Iterable[Record], options: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuses answers to other test images, under other draws, or under other options than those of the study.

    Args:
      workdir: where the answers lie.
      records: those of the study's files, clean images first. What an earlier version did not record is not compared.
      options: {corruption: its static options} of the study's settings.

    Raises:
      ValueError: names the first file that differs, what is stored in both, and what to do.
    """
    of_study: dict[str, Any] = {}
    for record in records:
        shown, name = record.shown, record.corruption
        own = Origin(data=shown.get("images") or UNKNOWN, evaluator={"superclasses": shown.get("superclasses")})
        asked = Origin(**of_study)
        if name != CLEAN and "options" in shown:
            drawn = {"seed": shown.get("seed", UNKNOWN), "generator": shown.get("prng", UNKNOWN)}
            own = Origin(own.data, evaluator=own.evaluator, options=shown["options"], **drawn)
            asked = Origin(**of_study, options=options.get(name, {}))
        if lines := differences(own, Origin.from_json(asked.to_json()), remedy=_REMEDY):
            path = pathlib.Path(workdir) / answers.FOLDER / f"{record.stem}.npz"
            raise ValueError(f"{path} does not belong to the study's other answers: {'; '.join(lines)}")
        found = {field: value for field, value in own.to_json().items() if field != "options"}
        of_study = found | of_study


def other_code(workdir: pathlib.Path, records: Iterable[Record]) -> str:
    """Says in a sentence which images were corrupted by other code than the rest, where no probe found the two equal; else "".

    Code is that of the library and of the user's modules; where it is not today's, the library's digest is compared, which
    versions before did not record.
    """
    accepted = answers.accepted(pathlib.Path(workdir) / answers.FOLDER)
    by_code: dict[str, list[str]] = {}
    for record in records:
        by_code.setdefault(_code(record, accepted), []).append(record.corruption)
    by_code.pop(UNKNOWN, None)
    most, *others = sorted(by_code.values(), key=len, reverse=True) or [[]]
    if not others:
        return ""
    names = [name for of_code in others for name in of_code]
    more = f" and {len(names) - _LISTED} more" * (len(names) > _LISTED)
    return (
        f"{workdir} holds answers to images of {', '.join(names[:_LISTED])}{more} that other code corrupted than those of "
        f"{most[0]}, and nothing has compared the two: run overlap.py again, which compares both with today's code"
    )


def _code(record: Record, accepted: Mapping[str, str]) -> str:
    """Names the code of a record: today's, also where a probe agreed, or the library's digest."""
    stored = record.origin.get("code", UNKNOWN)
    if stored == UNKNOWN:
        return UNKNOWN
    try:
        now = Origin(code=code_digest(record.about.get("imports", ()), record.corruption))
    except ValueError:  # a corruption that this version does not know
        now = Origin()
    agreed = accepted.get(artifacts.digest([record.stem, record.origin]))
    known = record.origin.get("recorded", {}).get("library", UNKNOWN)
    return _PRESENT if same_code(now, stored, agreed) else known
