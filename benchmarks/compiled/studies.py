"""Compiles the papers' studies for described machines and tabulates memory, speed and hours.

    python -m benchmarks.compiled.studies --devices=v5e-8      # with libtpu
    python -m benchmarks.compiled.studies --devices=h200-8     # with 'jax[cuda12]', in another environment

Their blocks of training steps and their answers, or the features of MSD; corruptions and schemes
have tables of their own. Writes benchmarks/results/compiled_DEVICES_studies.md after each study;
what a compiler said is kept, so that the same command continues.
"""

import argparse
import importlib
import pathlib

import jax

from benchmarks.compiled.__main__ import RESULTS
from benchmarks.compiled.table import write_page
from evaluation.distances.features import fitting
from evaluation.distances.transforms import find
from evaluation.planning import programs, study, text
from evaluation.planning.asked import ask
from evaluation.planning.plan import Hours, Row, plan
from runtime.chips import machines
from training.checkpoint import KEPT

# (config, study.parallel where one model a chip does not fit: by machine)
STUDIES = (
    ("overlap_imagenet100:resnet18", {}),
    ("scheme_study:cifar10", {}),
    ("overlap_imagenet100:wide_resnet50_2", {"v5e-8": 2}),
    ("scheme_study:imagenet", {"v5e-8": 1}),
    ("overlap_imagenet100:densenet121", {"v5e-8": 2}),
    ("cbar_search:imagenet", {"v5e-8": 1}),
)
MSD = "msd:paper"
COLUMNS = ("config", "program", "models at once x chips each", "compile CPU s", "GiB a chip", "of it the program's")
COLUMNS += ("images/s a chip", "steps/s of a model", "hours", "checkpoints GB")
LEGEND = """Compiled for described chips, run on none: all numbers are by the compiler's model, none is measured. Seconds: {source}.
A chip may use {limit}. `GiB a chip`: the program with its arguments, the block of images that is made meanwhile, and the images of
the dataset that stay on the chip; the steps of one row of models, for rows share nothing. `hours`: of that program over the whole
study, without corruptions and schemes. `study.parallel` is the settings' own but where the row names another."""


def rows(name, parallel, machine):
    """The rows of a study's programs: lists of cells."""
    config = _config(name)
    label = name.replace(":", ".py:")
    if parallel:
        config.study.parallel = parallel
        label += f", study.parallel={parallel}"
    planned = plan(config, machine, of_images=False)
    found = []
    for number, row in enumerate(planned.training):
        group = planned.groups[number]
        size = planned.checkpoint_bytes(number) * KEPT * len(group.configs) / 1e9
        held = planned.memory(number)
        found.append(_cells(label, row, f"{group.together} x {group.chips}", held, text.steps_per_second(row), size))
    of_chip = planned.evaluation.answer.memory + planned.resident
    return [*found, _cells(label, planned.evaluation, f"1 x {machine.chips}", of_chip, "", None)]


def _cells(label, row, at_once, held, steps, checkpoints):
    name, compiled, own, rate = text.cells(row)
    refused = bool(row.answer.refused)
    hours = "-" if refused else text.span(Hours.of(row.answer, row.batches))
    size = "" if checkpoints is None else f"{checkpoints:.1f}"
    return [label, name, at_once, compiled, "-" if refused else f"{held / 2**30:.2f}", own, rate, steps, hours, size]


def features(machine):
    """The row of the program that MSD takes features with: WRN-40-2 on CIFAR-10."""
    config, asked = _config("scheme:baseline"), _config(MSD).msd
    with machine.target.pretended():
        images = study.images_of(config)
        (group,) = study.groups(config, machine, images)
        transforms = -(-fitting(3 * asked.images * images.side**2) // machine.chips)
    answer = ask(
        machine,
        machine.chips,
        lambda mesh, parts: programs.features(group.block.network, mesh, images.side, asked.images, transforms),
    )
    batches = asked.transforms * len(find(asked.schemes)) // (transforms * machine.chips)
    row = Row("features of wrn_40_2", answer, transforms * asked.images, batches)
    return _cells(MSD.replace(":", ".py:"), row, f"1 x {machine.chips}", answer.memory, "", None)


def _config(name):
    module, _, variant = name.partition(":")
    config = importlib.import_module(f"configs.{module}").get_config(variant)
    if module == "cbar_search":  # which trains both networks of every run, without a scheme
        config.study.update({"schemes": ("standard",), "seeds": config.study.seeds + config.search.seeds})
    return config


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", required=True, help="v5e-8, h200-8 ...")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    machine = machines.find(given.devices)
    title = f"The papers' studies compiled for {machine.chips} x {machine.target.kind}, JAX {jax.__version__}, {machine.target.compiler()}"
    path = given.out or RESULTS / f"compiled_{machine.name}_studies.md"
    legend = LEGEND.format(source=machine.target.model, limit=text.gib(machine.target.memory))
    command, table = f"python -m benchmarks.compiled.studies --devices={machine.name}", []
    for work in (*STUDIES, None):
        found = [features(machine)] if work is None else rows(work[0], work[1].get(machine.name), machine)
        table += [f"| {' | '.join(cells)} |" for cells in found]
        print(*table[-len(found) :], sep="\n", flush=True)
        write_page(path, title, command, legend, COLUMNS, table)


if __name__ == "__main__":
    main()
