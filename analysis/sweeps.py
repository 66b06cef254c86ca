"""The table of a sweep: a row for each setting and model, over the seeds of the setting."""

import pathlib
from collections.abc import Mapping, Sequence

from analysis.errors import files, joint
from analysis.errors.choice import LABEL
from analysis.errors.joint import Joint
from analysis.errors.scores import Value
from analysis.errors.summary import NONE, Summary
from analysis.tables import CLEAN
from runtime.files import read_json
from runtime.provenance import summary

_CLEAN = (CLEAN, NONE, "mean_error")
_OF_CLEAN = {"accuracy": float, "standard_error": float}
_OF_PROVENANCE = {"device": str, "git_revision": str}


def table(settings: Mapping[str, Sequence[pathlib.Path]], reference: str = "", missing: Sequence[str] = ()) -> Joint:
    """Tabulates what the workdirs of a sweep hold: clean errors, and those on benchmarks where all of
    them were evaluated.

    Args:
      settings: {name: finished workdirs of train.py or overlap.py, one for each seed}. Those measured
        under other conditions than the first, or than their first seed, are labelled.
      reference: of CE, see `analysis.errors.choice.choose`.
      missing: names of what is not finished, for the caption.

    Raises:
      FileNotFoundError, ValueError: a workdir whose results are missing or damaged.
    """
    if all((folder / "counts.csv").is_file() for folders in settings.values() for folder in folders):
        evaluated = [
            joint.over_seeds([joint.read(folder, f"{name}/{folder.name}") for folder in folders], name)
            for name, folders in settings.items()
        ]
        whole = joint.joint(evaluated, reference=reference, mismatch=LABEL)
    else:
        whole = _of_clean_errors(settings)
    note = (f"Not finished, and left out: {', '.join(missing)}.",) if missing else ()
    return whole._replace(caption=(*whole.caption, *note))


def _of_clean_errors(settings):
    """The table of what train.py measures."""
    cells, sources = {}, []
    for name, folders in settings.items():
        cells[name, _CLEAN] = _clean_error(name, folders)
        records = [read_json(folder / "provenance.json", shape=_OF_PROVENANCE) for folder in folders]
        sources.append(f"{folders[0].parent} ({'; '.join(dict.fromkeys(map(summary, records)))})")
    caption = (
        "Top-1 errors in percent on clean test images, mean ± standard error over test images (std between seeds).",
        f"From {'; '.join(sources)}.",
    )
    return Joint(tuple(settings), (_CLEAN,), cells, {}, caption)


def _clean_error(name, folders) -> Summary:
    values = []
    for folder in folders:
        clean = read_json(folder / "clean.json", shape=_OF_CLEAN)
        values.append((Value(100 * (1 - clean["accuracy"]), 100 * clean["standard_error"]), None))
    return files.summarise((name, *_CLEAN), values)
