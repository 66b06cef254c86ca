"""How strong each corruption of a benchmark is: PSNR and SSIM to the clean image at each severity.

    python -m tools.strength --benchmark=imagenet_c --size=32 --images=100 --out=FILE.md

--names=imagenet_c/fog measures these of the benchmarks' members alone, to write rows again. The tiles of laion_c are up to 5,000 training images of the dataset.

Writes FILE.md, a table of PSNR and one of SSIM for each benchmark, and FILE.csv with the same numbers. The 510
conditions of the first four benchmarks on 1,000 images of 32x32 pixels take a quarter of an hour on two busy CPU
cores, most of it to compile.
"""

from runtime import command  # isort: skip

import pathlib

import jax
import pandas as pd
from absl import flags

import corruptions
import data
from analysis import frames
from analysis.frames import with_error
from corruptions.core import checks
from evaluation import strength
from runtime import artifacts
from runtime.files import write_atomically
from runtime.log import bar

_INTRODUCTION = """\
PSNR in dB and SSIM of corrupted images to their originals, mean ± standard error over the images,
8-bit images in and out. Low numbers are strong corruptions. Both measure how far pixels moved, not
how hard an image became to recognise. PSNR stops at {ceiling:.1f} dB, the PSNR of rounding to 8 bits: an
image that came back unchanged counts as that. SSIM: Gaussian window of 11 pixels, standard
deviation 1.5, mean over the three channels. An error of 0.0000 is one below 0.00005.

{source}. Made by

```
{command}
```
"""


def main(argv):
    given = command.given(argv, {"out": "FILE.md"})
    asked = (given.benchmark, given.dataset, given.data_dir, given.size, given.images, given.seed, given.out)
    print(run(*asked, given.names))


def run(benchmarks, dataset, data_dir, size, number, seed, out, names=()):
    """Measures the benchmarks' members, or those of them in `names`, and writes both files; returns the path of the Markdown one.

    Raises:
      ValueError: an unknown benchmark or dataset, a name of no member, or `out` is no *.md.
      OSError: the dataset or a file cannot be read or written.
    """
    out = pathlib.Path(out)
    if out.suffix != ".md":
        raise ValueError(f"expected --out=FILE.md, found {out}")
    members = list(dict.fromkeys(name for one in benchmarks for name, _ in strength.conditions(one)))  # refuses others
    for name in names:
        checks.one_of("names", "a member of the benchmarks", name, members)
    chosen = names or members
    todo = [condition for one in benchmarks for condition in strength.conditions(one) if condition[0] in chosen]
    tiled = any("bank" in corruptions.get(name).options for name in dict(todo))
    tiles = 5000 if tiled else 1
    loaded = data.load(dataset, data_dir=data_dir, image_size=size, train_limit=tiles, test_limit=number)
    if tiled:
        corruptions.laion_c.use_bank(jax.device_get(loaded.train.images))
    images, measured = jax.device_get(loaded.test.images), {benchmark: [] for benchmark in benchmarks}
    with bar("condition", total=len(todo)) as progress:
        for benchmark in benchmarks:
            for row in strength.strengths(images, benchmark, seed, chosen):
                measured[benchmark].append(row)
                progress.set_postfix_str(f"{row.corruption} {row.severity}")
                progress.update()
    source = (
        f"{len(images)} test images of {dataset}, {images.shape[1]}x{images.shape[2]} pixels, seed {seed}; "
        f"{artifacts.summary(artifacts.provenance())}"
    )
    rows = [(benchmark, *row) for benchmark, rows in measured.items() for row in rows]
    frame = frames.of_rows(rows, ("benchmark", *strength.Strength._fields))
    frames.write(out.with_suffix(".csv"), frame, source)
    again = (
        f"python -m tools.strength --benchmark={','.join(benchmarks)}{' --names=' + ','.join(names) if names else ''} \\\n"
        f"    --dataset={dataset}{' --data_dir=DIR' if data_dir else ''} --size={size} --images={number} --seed={seed} "
        f"--out={out.name}"
    )
    write_atomically(out, page(measured, source, again))
    return out


def page(measured, source, again):
    """Formats {benchmark: [Strength]} as Markdown, with the source of the images and the command that makes it again."""
    introduction = _INTRODUCTION.format(ceiling=strength.CEILING, source=source, command=again)
    parts = ["# How strong each corruption is", introduction.rstrip()]
    for benchmark, rows in measured.items():
        for title, field in (("PSNR (dB)", "psnr"), ("SSIM", "ssim")):
            parts += [f"## {benchmark}: {title}", table(benchmark, rows, field)]
        if lines := exceptions(benchmark, rows):
            parts += [f"## {benchmark}: severities out of order", lines]
    return "\n\n".join(parts) + "\n"


def exceptions(benchmark, rows):
    """Formats a line for each corruption that a higher severity changes less, or not at all."""
    columns, lines = strength.severity_names(benchmark), []
    kinds = {1: "milder than the severity before (higher PSNR)", 0: "the same as the severity before"}
    for name in corruptions.names(benchmark):
        steps = strength.steps([row for row in rows if row.corruption == name])
        for sign, kind in kinds.items():
            if severities := [columns[i] for i, step in enumerate(steps, 1) if step == sign]:
                lines.append(f"- {name} at {', '.join(severities)}: {kind}")
    return "\n".join(lines)


def table(benchmark, rows, field):
    """Formats one measure of a benchmark: a line a corruption, a column a severity, cells `24.1 ± 0.3`."""
    lines = [
        (name, *(with_error(getattr(r, field), getattr(r, f"{field}_se")) for r in rows if r.corruption == name))
        for name in dict.fromkeys(row.corruption for row in rows)
    ]
    return frames.markdown(pd.DataFrame(lines, columns=["corruption", *strength.severity_names(benchmark)]))


if __name__ == "__main__":
    flags.DEFINE_list("benchmark", ["imagenet_c"], "Benchmarks, separated by commas (see corruptions.benchmarks()).")
    flags.DEFINE_list("names", [], "Measure these members alone.")
    flags.DEFINE_string("dataset", "shapes", f"One of {', '.join(data.names())}; its test images are corrupted.")
    flags.DEFINE_string("data_dir", None, "Folder of the dataset, if it needs one.")
    flags.DEFINE_integer("size", 32, "Side of the images in pixels.", lower_bound=corruptions.core.checks.MIN_SIDE)
    flags.DEFINE_integer("images", 100, "How many images.", lower_bound=2)
    flags.DEFINE_integer("seed", 0, "Seed of the draws.")
    flags.DEFINE_string("out", None, "Markdown file to write, *.md; a *.csv goes beside it (required).")
    command.run(main)
