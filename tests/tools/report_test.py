"""tools.report: its page and figures, what the command needs, and its errors."""

import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests import processes
from tests.tools import report_studies
from tests.tools.report_pages import NAMES, Page
from tools import report

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("report") / "work"
    report_studies.write(workdir, NAMES)
    return report.run(workdir, samples=False)


def test_the_page_needs_nothing_from_outside(study):
    found = Page(study.read_text(encoding="utf-8"))
    addresses = [e[1][k] for e in found.found for k in ("src", "href") if k in e[1]]
    assert all(a.startswith(("#", "data:", "figures/")) for a in addresses) and addresses
    assert not re.search(r"url\(|@import|https?:", study.read_text(encoding="utf-8"))
    assert "default-src 'none'" in found.all("meta", **{"http-equiv": "Content-Security-Policy"})[0][1]["content"]


def test_figures_open_in_print_quality(study):
    folder = study.parent / "figures"
    assert {p.name for p in folder.iterdir()} == {
        f"{stem}.{kind}" for stem in ("overlap", "transfer", "balance", "sweep", "stability") for kind in ("png", "pdf")
    }
    for path in folder.glob("*.png"):
        with Image.open(path) as picture:
            assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1) and min(picture.size) > 500
            assert np.asarray(picture.convert("L")).std() > 5
    for path in folder.glob("*.pdf"):
        content = path.read_bytes()
        assert content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")
        table = int(re.search(rb"startxref\s+(\d+)", content)[1])
        assert content[table:].startswith(b"xref") and b"/MediaBox" in content


def test_command_without_samples_needs_no_jax(study, tmp_path):
    workdir = shutil.copytree(study.parent, tmp_path / "work", ignore=shutil.ignore_patterns("report.html", "figures"))
    code = (
        "import sys; sys.argv = ['tools.report', *sys.argv[1:]]; import runpy\n"
        "try: runpy.run_module('tools.report', run_name='__main__')\n"
        "finally: print('jax' in sys.modules)"
    )
    out = tmp_path / "elsewhere" / "page.html"
    arguments = [f"--workdir={workdir}", f"--out={out}", "--nosamples"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False" and str(out) in done.stdout
    assert out.stat().st_size > 50_000 and (out.parent / "figures" / "overlap.pdf").exists()
    assert not (workdir / "report.html").exists()


def test_errors_of_the_command_are_one_clear_message(tmp_path):
    done = processes.run([sys.executable, "-m", "tools.report", f"--workdir={tmp_path}"])
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "tools.report: expected a workdir of overlap.py" in done.stderr


def test_a_corruption_without_gain_is_undefined_everywhere(tmp_path):
    names = ("x/a", "x/b", "x/c", "x/d")
    report_studies.write(tmp_path / "work", names, number=300, resamples=5, harmed=2)
    page = Page(report.run(tmp_path / "work", samples=False).read_text(encoding="utf-8"))
    titles = [e[1]["title"] for e in page.cells("Overlap matrix")]
    assert sum("undefined, training on one of them did not help" in title for title in titles) == 6
    assert "left out of the selection, without a defined overlap: x/c" in page.text("section", id="warnings")
    models = {row[0]: row[-1] for row in page.rows(class_="models")[0]}
    assert models["x/c"] == "no gain !" and models["x/a"] == ""
    assert not re.search(r"(?<![a-z])nan(?![a-z])", page.text("main").lower())
