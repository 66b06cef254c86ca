"""Makes one HTML page about an overlap study, and its figures for print.

    python -m tools.report --workdir=runs/overlap_shapes [--out=FILE] [--image=PHOTOGRAPH] [--nosamples]

Reads the results that overlap.py left in a workdir and writes report.html, which holds everything
it shows, and beside it figures/ with each figure as PNG (300 dpi) and PDF. JAX is only imported to
draw sample images of the selected benchmark; --nosamples leaves them out.
"""

from runtime import command  # isort: skip

import pathlib

from absl import flags

from analysis.report import benchmark, inputs, study_figures
from analysis.report.document import document
from runtime.files import write_atomically


def define_flags():
    flags.DEFINE_string("workdir", None, "Workdir of overlap.py (required).")
    flags.DEFINE_string("out", None, "HTML file to write; default report.html in the workdir.")
    flags.DEFINE_bool("samples", True, "Draw sample images of the benchmark's members.")
    flags.DEFINE_string("image", "", "Photograph for the samples; default a test image of `shapes`.")


def main(argv):
    given = command.given(argv, {"workdir": "DIR"})
    out = run(given.workdir, given.out, given.samples, given.image)
    print(f"{out} ({out.stat().st_size / 1000:.0f} kB); figures in {out.parent / 'figures'}")


def run(workdir, out=None, samples=True, image=""):
    """Writes the page and the figures; returns the path of the page.

    Raises:
      FileNotFoundError, ValueError: see `analysis.report.inputs.read`.
    """
    study = inputs.read(workdir)
    out = pathlib.Path(out) if out else study.workdir / "report.html"
    selections = benchmark.sweep(study)
    strips = _sample_strips(study, samples, image)
    study_figures.write(study, selections, strips, out.parent / "figures")
    write_atomically(out, document(study, selections, strips))
    return out


def _sample_strips(study, asked, image):
    """Draws sample pictures of the benchmark's members, or says in a sentence why there are
    none.
    """
    if study.samples is not None:
        return "The pictures are samples.png of the workdir."
    if study.benchmark is None or not asked:
        return "No sample images were asked for."
    try:
        from analysis.report import samples  # imports JAX, which takes seconds
    except ImportError as error:
        return f"No sample images: they are drawn with JAX, which could not be imported ({error})."
    return samples.draw(study.benchmark["members"], study.config, image)


if __name__ == "__main__":
    define_flags()
    command.run(main)
