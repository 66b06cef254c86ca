"""The page of tools.report as a browser shows it: its script, its picture, its numbers against the
tables.
"""

import functools
import re

import numpy as np
import pytest
from PIL import Image

from analysis import heatmaps
from analysis.report import benchmark, inputs
from analysis.report.document import document
from tests.tools import report_studies
from tests.tools.report_pages import BROWSERS, NAMES, NUMBER, Page, browse, find_browser, rows, shows


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """page, options -> output; tests that need it are skipped, visibly, where there is no
    browser.
    """
    found = find_browser()
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    return functools.partial(browse, found, tmp_path_factory.mktemp("browser"))


def page_of(workdir):
    """report.html of a workdir, without figures."""
    found = inputs.read(workdir)
    page = workdir / "report.html"
    page.write_text(document(found, benchmark.sweep(found), "No pictures."), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("report") / "work"
    report_studies.write(workdir, NAMES)
    return page_of(workdir)


@pytest.fixture(scope="module")
def rendered(browser, study):
    return Page(browser(study, "--dump-dom"))


def interacting(page, script, target):
    """A copy of the page with a script after its own."""
    text = page.read_text(encoding="utf-8")
    target.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return target


def test_the_script_runs_and_the_page_is_complete(rendered):
    assert rendered.text("output", class_="order-state") == "ordered by clusters ordered by clusters"
    assert "script" in rendered.all("body")[0][1]["class"]
    assert "arrow keys" in rendered.text("p", class_="readout")
    headings = [e[2] for e in rendered.all("h2")]
    assert len(headings) == 8 and "Which corruptions overlap" in headings
    text = rendered.text("main")
    assert "small_resnet" in text and "7 epochs of SGD" in text and report_studies.REVISION in text
    assert "average linkage on the distance 1 - O" in text
    assert "one seed: standard errors do not hold" in text
    links = {e[1]["href"][1:] for e in rendered.all("a") if e[1]["href"].startswith("#")}
    assert links <= {e[1].get("id") for e in rendered.found}


def test_names_with_html_in_them_are_shown_and_do_nothing(rendered):
    assert rendered.title() == "Overlap of 6 corruptions on shapes"
    assert len(rendered.all("script")) == 1
    text = rendered.text("main")
    assert NAMES[0] in text and "a/same&amp;" in text and "b/same&amp;" in text
    assert any(NAMES[0] in e[1]["title"] for e in rendered.cells("Overlap matrix"))


def test_pointing_at_a_cell_reads_it_and_keys_move_on(browser, study, tmp_path):
    script = """
    const cells = [...document.querySelectorAll('table.matrix')[0].tBodies[0].rows].map(row => row.cells);
    const shown = () => document.querySelector('.readout').textContent;
    const log = [];
    cells[1][3].dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));
    log.push(shown() === cells[1][3].title);
    cells[0][1].focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'End', 'ArrowRight', 'ArrowLeft']) {
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
    }
    log.push(document.activeElement === cells[1][5]);
    log.push(shown() === cells[1][5].title);
    log.push(document.querySelectorAll('table.matrix')[0].querySelectorAll('td[tabindex="0"]').length);
    log.push(document.querySelectorAll('table.matrix')[0].querySelectorAll('th.on').length);
    document.title = log.join(' ');
    """
    found = Page(browser(interacting(study, script, tmp_path / "a.html"), "--dump-dom"))
    assert found.title() == "true true true 1 2"


def test_the_order_can_be_changed_and_every_value_stays_with_its_pair(browser, study, tmp_path):
    script = "document.querySelector('button[value=alphabetical]').click();"
    found = Page(browser(interacting(study, script, tmp_path / "a.html"), "--dump-dom"))
    assert found.text("output", class_="order-state") == "ordered alphabetically ordered alphabetically"
    assert found.all("body")[0][1]["data-order"] == "alphabetical"
    pressed = {e[1]["value"]: e[1]["aria-pressed"] for e in found.all("button")}
    assert pressed == {"clusters": "false", "alphabetical": "true"}
    short = sorted(inputs.short_names(NAMES))
    full = dict(zip(inputs.short_names(NAMES), NAMES))
    for label in ("Overlap matrix", "Directed transfer"):
        titles = [e[1]["title"] for e in found.cells(label) if not e[1]["title"].startswith("mean")]
        assert len(titles) == 36
        for k, title in enumerate(titles):
            row, column = full[short[k // 6]], full[short[k % 6]]
            assert row in title and (column in title or row == column), (row, column, title)


def test_clusters_are_the_first_order(rendered, study):
    names, matrix = (inputs.read(study.parent).names, inputs.read(study.parent).overlap.overlap)
    order = heatmaps.cluster_order(matrix)
    titles = [e[1]["title"] for e in rendered.cells("Overlap matrix")]
    assert [t.split(" with itself")[0] for t in titles[:: len(names) + 1]] == [names[k] for k in order]


def test_a_picture_of_the_page_shows_the_matrix(browser, study, tmp_path):
    picture = tmp_path / "page.png"
    browser(study, "--window-size=1100,3000", f"--screenshot={picture}")
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    assert pixels.shape == (3000, 1100, 3)
    assert (pixels == 255).all(-1).mean() > 0.5  # dark on white
    assert (pixels.max(-1) < 80).mean() > 0.005
    overlap = inputs.read(study.parent).overlap
    page = study.read_text(encoding="utf-8")
    off = ~np.eye(len(NAMES), dtype=bool)
    largest, least = (
        np.unravel_index(k, off.shape)
        for k in (np.argmax(np.where(off, overlap.overlap, -1)), np.argmin(overlap.transfer))
    )
    for i, j, label in ((*largest, "O = "), (*least, "T from ")):
        cell = re.search(rf'background-color:#(\w+);[^>]*title="{re.escape(_escaped(i, j, label))}', page)
        colour = [int(cell[1][k : k + 2], 16) for k in (0, 2, 4)]
        assert (pixels == colour).all(-1).sum() > 400, (i, j, colour)


def _escaped(i, j, label):
    text = (
        f"{NAMES[i]} and {NAMES[j]}: O" if label == "O = " else f"T from {NAMES[i]} \N{RIGHTWARDS ARROW} {NAMES[j]} ="
    )
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_nothing_sticks_out_on_a_phone(browser, study, tmp_path):
    script = "parent.postMessage(document.documentElement.scrollWidth, '*');"
    inner = interacting(study, script, tmp_path / "inner.html")
    outer = tmp_path / "outer.html"
    outer.write_text(
        "<title></title><script>onmessage = e => { document.title = 'width ' + e.data; }</script>"
        f'<iframe src="{inner.as_uri()}" style="width:360px;height:640px;border:0"></iframe>'
    )
    assert Page(browser(outer, "--dump-dom")).title() == "width 360"


def test_numbers_on_the_page_are_those_of_the_tables(browser, tmp_path):
    """Values are those of the tables; standard errors of differences are those of the answers, which are made up here."""
    smoke = page_of(report_studies.smoke(tmp_path / "work"))
    found = Page(browser(smoke, "--dump-dom"))
    titles = {e[1]["title"].split(":")[0]: e[1]["title"] for e in found.cells("Overlap matrix")}
    pairs, made = rows(smoke.parent / "overlap_long.csv"), inputs.read(smoke.parent)
    se_of = {(i, j): made.errors.overlap[a, b] for a, i in enumerate(made.names) for b, j in enumerate(made.names)}
    assert len(pairs) == 66
    for pair in pairs:
        values = {k: float(pair[k]) for k in ("O", "T_ij", "T_ji")}
        title = titles[f"{pair['i']} and {pair['j']}"]
        if "weak" in pair["flags"]:
            assert re.search(r": not to be told, weak gain of \S+( and \S+)?$", title), title
            continue
        o, se, free = re.search(rf"O = {NUMBER} ± {NUMBER}, unclipped {NUMBER} ", title).groups()
        forth = re.search(rf"T {pair['i']} \S {pair['j']} = {NUMBER}", title)[1]
        back = re.search(rf"T {pair['j']} \S {pair['i']} = {NUMBER}", title)[1]
        expected = (
            values["O"],
            se_of[pair["i"], pair["j"]],
            (values["T_ij"] + values["T_ji"]) / 2,
            values["T_ij"],
            values["T_ji"],
        )
        assert all(map(shows, (o, se, free, forth, back), expected)), (title, values)
    flagged = {pair["i"] for pair in pairs if "weak:i" in pair["flags"]} | {
        pair["j"] for pair in pairs if "weak:j" in pair["flags"]
    }
    scores = {(row["model"], row["corruption"]): row for row in rows(smoke.parent / "scores.csv")}
    ((_, standard, *lines),) = found.rows(class_="models")
    assert len(lines) == 12
    for model, *cells in (standard, *lines):
        numbers = [re.fullmatch(rf"{NUMBER} ± {NUMBER}", cell).groups() for cell in cells if "±" in cell]
        clean = scores[model, "clean"]
        assert shows(numbers[0][0], float(clean["accuracy"]))
        assert float(numbers[0][1]) == pytest.approx(float(clean["accuracy_se"]), rel=0.15)
        if model == "standard":
            continue
        before, after = scores["standard", model], scores[model, model]
        expected = float(before["R"]), float(after["R"]), float(after["R"]) - float(before["R"])
        assert all(shows(number, value) for (number, _), value in zip(numbers[1:], expected, strict=True)), model
        assert shows(numbers[2][1], made.errors.trained[made.names.index(model)])
        assert cells[-1] == ("weak gain *" if model in flagged else "")
