"""Makes tables from evaluated workdirs: errors of models, balance of a benchmark, means over sets, comparisons.

    python -m tools.tables runs/resnet50 runs/augmix runs/deepaugment --out=runs/table

puts models and benchmarks in one table: mean error, mCE and relative mCE of each benchmark and the gap between C-bar and C,
with standard errors and the spread between seeds. A number is bold where it is significantly smaller than each other one of
its column: paired on the answers to the same test images, corrected after Holm. Writes table.md, table.csv and table.tex into
the folder --out. Workdirs of other conditions (dataset, size, ranges, frost ...) than the first, or than the reference, are
refused, or marked with --mismatch=label. Where two workdirs hold the same model and seed, models are called by their workdirs.

    python -m tools.tables runs/imagenet/* --by=corruption --measures=CE,relative_CE [--printed] [--out=runs/table]
    python -m tools.tables --printed [--benchmarks=imagenet_noc]

gives each corruption a column: a table for each benchmark and measure, with clean error and mean. --printed adds the rows
that papers print of the same dataset, benchmark and measure; without a workdir it prints these rows alone. Writes
by_corruption.csv, .md and .tex.

    python -m tools.tables runs/alexnet --write_reference=alexnet_cifar10.json --models=standard

writes a model's errors as a reference, for --config.eval.reference of eval.py and overlap.py.

    python -m tools.tables runs/c_noc_resnet18 --table=balance --benchmarks=imagenet_c,imagenet_noc \\
        --reference=alexnet --mismatch=label [--measure=relative_CE]

takes a workdir of overlap.py with the standard model and one for each corruption of the benchmarks. Prints the models' errors
on each benchmark and the spread of their means (Tables 7, 8 and 2 of the paper on ImageNet-NOC); writes balance.json.

    python -m tools.tables runs/robust/alexnet runs/robust/standard [runs/...] --table=sets \\
        --overlap=runs/in100_resnet18 --size=8 --measure=CE --reference=runs/robust/alexnet --beside=noc/border,noc/obstruction

cuts the corruptions of a workdir of overlap.py, or of a CSV file, into the --size of largest mean overlap (Set1) and the rest
(Set2), as Table 1 of the paper on the overlapping score does. Prints every model's mean error over each set, its gain over the
standard model, and relative CE of single corruptions beside them; writes set_means.json beside the matrix.

    python -m tools.tables runs/resnet18 runs/densenet121 [runs/...] --table=overlaps [--threshold=0.1] [--out=runs/architectures]

compares the overlaps of studies of the same corruptions, and the benchmarks that Algorithm 1 selects from each. Of two it
writes comparison.json into the second workdir; of more, every two, comparisons.json and matrices.png into the folder --out.

    python -m tools.tables runs/wrn/msd runs/vgg/msd --table=distances [--errors=runs/schemes]

compares two feature extractors by their folders of tools.msd: ranks of their distances and, with the workdir --errors of models
trained with the schemes, how well either's correlate with error. Writes comparison.json into the second folder.
"""

from runtime import command  # isort: skip

import pathlib
from collections.abc import Sequence

import pandas as pd
from absl import app, flags

import corruptions
from analysis import answers, figures
from analysis.distances import results
from analysis.errors import joint, reference, sets
from analysis.errors.reference import LABEL, NONE, REFUSE
from analysis.errors.scores import CE, FIELDS, MEAN, MEAN_ERROR, RELATIVE, UNDEFINED
from analysis.frames import STANDARD
from analysis.overlap import agreement
from analysis.overlap.measured import read_overlap
from analysis.overlap.score import split_by_overlap
from analysis.overlap.study import read_study
from runtime.artifacts import read_record, record_inputs
from runtime.files import without_nan, write_json


def errors(folders: Sequence[pathlib.Path], given) -> joint.Joint | pd.DataFrame | None:
    """Prints and writes the table of models and benchmarks, or of models and corruptions; returns it, or None where a
    reference was written.
    """
    if given.write_reference:
        _write_reference(folders, given)
        return None
    known = (*joint.MEASURED, *(FIELDS if given.by == "corruption" else ()))
    if unknown := [name for name in given.measures if name not in known]:
        raise ValueError(f"expected --measures of {', '.join(dict.fromkeys(known))}, found {', '.join(unknown)}")
    if given.by == "corruption":
        return _by_corruption(folders, given)
    asked = {name: getattr(given, name) for name in ("reference", "mismatch", "measures", "benchmarks", "models")}
    table = joint.joint(joint.read_all(folders), **asked)
    print(joint.markdown(table))
    if given.out:
        print("written to " + ", ".join(map(str, joint.write(pathlib.Path(given.out), table))))
    return table


def _by_corruption(folders, given):
    """Prints and writes a table with a column for each corruption; returns the frame of by_corruption.csv."""
    evaluated = joint.read_all(folders)
    table, notes = sets.by_corruption(evaluated, given.reference, given.mismatch)
    table = sets.select(table, given.benchmarks, given.measures, given.models)
    tables = list(sets.texts(table, evaluated[0].conditions.dataset, given.printed))
    if (table.mismatch != NONE).any():
        notes.append("† Measured under other conditions than the reference.")
    if (table.seeds[table.corruption != MEAN] > 1).any():
        notes.append(
            "± of one corruption over several seeds is the mean of the seeds' standard errors, an upper bound."
        )
    if sets.undefined(table).any():
        notes.append(UNDEFINED)
    print(sets.text(tables, notes))
    if given.out:
        print("written to " + ", ".join(map(str, sets.write(pathlib.Path(given.out), table, tables, notes))))
    return table


def _write_reference(folders, given):
    if ignored := [name for name in ("out", "benchmarks", "printed") if getattr(given, name)]:
        raise ValueError(f"expected no --{ignored[0]} with --write_reference, which writes every error of one model")
    if len(folders) > 1 or len(given.models) > 1:
        raise ValueError(f"expected one workdir and at most one of --models, found {len(folders)} and {given.models}")
    written = reference.of_model(folders[0], given.models[0]) if given.models else reference.of_workdir(folders[0])
    reference.write(given.write_reference, written)
    print(f"written to {given.write_reference}: {written.name}")


def balance(folders: Sequence[pathlib.Path], given) -> list[sets.BalanceTable]:
    """Prints and writes the balance of benchmarks; returns the tables."""
    if len(folders) != 1:
        raise ValueError(f"expected one workdir with --table=balance, found {len(folders)}")
    measure = given.measure or RELATIVE
    benchmarks = given.benchmarks or ["imagenet_c", "imagenet_noc"]
    if unknown := [name for name in benchmarks if name not in corruptions.benchmarks()]:
        known = ", ".join(corruptions.benchmarks())
        raise ValueError(f"expected --benchmarks among {known}, found {', '.join(unknown)}")
    scored, sentences = sets.by_corruption(joint.read_all(folders), given.reference, given.mismatch)
    tables = [sets.balance_table(scored, folders[0], name, measure) for name in benchmarks]
    notes = [f"† {sentence}" for sentence in sentences] if measure != MEAN_ERROR else []
    print("\n\n".join([*map(sets.balance_text, tables), sets.spread_text(tables), *notes]))
    content = [
        dict(zip(table._fields[:5], table[:5], strict=True))
        | {"rows": table.values.assign(se=table.se).to_dict("index"), "spread": table.spread._asdict()}
        for table in tables
    ]
    _write({"tables": content, "notes": notes}, given.out or folders[0] / "balance.json")
    return tables


def over_sets(folders: Sequence[pathlib.Path], given) -> dict:
    """Prints and writes means over two sets of corruptions; returns the content of the file."""
    if not given.overlap:
        raise app.UsageError("expected --overlap=WORKDIR or --overlap=FILE with --table=sets")
    path, measure = pathlib.Path(given.overlap), given.measure or MEAN_ERROR
    measured = read_study(path).measured if path.is_dir() else read_overlap(path)
    of_sets = dict(zip(("Set1", "Set2"), split_by_overlap(measured.overlap, measured.names, given.size), strict=True))
    evaluated = joint.read_all(folders)
    if measure == MEAN_ERROR:
        scored, unit = sets.by_corruption(evaluated, mismatch=given.mismatch)[0], "error"
        notes = joint.check_same(evaluated, given.mismatch)  # no sentences about a reference, which errors do not have
        values = alone = sets.wide(scored, measure)
    else:
        scored, notes = sets.by_corruption(evaluated, given.reference, given.mismatch)
        values, alone, unit = sets.wide(scored, measure), sets.wide(scored, RELATIVE), "relative CE"
        sets.require(values, measured.names, given.reference)
        sets.require(alone, given.beside, given.reference)
    unlike = sets.check_levels(evaluated, (*measured.names, *given.beside), given.mismatch)
    notes = list(dict.fromkeys([*notes, *unlike]))
    means = sets.set_means(values, of_sets, given.standard)
    single = sets.set_means(alone, {name: [name] for name in given.beside}, given.standard)
    beside = {f"{name}, {unit}": single[name] for name in given.beside}
    title = {MEAN_ERROR: "Unnormalised error", CE: "Raw CE", RELATIVE: "Relative CE"}[measure]
    text = sets.set_means_text(means, of_sets, beside)
    print(f"{title} in percent, mean over each set.", *notes, "", text, sep="\n")
    rows = {
        model: {label: {"mean": row[label], "gain": row[f"{label} gain"]} for label in of_sets}
        for model, row in means.iterrows()
    }
    content = {"measure": measure, "sets": of_sets, "means": rows, "notes": notes, "workdirs": list(map(str, folders))}
    content["beside"] = {name: column.to_dict() for name, column in beside.items()}
    folder = path if path.is_dir() else path.parent
    _write(content, given.out or folder / "set_means.json", *measured.files)
    return content


def overlaps(folders: Sequence[pathlib.Path], given) -> dict:
    """Compares two or more studies; returns the content of the file."""
    if len(folders) < 2:
        raise ValueError(f"expected two or more workdirs with --table=overlaps, found {len(folders)}")
    labels = joint.names(folders)
    studies = {label: read_study(folder).measured for label, folder in zip(labels, folders, strict=True)}
    if len(folders) == 2:
        matrices, benchmarks = agreement.compare_two(*studies.values(), given.threshold)
        text = agreement.text_of_two(matrices, benchmarks, given.threshold)
        seconds = _training_seconds(*folders)
        if seconds:
            text += f"\ntraining time {seconds[0]:.0f} s and {seconds[1]:.0f} s: {seconds[0] / seconds[1]:.1f} times"
        print(text)
        content = {"first": folders[0].name, "second": folders[1].name, "training_seconds": seconds}
        content |= {"workdirs": [str(folder.resolve()) for folder in folders]}
        content |= agreement.content_of_two(matrices, benchmarks, given.threshold)
        _write(content, given.out or folders[1] / "comparison.json")
        return content
    content, text, ordered = agreement.compare_several(studies, given.threshold)
    print(text)
    if given.out:
        out = pathlib.Path(given.out)
        _write(content, out / "comparisons.json")
        matrices = {label: study.overlap for label, study in ordered.items()}
        names = next(iter(ordered.values())).names
        pictures = figures.save(agreement.side_by_side(matrices, names), out / "matrices")
        print(f"written to {', '.join(map(str, pictures))}")
    return content


def _training_seconds(first, second):
    """Sums the seconds of training, in each study, of the models that both have; None when not recorded.

    The standard model does not count: either way of training the others needs it.
    """
    paths = [workdir / "timing.json" for workdir in (first, second)]
    if not all(path.is_file() for path in paths):
        return None
    shape = {"training_seconds": {str: float}}
    seconds = [read_record(path, shape=shape, by_hand=True)["training_seconds"] for path in paths]
    shared = [model for model in seconds[0] if model in seconds[1] and not model.startswith(f"{STANDARD}|")]
    return [sum(by_model[model] for model in shared) for by_model in seconds] if shared else None


def distances(folders: Sequence[pathlib.Path], given) -> dict:
    """Compares two feature extractors; returns the content of the file."""
    if len(folders) != 2:
        raise ValueError(f"expected two folders of tools.msd with --table=distances, found {len(folders)}")
    measured = [results.read_distances(folder) for folder in folders]
    content, lines = {"first": str(folders[0]), "second": str(folders[1])}, []
    for measure in ("msd", "mmd"):
        found = results.agreement(*measured, measure)
        content[measure] = without_nan(found)
        (low, high), (least, most) = found.interval, found.ordering_interval
        lines.append(
            f"{measure}: Spearman {found.spearman:.3f} ({low:.3f} to {high:.3f}) over {len(found.schemes)} schemes x "
            f"{len(found.corruptions)} corruptions; across schemes, mean over corruptions {found.ordering:.3f} "
            f"({least:.3f} to {most:.3f})"
        )
    if given.errors:
        counts = answers.read(given.errors).counts
        rho = []
        for rows in measured:
            targets = {(row.corruption, row.severity) for row in rows}
            of_schemes = results.mean_errors((key, count) for key, count in counts if count[:2] in targets)
            rho.append({r.corruption: r.msd for r in results.correlations(results.mean_distances(rows), of_schemes)})
        shared = [name for name in rho[0] if name in rho[1]]
        content["correlation_with_error"] = without_nan({name: [of[name] for of in rho] for name in shared})
        lines += ["", "Spearman of MSD with error across schemes:  first  second"]
        lines += [f"  {name:40s}  {rho[0][name]:+.2f}   {rho[1][name]:+.2f}" for name in shared]
    print("\n".join(lines))
    _write(content, given.out or folders[1] / "comparison.json")
    return content


def _write(content, out, *inputs):
    write_json(out, content | record_inputs({str(path): path for path in inputs}))
    print(f"\nwritten to {out}")


TABLES = {"errors": errors, "balance": balance, "sets": over_sets, "overlaps": overlaps, "distances": distances}
_COMPARED = {"reference", "mismatch", "out"}
_USED = {
    "errors": _COMPARED | {"by", "printed", "measures", "benchmarks", "models", "write_reference"},
    "balance": _COMPARED | {"benchmarks", "measure"},
    "sets": _COMPARED | {"measure", "overlap", "size", "standard", "beside"},
    "overlaps": {"threshold", "out"},
    "distances": {"errors", "out"},
}


def main(argv):
    given = command.given(argv[:1])
    command.refuse_unused("table", _USED)
    if len(argv) > 1 and given.printed and given.by != "corruption":
        raise app.UsageError("expected --printed with --by=corruption, or without workdirs")
    if len(argv) < 2 and given.printed:
        if ignored := [name for name in ("out", "models", "write_reference") if getattr(given, name)]:
            raise app.UsageError(f"expected workdirs with --{ignored[0]}, found --printed alone")
        print(sets.text(sets.printed(given.benchmarks), ()))
        return
    if len(argv) < 2:
        raise app.UsageError("expected one or more workdirs: python -m tools.tables WORKDIR ..., or --printed alone")
    TABLES[given.table]([pathlib.Path(path) for path in argv[1:]], given)


if __name__ == "__main__":
    flags.DEFINE_enum("table", "errors", list(TABLES), "Which table.")
    flags.DEFINE_string("out", None, "errors, overlaps of three workdirs or more: a folder. Others: a JSON file.")
    flags.DEFINE_string("reference", "", "alexnet, a file or an evaluated workdir; '' is AlexNet where it holds.")
    flags.DEFINE_enum("mismatch", REFUSE, [REFUSE, LABEL], "What to do with errors under other conditions.")
    flags.DEFINE_enum("by", "benchmark", ["benchmark", "corruption"], "errors: a column for each of these.")
    flags.DEFINE_bool("printed", False, "errors --by=corruption: also the rows that papers print.")
    flags.DEFINE_list("measures", list(joint.MEASURED), "errors: these; by corruption also CE and relative_CE.")
    flags.DEFINE_list(
        "benchmarks", [], "errors: only these benchmarks. balance: these, in this order (imagenet_c, imagenet_noc)."
    )
    flags.DEFINE_list("models", [], "errors: only these models, by name.")
    flags.DEFINE_string("write_reference", None, "Write the one model of the one workdir as a reference to this file.")
    flags.DEFINE_enum("measure", None, list(FIELDS), f"What balance ({RELATIVE}) and sets ({MEAN_ERROR}) average.")
    flags.DEFINE_string("overlap", None, "sets: workdir of overlap.py, or CSV file, that cuts the sets (required).")
    flags.DEFINE_integer("size", 8, "sets: how many corruptions are in the first set.")
    flags.DEFINE_string("standard", STANDARD, "sets: the model that gains are counted from, as the table calls it.")
    flags.DEFINE_list("beside", [], "sets: corruptions with columns of their own: relative CE, or the error.")
    flags.DEFINE_float("threshold", 0.1, "overlaps: largest overlap allowed between two members of a benchmark.")
    flags.DEFINE_string("errors", None, "distances: evaluated workdir whose models are trained with the schemes.")
    command.run(main)
