"""Tests how well robustness to corruptions predicts robustness to natural shifts.

    python -m projects.natural_shift --testbed=robustness_top1s.csv --types=model_types.csv --out=runs/natural_shift
    python -m projects.natural_shift --timm=pytorch-image-models/results --out=runs/natural_shift_timm
    python -m projects.natural_shift --workdirs="runs/*" --out=runs/overlap/natural_shift

Reads accuracies of many models on clean, corrupted and naturally shifted images: the public table of the ImageNet testbed, the
result files of timm, or workdirs that eval.py evaluated with config.eval.natural. Prints, with intervals over resampled
models, how well clean accuracy, a benchmark, each of its corruptions, and benchmarks of n categories and k corruptions
predict natural shifts: correlation of accuracy drops, Spearman, partial correlation given clean accuracy, effective robustness.
Writes natural_shift.md, tables and figures into the folder --out; a report on a workdir shows WORKDIR/natural_shift.
--published_units adds the correlations with an error of published code, labelled.
"""

from runtime import command  # isort: skip

import glob
import pathlib

from absl import flags

from analysis import figures as drawing
from analysis.answers import FOLDER
from analysis.overlap.measured import read_overlap
from analysis.selection.nk_benchmarks import categories
from projects.natural_shift import figures
from projects.natural_shift.benchmarks import categories_of
from projects.natural_shift.sources import KINDS, read_testbed, read_timm, read_types, read_workdirs, timm_files
from projects.natural_shift.study import study, text, write
from runtime.artifacts import record_inputs
from runtime.log import log


def define_flags():
    flags.DEFINE_string("testbed", None, "robustness_top1s.csv of the ImageNet testbed.")
    flags.DEFINE_string("timm", None, "Folder of timm's results-*.csv.")
    flags.DEFINE_string("workdirs", None, "Workdirs that were evaluated on natural shifts, a pattern in quotes.")
    flags.DEFINE_string("types", None, "CSV file model,type; lines are fitted to type `standard`.")
    flags.DEFINE_enum("kind", KINDS[0], KINDS, "ImageNet-C of the testbed: as JPEG files, or without them.")
    flags.DEFINE_list("shifts", [], "Natural shifts; default: the usual ones of the table.")
    flags.DEFINE_list("benchmark", [], "Corruptions or benchmarks; default: ImageNet-C, else all of the table.")
    flags.DEFINE_list("models", [], "Only these models.")
    flags.DEFINE_string("overlap", None, "overlap.csv that gives categories; default: the published ones.")
    flags.DEFINE_float("correlation", 0.5, "Mean correlation within categories, with --overlap.")
    flags.DEFINE_bool("published_units", False, "Add drops of clean accuracy as a fraction, a published error.")
    flags.DEFINE_integer("resamples", 1000, "Resamples of the models for the intervals.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Seed of the resamples and of the drawn benchmarks.", lower_bound=0)
    flags.DEFINE_string("out", None, "Folder of the results (required).")


def read_table(given):
    """Returns (table of models, files it was read from)."""
    sources = [name for name in ("testbed", "timm", "workdirs") if getattr(given, name)]
    if len(sources) != 1:
        raise ValueError(f"expected one of --testbed, --timm and --workdirs, found {' and '.join(sources) or 'none'}")
    for name, needed in (("kind", "testbed"), ("correlation", "overlap")):
        if given[name].present and not given[needed].value:
            raise ValueError(f"expected --{name} with --{needed}, found it without")
    types = [pathlib.Path(given.types)] if given.types else []
    if given.testbed:
        path = pathlib.Path(given.testbed)
        return read_testbed(path, *types, kind=given.kind), [path, *types]
    of_type = read_types(*types) if types else None
    if given.timm:
        folder = pathlib.Path(given.timm)
        return read_timm(folder, of_type), [*timm_files(folder), *types]
    folders = [folder for folder in map(pathlib.Path, sorted(glob.glob(given.workdirs))) if (folder / FOLDER).is_dir()]
    if not folders:
        raise ValueError(f"expected --workdirs=PATTERN of evaluated workdirs, found none like {given.workdirs}")
    return read_workdirs(folders, of_type), [
        *(file for f in folders for file in sorted((f / FOLDER).glob("*.npz"))),
        *types,
    ]


def read_clusters(table, given):
    """Returns (categories of the benchmark's corruptions, files they were read from); none if they are unknown."""
    members = table.members(given.benchmark)
    if not given.overlap:
        try:
            return categories_of(members), []
        except ValueError as error:
            if members:
                log.info("No benchmarks by categories: %s.", error)
            return (), []
    path = pathlib.Path(given.overlap)
    names, overlap, *_ = read_overlap(path)
    if lacking := [name for name in members if name not in names]:
        raise ValueError(f"{path}: expected the benchmark's corruptions, found none of {', '.join(lacking)}")
    index = [names.index(name) for name in members]
    measured = categories(overlap[index][:, index], members, correlation=given.correlation, seed=given.seed)
    if measured.dropped:
        raise ValueError(
            f"{path}: expected an overlap of every corruption, found none of {', '.join(measured.dropped)}"
        )
    return measured.clusters, [path]


def run(given):
    """Prints and writes the tables and figures; returns (table, study)."""
    table, files = read_table(given)
    if given.models:
        table = table.chosen(given.models)
    clusters, more = read_clusters(table, given)
    results = study(table, given.shifts, given.benchmark, clusters, resamples=given.resamples, seed=given.seed)
    print(text(results, given.published_units))
    panels = {"accuracies": figures.accuracy_panels(table, results)}
    if len(results.predictions):
        panels["drops"] = figures.drop_panels(table, results)
    if len(results.bins):
        panels["benchmarks"] = figures.benchmark_panel(results)
    out, record = pathlib.Path(given.out), record_inputs({str(path): path for path in (*files, *more)})
    write(out, results, record | {"command": command.command_line()}, given.published_units, list(panels))
    drawing.remove(out, ("accuracies", "drops", "benchmarks"))
    for name, panel in panels.items():
        drawing.save(panel, out / name)
    return table, results


def main(argv):
    given = command.given(argv, {"out": "FOLDER"})
    run(given)
    print(f"\nwritten to {given.out}")


if __name__ == "__main__":
    define_flags()
    command.run(main)
