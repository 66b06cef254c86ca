"""tools.report: its page and figures, what the command needs, and its errors."""

import re
import sys
import time

import numpy as np
import pytest
from PIL import Image

from analysis.report.document import document
from tests import processes
from tests.tools import report_studies
from tests.tools.report_pages import NAMES, Page
from tools import report

FIGURES = ("overlap", "transfer", "means", "balance", "sweep", "stability")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(workdir, a page elsewhere, what a process printed that wrote the page without samples)."""
    workdir, out = (tmp_path_factory.mktemp(name) for name in ("report", "elsewhere"))
    workdir, out = workdir / "work", out / "new" / "page.html"
    report_studies.write(workdir, NAMES)
    code = (
        "from tools import report; from jax._src import xla_bridge\n"
        f"report.run({str(workdir)!r}, {str(out)!r}, samples=False); print(xla_bridge.backends_are_initialized())"
    )
    done = processes.run([sys.executable, "-c", code], timeout=250)
    assert done.returncode == 0, done.stderr
    return workdir, out, done.stdout


@pytest.fixture
def study(made):
    return made[1]


def test_the_page_needs_nothing_from_outside(study):
    text = study.read_text(encoding="utf-8")
    found = Page(text)
    addresses = [e[1][k] for e in found.found for k in ("src", "href", "xlink:href") if k in e[1]]
    assert all(a.startswith(("#", "data:", "figures/")) for a in addresses) and addresses
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/)", text)
    assert "default-src 'none'" in found.all("meta", **{"http-equiv": "Content-Security-Policy"})[0][1]["content"]


def test_figures_of_the_page_open_in_print_quality(study):
    folder, page = study.parent / "figures", study.read_text(encoding="utf-8")
    assert {p.name for p in folder.iterdir()} == {
        f"{stem}.{kind}" for stem in FIGURES for kind in ("png", "pdf", "svg")
    }
    for path in folder.glob("*.svg"):
        assert path.read_text(encoding="utf-8") in page, path  # one form for page and print
    for path in folder.glob("*.png"):
        with Image.open(path) as picture:
            assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1) and min(picture.size) > 350
            assert np.asarray(picture.convert("L")).std() > 5
    for path in folder.glob("*.pdf"):
        content = path.read_bytes()
        assert content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")
        table = int(re.search(rb"startxref\s+(\d+)", content)[1])
        assert content[table:].startswith(b"xref") and b"/MediaBox" in content


@pytest.fixture
def small(tmp_path):
    report_studies.write(tmp_path / "small", ("imagenet_c/contrast", "noc/border", "noc/hue"), number=300)
    return tmp_path / "small"


def test_command_without_samples_starts_no_device(made):
    """Another process may train on the accelerator meanwhile."""
    workdir, out, printed = made
    assert printed.splitlines()[-1] == "False"
    assert out.stat().st_size > 50_000 and (out.parent / "figures" / "overlap.svg").exists()
    assert not (workdir / "report.html").exists() and not (workdir / "figures").exists()


def test_errors_of_the_command_are_one_clear_message(tmp_path):
    done = processes.run([sys.executable, "-m", "tools.report", f"--workdir={tmp_path}"])
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "tools.report: expected a workdir of overlap.py" in done.stderr


def test_the_pdf_of_samples_holds_no_time(monkeypatch):
    sheet = Image.new("RGB", (8, 8))
    first = report._pdf(sheet)
    gmtime = time.gmtime
    monkeypatch.setattr(time, "gmtime", lambda *seconds: gmtime(*seconds) if seconds else gmtime(1))
    assert report._pdf(sheet) == first and b"PDF" in first


def test_samples_show_a_test_image_of_the_study_or_the_reason_for_none(small):
    study = report.inputs.read(small)
    drawn, caption = report._sample_images(study, "")
    assert drawn.size[0] > 600 and caption.startswith("a test image of shapes, 32\N{MULTIPLICATION SIGN}32 pixels")
    page = document(study, samples=report.gallery.png(drawn), caption=caption)
    assert caption in page and Page(page).all("img", class_="samples")[0][1]["src"].startswith("data:image/png;base64,")
    assert report._pdf(drawn).startswith(b"%PDF-")
    elsewhere = study._replace(config=study.config | {"dataset": {"name": "cifar10", "data_dir": "no"}})
    found, caption = report._sample_images(elsewhere, "")
    assert found is None and caption.startswith("No sample images: ") and "--image=PHOTOGRAPH" in caption
