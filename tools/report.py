"""Makes one HTML page about an overlap study, and its figures for print.

    python -m tools.report --workdir=runs/overlap_shapes [--out=FILE] [--image=PHOTOGRAPH [--turn]] [--nosamples]

Computes everything from the answers in a workdir of overlap.py and writes report.html, which needs no other file, and
beside it figures/ with each figure as PNG (300 dpi), PDF and SVG. Of benchmark.json, coverage.json and comparison.json
only the choices count: threshold, benchmark, other study. Sample images show a test image of the study; --image=FILE
takes a photograph instead, as it is stored (--turn: by the orientation in its EXIF data), --nosamples leaves them out.
"""

from runtime import command  # isort: skip

import io
import pathlib
import time

from absl import flags

from analysis import gallery
from analysis.report import charts, inputs
from analysis.report.document import document
from runtime.files import write_atomically


def main(argv):
    given = command.given(argv, {"workdir": "DIR"})
    out = run(given.workdir, given.out, given.samples, given.image, given.turn)
    print(f"{out} ({out.stat().st_size / 1000:.0f} kB); figures in {out.parent / 'figures'}")


def run(workdir, out=None, samples=True, image="", turn=False):
    """Writes the page and the figures; returns the path of the page.

    Raises:
      FileNotFoundError, ValueError: see `analysis.report.inputs.read`.
    """
    study = inputs.read(workdir)
    out = pathlib.Path(out) if out else study.workdir / "report.html"
    selections = charts.sweep(study)
    drawn = charts.draw(study, selections)
    sheet, caption = _sample_images(study, image, turn) if samples else (None, "No sample images were asked for.")
    page = document(study, drawn, selections, gallery.png(sheet) if sheet else None, caption)
    charts.write(drawn, out.parent / "figures")
    if sheet:
        for name, content in (("png", gallery.png(sheet)), ("pdf", _pdf(sheet))):
            write_atomically(out.parent / "figures" / f"samples.{name}", content)
    write_atomically(out, page)
    return out


def _sample_images(study, image, turn=False):
    """Draws sample images of the benchmark's members: (picture, caption), or (None, the reason for none)."""
    if study.selection is None:
        return None, "There are no sample images without a benchmark."
    try:
        return gallery.draw_samples(study.selection.members, study.config, image, turn)
    except (OSError, ValueError) as error:
        if image:
            raise
        return None, f"No sample images: {error}; --image=PHOTOGRAPH takes a picture of yours."


def _pdf(sheet):
    """Makes the PDF of a picture; equal pictures give equal files, whatever the time."""
    file, never = io.BytesIO(), time.gmtime(0)
    sheet.save(file, "PDF", resolution=150, creationDate=never, modDate=never)
    return file.getvalue()


if __name__ == "__main__":
    flags.DEFINE_string("workdir", None, "Workdir of overlap.py (required).")
    flags.DEFINE_string("out", None, "HTML file to write; default report.html in the workdir.")
    flags.DEFINE_bool("samples", True, "Draw sample images of the benchmark's members.")
    flags.DEFINE_string("image", "", "Photograph for the samples; default a test image of the study.")
    flags.DEFINE_bool("turn", False, "Turn the photograph by the orientation in its EXIF data.")
    command.run(main)
