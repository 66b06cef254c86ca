"""tools.report: its page as files and as a browser shows it, against definitions; what the command needs and refuses."""

import functools
import itertools
import re
import sys

import matplotlib
import numpy as np
import pytest
from PIL import Image

from analysis import answers, figures
from analysis.report import inputs
from analysis.report.document import document
from tests import processes
from tests.tools import report_studies
from tests.tools.report_pages import NAMES, NUMBER, Page, browse, find_browser, shows
from tools import report

FIGURES = ("overlap", "transfer", "means", "balance", "sweep", "stability")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(workdir, a page outside of it, without samples, what the process that wrote the page has printed)."""
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


@pytest.fixture(scope="module")
def workdir(made):
    return made[0]


@pytest.fixture(scope="module")
def study(made):
    """The page."""
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


def share_of_green(picture):
    return np.mean(np.abs(np.asarray(picture.convert("RGB"), int) - (0, 200, 0)).max(-1) < 10)


def test_samples_show_a_test_image_of_the_study_or_the_reason_for_none(tmp_path):
    report_studies.write(tmp_path / "small", ("imagenet_c/contrast", "noc/border", "noc/hue"), number=300)
    study = report.inputs.read(tmp_path / "small")
    drawn, caption = report._sample_images(study, "")
    assert drawn.size[0] > 600 and caption.startswith("a test image of shapes, 32\N{MULTIPLICATION SIGN}32 pixels")
    assert share_of_green(drawn) < 0.01
    page = document(study, samples=report.gallery.png(drawn), caption=caption)
    assert caption in page and Page(page).all("img", class_="samples")[0][1]["src"].startswith("data:image/png;base64,")
    assert report._pdf(drawn).startswith(b"%PDF-")
    photograph = np.zeros((40, 60, 3), np.uint8)
    photograph[..., 1] = 200
    Image.fromarray(photograph).save(tmp_path / "green.png")
    drawn, caption = report._sample_images(study, str(tmp_path / "green.png"))
    assert "green.png" in caption and drawn.size[0] > 600
    assert share_of_green(drawn) > 0.02  # the clean picture is the photograph
    elsewhere = study._replace(config=study.config | {"dataset": {"name": "cifar10", "data_dir": "no"}})
    found, caption = report._sample_images(elsewhere, "")
    assert found is None and caption.startswith("No sample images: ") and "--image=PHOTOGRAPH" in caption


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """page, options -> output."""
    return functools.partial(browse, find_browser(), tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def rendered(browser, study):
    return Page(browser(study, "--dump-dom"))


def interacting(page, script, target):
    """A copy of the page with a script after its own."""
    text = page.read_text(encoding="utf-8")
    target.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return target


@pytest.mark.needs("browser")
def test_the_script_runs_and_the_page_is_complete(rendered):
    assert rendered.text("output", class_="order-state") == "ordered by clusters ordered by clusters"
    assert "script" in rendered.all("body")[0][1]["class"]
    assert "arrow keys" in rendered.text("p", class_="readout")
    headings = [e[2] for e in rendered.all("h2")]
    assert len(headings) == 8 and "Which corruptions overlap" in headings
    text = rendered.text("main")
    assert "small_resnet" in text and "epochs 7; batch size 64" in text and report_studies.REVISION in text
    assert "average linkage on the distance 1 - O" in text
    assert "one seed: standard errors are over the test images only" in text
    links = {e[1]["href"][1:] for e in rendered.all("a") if e[1]["href"].startswith("#")}
    assert links <= {e[1].get("id") for e in rendered.found}


@pytest.mark.needs("browser")
def test_names_with_html_in_them_are_shown_and_do_nothing(rendered):
    assert rendered.title() == "Overlap of 6 corruptions on shapes"
    assert len(rendered.all("script")) == 1
    text = rendered.text("main")
    assert NAMES[0] in text and "a/same&amp;" in text and "b/same&amp;" in text
    assert any(NAMES[0] in title for *_, title in rendered.titles("overlap"))


@pytest.mark.needs("browser")
def test_pointing_at_a_cell_reads_it_and_keys_move_on(browser, study, tmp_path):
    script = """
    const figure = document.querySelector('.matrix');
    const cells = [...figure.querySelectorAll('.parts')[0].children];
    const title = (i, j) => cells[6 * i + j].querySelector('title').textContent;
    const shown = () => figure.querySelector('.readout').textContent;
    const log = [];
    cells[8].dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));
    log.push(shown() === title(1, 2));
    cells[0].focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'End', 'ArrowRight', 'ArrowLeft']) {
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
    }
    log.push(document.activeElement === cells[10]);
    log.push(shown() === title(1, 4));
    log.push(figure.querySelectorAll('.parts')[0].querySelectorAll('[tabindex="0"]').length);
    document.title = log.join(' ');
    """
    found = Page(browser(interacting(study, script, tmp_path / "a.html"), "--dump-dom"))
    assert found.title() == "true true true 1"


@pytest.mark.needs("browser")
def test_the_order_can_be_changed_and_every_value_stays_with_its_pair(browser, study, workdir, tmp_path):
    script = "document.querySelector('button[value=alphabetical]').click();"
    found = Page(browser(interacting(study, script, tmp_path / "a.html"), "--dump-dom"))
    assert found.text("output", class_="order-state") == "ordered alphabetically ordered alphabetically"
    assert found.all("body")[0][1]["data-order"] == "alphabetical"
    pressed = [(e[1]["value"], e[1]["aria-pressed"]) for e in found.all("button")]
    assert pressed == [("clusters", "false"), ("alphabetical", "true")] * 2
    drawings = [e[1] for e in found.all("div") if "data-order" in e[1]]
    assert [("hidden" in e, e["data-order"]) for e in drawings] == [(True, "clusters"), (False, "alphabetical")] * 2
    full = dict(zip(inputs.short_names(NAMES), NAMES))
    overlap = inputs.read(workdir).overlap.overlap
    orders = (figures.cluster_order(overlap), np.argsort(inputs.short_names(NAMES)))
    assert [full[label] for label in sorted(full)] == [NAMES[k] for k in orders[1]]
    for name in ("overlap", "transfer"):
        for number, order in enumerate(orders):
            titles = [title for *_, title in found.titles(name, number)]
            assert len(titles) == 36
            for k, title in enumerate(titles):
                row, column = NAMES[order[k // 6]], NAMES[order[k % 6]]
                assert row in title and (column in title or row == column), (row, column, title)


@pytest.mark.needs("browser")
def test_a_picture_of_the_page_shows_the_matrix(browser, study, workdir, tmp_path):
    picture = tmp_path / "page.png"
    browser(study, "--window-size=1400,4000", f"--screenshot={picture}")
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    assert pixels.shape == (4000, 1400, 3)
    assert (pixels == 255).all(-1).mean() > 0.5  # dark on white
    assert (pixels.max(-1) < 80).mean() > 0.005
    assert (pixels[:, 700:] < 255).any(-1).mean() > 0.05  # the right half is used
    found, off = inputs.read(workdir).overlap, ~np.eye(len(NAMES), dtype=bool)
    for matrix, scale in ((found.overlap, figures.OVERLAP), (-found.transfer, figures.TRANSFER)):
        value = matrix.flat[np.argmax(np.where(off, matrix, -9))] * (1 if scale is figures.OVERLAP else -1)
        share = (np.clip(value, scale.low, scale.high) - scale.low) / (scale.high - scale.low)
        colour = np.round(255 * np.array(matplotlib.colormaps[scale.colours](share)[:3]))
        assert (np.abs(pixels - colour).max(-1) <= 1).sum() > 400, (scale, colour)


@pytest.mark.needs("browser")
def test_nothing_sticks_out_on_a_phone(browser, study, tmp_path):
    script = "parent.postMessage(document.documentElement.scrollWidth, '*');"
    inner = interacting(study, script, tmp_path / "inner.html")
    outer = tmp_path / "outer.html"
    outer.write_text(
        "<title></title><script>onmessage = e => { document.title = 'width ' + e.data; }</script>"
        f'<iframe src="{inner.as_uri()}" style="width:360px;height:640px;border:0"></iframe>'
    )
    assert Page(browser(outer, "--dump-dom")).title() == "width 360"


def test_numbers_on_the_page_are_those_of_the_answers(study, workdir):
    """Against the definitions of R, G, T and O."""
    page, made = Page(study.read_text(encoding="utf-8")), inputs.read(workdir)
    answered = made.whole.overlap
    bits, _ = answers.read(workdir).study(NAMES)
    accuracy = bits[0].mean(-1)
    r = accuracy[:, 1:] / accuracy[:, :1]
    gain = np.diag(r[1:]) - r[0]
    transfer = (r[1:] - r[0]) / gain
    titles = {title.split(":")[0]: title for *_, title in page.titles("overlap")}
    for i, j in itertools.permutations(range(len(NAMES)), 2):
        title, free = titles[f"{NAMES[i]} and {NAMES[j]}"], (transfer[i, j] + transfer[j, i]) / 2
        shown = re.search(rf": O = {NUMBER} ± {NUMBER}, unclipped {NUMBER} ", title).groups()
        assert all(map(shows, shown, (max(free, 0), made.errors.overlap[i, j], free))), title
        for a, b in ((i, j), (j, i)):
            number = re.search(rf"T {re.escape(NAMES[a])} \S {re.escape(NAMES[b])} = {NUMBER}", title)[1]
            assert shows(number, transfer[a, b])
    ((_, standard, *lines),) = page.rows(class_="models")
    for k, (model, *cells) in enumerate((standard, *lines)):
        numbers = [re.fullmatch(rf"{NUMBER} ± {NUMBER}", cell).groups() for cell in cells if "±" in cell]
        assert shows(numbers[0][0], answered.clean_accuracy[k]) and shows(numbers[0][1], made.errors.clean[k])
        if k:
            expected = r[0, k - 1], r[k, k - 1], gain[k - 1]
            assert all(shows(number, value) for (number, _), value in zip(numbers[1:], expected, strict=True)), model
            assert shows(numbers[2][1], made.errors.trained[k - 1]) and model == NAMES[k - 1]
