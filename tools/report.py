"""One HTML page about an overlap study, and its figures for print.

    python -m tools.report --workdir=runs/overlap_shapes [--out=FILE] [--image=PHOTOGRAPH] [--nosamples]

Reads the results that overlap.py left in a workdir and writes report.html, which holds everything it shows, and beside
it figures/ with each figure as PNG (300 dpi) and PDF. JAX is only imported to draw sample images of the selected
benchmark; --nosamples leaves them out.
"""

import datetime
import pathlib

from absl import app, flags
from tqdm import tqdm

from analysis import figures
from analysis.overlap.balance import mean_overlap
from analysis.report import benchmark, html, inputs, matrices, optional, study_figures, study_page
from runtime import command
from runtime.files import write_atomically
from runtime.log import configure

_DPI = 300


def define_flags():
    flags.DEFINE_string("workdir", None, "Workdir of overlap.py (required).")
    flags.DEFINE_string("out", None, "HTML file to write; default report.html in the workdir.")
    flags.DEFINE_bool("samples", True, "Draw sample images of the benchmark's members.")
    flags.DEFINE_string("image", "", "Photograph for the samples; default a test image of `shapes`.")


def main(argv):
    given = command.given(argv, {"workdir": "DIR"})
    configure()
    with command.errors():
        out = run(given.workdir, given.out, given.samples, given.image)
    print(f"{out} ({out.stat().st_size / 1000:.0f} kB); figures in {out.parent / 'figures'}")


def run(workdir, out=None, samples=True, image=""):
    """Writes the page and the figures; returns the path of the page.

    Raises:
      FileNotFoundError, ValueError: see `analysis.report.inputs.read`.
    """
    study = inputs.read(workdir)
    out = pathlib.Path(out) if out else study.workdir / "report.html"
    swept = benchmark.sweep(study)
    strips = _strips(study, samples, image)
    write_figures(study, swept, strips, out.parent / "figures")
    write_atomically(out, page(study, swept, strips))
    return out


def page(study, swept, strips):
    """The HTML of the report."""
    parts = (
        ("study", "What was run", study_page.study_section(study)),
        ("overlap", "Overlap", matrices.overlap_section(study)),
        ("transfer", "Transfer", matrices.transfer_section(study)),
        ("balance", "Balance", benchmark.balance_section(study)),
        ("sweep", "Thresholds", benchmark.sweep_section(study, swept)),
        ("benchmark", "Benchmark", benchmark.benchmark_section(study, strips)),
        ("warnings", "Warnings", study_page.warnings_section(study)),
        ("further", "Further results", optional.optional_section(study)),
    )
    tag = html.tag
    contents = tag("ol", *(tag("li", tag("a", short, href=f"#{identity}")) for identity, short, _ in parts))
    now = datetime.datetime.now(datetime.UTC)
    return html.page(
        study_page.title(study),
        html.join([part for _, _, part in parts], "\n"),
        summary=study_page.summary(study),
        contents=contents,
        footer=f"Made by tools.report on {now:%Y-%m-%d %H:%M} UTC. Overlap, benchmark selection and balance: Laugros, Caplier, "
        "Ospici, “Using the Overlapping Score to Improve Corruption Benchmarks” and “Increasing the Coverage and Balance of "
        "Robustness Benchmarks by Using Non-Overlapping Corruptions”.",
    )


def write_figures(study, swept, strips, folder):
    """PNG and PDF of every figure."""
    found, errors, names = study.found, study.errors, study.labels
    setting = study_page.setting
    source = f"{setting(study.config, 'dataset', 'name')}, {setting(study.config, 'model', 'name')}"
    small = {"provenance": f"{source}, revision {str(study.provenance.get('git_revision', 'unknown'))[:12]}"}
    members = {study.labels[study.names.index(name)] for name in (study.benchmark or {"members": ()})["members"]}
    order = figures.cluster_order(found.overlap)
    drawn = {
        "overlap": study_figures.overlap(found.overlap, names, errors.overlap, flags=found.flags, **small),
        "transfer": study_figures.transfer(
            found.transfer, names, order, errors.transfer, flags=found.flags, title="Directed transfer", **small
        ),
        "balance": figures.balance_bars(
            mean_overlap(found.overlap),
            names,
            se=errors.mean_overlap,
            ylabel="mean overlap",
            title="Mean overlap",
            **small,
        ),
    }
    if swept is not None:
        drawn["sweep"] = figures.threshold_sweep(swept, **small)
    if study.stability:
        shares = [study.stability["members"].get(name, 0) for name in study.names]
        drawn["stability"] = study_figures.stability(shares, names, members, **small)
    if not isinstance(strips, str) and strips.pictures:
        labels = [names[study.names.index(name)] for name in strips.pictures]
        drawn["samples"] = study_figures.strips(list(strips.pictures.values()), labels, list(strips.columns.values()))
    for stem, figure in tqdm(drawn.items(), desc="figures", unit="figure", dynamic_ncols=True, leave=False):
        figures.save(figure, folder / stem, dpi=_DPI)


def _strips(study, wanted, image):
    """Sample pictures of the benchmark's members, or the reason why there are none."""
    if study.samples is not None:
        return "The pictures are samples.png of the workdir."
    if study.benchmark is None or not wanted:
        return "No sample images were asked for."
    try:
        from analysis.report import samples  # imports JAX, which takes seconds
    except ImportError as error:
        return f"No sample images: they are drawn with JAX, which could not be imported ({error})."
    return samples.draw(study.benchmark["members"], study.config, image)


if __name__ == "__main__":
    define_flags()
    app.run(main)
