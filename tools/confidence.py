"""Measures how sure models are under corruptions: likelihood, calibration, ranks of right answers, with pictures.

    python -m tools.confidence --workdir=runs/aug_fog
    python -m tools.confidence --workdir=FOLDER_OF_corruptions.evaluate --out=DIR

Computes everything from the answers of an evaluated workdir, or of a folder of `corruptions.evaluate`, and writes into
--out (default: the folder `confidence` of the workdir, which tools.report shows)

    cells.csv           each model under each condition: NLL, Brier score, ECE and its relatives, AURC, AUROC, FPR95
    summary.csv         their means over benchmarks, per severity and over all, over seeds, with 95 % intervals over images
    differences.csv     the means minus the means of --against, paired on the same images
    disagreement.csv    how often the seeds of a training disagree, where there are several
    accuracy, reliability, risk      figures of each benchmark, as PNG and PDF

and prints the means. The set `plain` is the models' own confidence, `scaled` that after temperature scaling, which eval.py
adds with --config.eval.temperature=5000; --config.eval.ensemble=True adds ensembles over seeds. --models chooses models.
"""

from runtime import command  # isort: skip

import pathlib

import numpy as np
from absl import flags

from analysis import answers, figures, frames
from analysis.confidence import cells, metrics, resampling
from analysis.confidence import figures as drawing
from analysis.confidence.cells import ALL, BASE, Cells
from analysis.errors.scores import OTHERS, Benchmark
from analysis.frames import CLEAN, STANDARD
from corruptions.files import digest_of_file
from runtime import files
from runtime.log import log

_HEADER = ("model", "images", "accuracy, %", "confidence - accuracy, %", "NLL", "Brier", "ECE", "AURC", "AUROC")
_SHOWN = ("accuracy", "over", "nll", "brier", "ece", "aurc", "auroc")
_DIFFERENCES = ("model", "set", "against", "of_set", "benchmark", "severities", "measure", "difference", "low", "high")


def main(argv):
    given = command.given(argv, {"workdir": "DIR"})
    text, out = run(given.workdir, given.out, given.models, given.against, given.bins, given.resamples, given.seed)
    print(text)
    log.info("Results are in %s.", out)


def run(workdir, out=None, models=(), against=STANDARD, bins=metrics.BINS, resamples=1000, seed=0):
    """Writes the results; returns (the means as a table, their folder).

    Raises:
      FileNotFoundError: nothing was evaluated there.
      ValueError: answers have no confidence, or a model is not there; names it.
      DamagedFileError: a file is damaged or was edited.
    """
    workdir = pathlib.Path(workdir)
    out = pathlib.Path(out) if out else workdir / "confidence"
    found = read(workdir, models)
    curves, agreed = drawing.Curves(bins), cells.Disagreement()
    drawn = resampling.Resampled(found.averaged, resamples, seed, bins)
    table = found.table(bins, [curves, agreed, drawn])
    means = list(cells.means(table, found.benchmarks))
    samples = {}  # {(benchmark, severities): {(model, set): resampled means}}
    for benchmark in (Benchmark(CLEAN, "", {CLEAN: (BASE[1],)}), *found.benchmarks):
        members = [[(name, at) for at in row] for name, row in benchmark.members.items()]
        samples[benchmark.name, benchmark.severities] = drawn.means(members)
    ends = {
        (model, name, *benchmark, measure): interval
        for benchmark, by_model in samples.items()
        for (model, name), values in by_model.items()
        for measure, interval in resampling.intervals(values).items()
    }
    summary = cells.summary(means, ends)
    frames.write(out / "cells.csv", table)
    frames.write(out / "summary.csv", summary)
    differences = frames.of_rows(list(_differences(samples, against)), _DIFFERENCES)
    for name, of_pairs in (("differences", differences), ("disagreement", agreed.table())):
        files.remove(out / f"{name}.csv")  # of an earlier command
        if len(of_pairs):
            frames.write(out / f"{name}.csv", of_pairs)
    facts = [
        f"Confidence in {bins} bins of equal width; NLL in nats. Each benchmark is the mean of its cells, as cNLL and cECE "
        "are: each cell on its own, then over corruptions, then over severities.",
        f"ECE of a calibrated model of as many images is not 0: cells.csv has it as ece_bias. {len(found.conditions)} conditions.",
    ]
    others = [
        f"{OTHERS} ({of.severities}): the mean over corruptions of no benchmark that was evaluated completely: "
        f"{', '.join(of.members)}."
        for of in found.benchmarks
        if of.name == OTHERS
    ]
    rows, pictures = _rows(summary), _draw(out, means, curves, found.benchmarks)
    section = {"title": "Confidence", "facts": [*facts, *others], "header": _HEADER, "rows": rows, "figures": pictures}
    made_from = {
        str(path.relative_to(workdir)): digest_of_file(path) for path in workdir.glob(f"{answers.FOLDER}/*.npz")
    }
    files.write_json(out / "section.json", section | {"made_from": made_from})
    return "\n\n".join([frames.markdown(frames.of_rows(rows, _HEADER)), *others]), out


def read(workdir, models=()):
    """Reads the `Cells` of an evaluated workdir, or of a folder of `corruptions.evaluate`, of the models `models`; () means all."""
    found = Cells.of_answers(answers.read(workdir))
    return found.of_models(models) if models else found


def _differences(samples, against):
    """Makes the rows of differences.csv: each model against `against`, and each scaled set against its unscaled set."""
    for benchmark, by_model in samples.items():
        for (model, name), values in by_model.items():
            others = {(against, name)} | ({(model, answers.PLAIN)} if name != answers.PLAIN else set())
            for other in sorted(others & set(by_model) - {(model, name)}):
                for measure, (value, low, high) in resampling.differences(by_model[other], values).items():
                    yield (model, name, *other, *benchmark, measure, value, low, high)


def _draw(out, means, curves, benchmarks):
    """Writes the figures; returns the names of the PNG files."""
    names = []
    for benchmark in benchmarks:
        stem = "_".join((benchmark.name, benchmark.severities)).replace("/", ".").replace(" ", "_")
        panels = {
            "accuracy": drawing.accuracy(means, benchmark),
            "reliability": drawing.reliability(curves, benchmark),
            "risk": drawing.risk(curves, benchmark),
        }
        for kind, figure in panels.items():
            if figure:
                figures.save(figure, out / f"{kind}_{stem}")
                names.append(f"{kind}_{stem}")
    return names


def _rows(summary):
    """Formats a line for each model, set and benchmark; a dash stands where a measure is not defined."""
    rows = []
    whole = summary[summary.severity == ALL]
    for key, of in whole.groupby(["model", "set", "benchmark", "severities"], sort=False):
        (model, name, benchmark, severities), values = key, of.set_index("measure")["mean"]
        head = model if name == answers.PLAIN else f"{model}, {name}"
        percent = [f"{100 * values[measure]:.2f}" for measure in _SHOWN[:2]]
        numbers = ["\N{EN DASH}" if np.isnan(values[measure]) else f"{values[measure]:.4f}" for measure in _SHOWN[2:]]
        rows.append([head, f"{benchmark} ({severities})" if severities else benchmark, *percent, *numbers])
    return rows


if __name__ == "__main__":
    flags.DEFINE_string("workdir", None, "Evaluated workdir, or folder of corruptions.evaluate (required).")
    flags.DEFINE_string("out", None, "Folder of the results; default: confidence in the workdir.")
    flags.DEFINE_list("models", [], "Only these models; default: all.")
    flags.DEFINE_string("against", STANDARD, "Model that differences are relative to, if it was evaluated.")
    flags.DEFINE_integer("bins", metrics.BINS, "Number of bins of ECE and its relatives.", lower_bound=1)
    flags.DEFINE_integer("resamples", 1000, "Resamples of the images for the intervals; 0 gives none.", lower_bound=0)
    flags.DEFINE_integer("seed", 0, "Seed of the resamples.")
    command.run(main)
