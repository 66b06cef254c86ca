"""report.py: the page as a browser shows it, its numbers against the tables, its figures, and what it refuses."""

import csv
import html.parser
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import report
from analysis import figures, report_benchmark, report_data
from tests import report_studies

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES = ("x/<script>document.title=1</script>", "a/same&amp;", "b/same&amp;", "imagenet_c/fog", "noc/hue", "x/last")
NUMBER = r"([-+]?\d*\.?\d+)"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Runs headless Chromium without a network; tests that need it are skipped, visibly, where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    profile = tmp_path_factory.mktemp("browser")

    def run(page, *options):
        command = [
            found, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}", "--virtual-time-budget=5000", *options, page.as_uri(),
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout

    return run


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


class Page(html.parser.HTMLParser):
    """Elements of a page as (tag, attributes, text within), in order of their start."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = [tag, {key: plain(value or "") for key, value in attributes}, ""]
        self.found.append(element)
        if tag not in ("meta", "img", "br", "link"):
            self._open.append(element)

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for element in self._open:
            element[2] += plain(data)

    def title(self):
        return self.all("title")[0][2]

    def all(self, tag, **attributes):
        return [
            e for e in self.found if e[0] == tag and all(e[1].get(k.rstrip("_")) == v for k, v in attributes.items())
        ]

    def text(self, tag, **attributes):
        return " ".join(" ".join(e[2] for e in self.all(tag, **attributes)).split())

    def rows(self, **attributes):
        """For each table with these attributes the texts of its cells, a list for each row."""
        tables = []
        for table in self.all("table", **attributes):
            tables.append([])
            for tag, _, text in self.found[self.found.index(table) + 1 :]:
                if tag in ("table", "section"):
                    break
                if tag == "tr":
                    tables[-1].append([])
                elif tag in ("td", "th"):
                    tables[-1][-1].append(" ".join(text.split()))
        return tables

    def cells(self, label):
        """Cells with a title of the matrix with this label."""
        start = next(k for k, e in enumerate(self.found) if e[1].get("aria-label") == label)
        stop = next((k for k in range(start + 1, len(self.found)) if self.found[k][0] in ("table", "section")), None)
        return [e for e in self.found[start:stop] if e[0] == "td" and "title" in e[1]]


def shows(text, value):
    """Whether a printed number is the value, rounded at its last digit."""
    places = len(text.split(".")[1]) if "." in text else 0
    return abs(float(text) - value) <= 0.5001 * 10.0**-places


def interacting(page, script, target):
    """A copy of the page with a script after its own."""
    text = page.read_text(encoding="utf-8")
    target.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("report") / "work"
    report_studies.write(workdir, NAMES)
    return report.run(workdir, samples=False)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The page of the results in docs/, without figures."""
    workdir = report_studies.smoke(tmp_path_factory.mktemp("smoke") / "work")
    found = report_data.read(workdir)
    page = workdir / "report.html"
    page.write_text(report.page(found, report_benchmark.sweep(found), "No pictures."), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def rendered(browser, study):
    return Page(browser(study, "--dump-dom"))


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
    short = sorted(report_data.short_names(NAMES))
    full = dict(zip(report_data.short_names(NAMES), NAMES))
    for label in ("Overlap matrix", "Directed transfer"):
        titles = [e[1]["title"] for e in found.cells(label) if not e[1]["title"].startswith("mean")]
        assert len(titles) == 36
        for k, title in enumerate(titles):
            row, column = full[short[k // 6]], full[short[k % 6]]
            assert row in title and (column in title or row == column), (row, column, title)


def test_clusters_are_the_first_order(rendered, study):
    names, matrix = (report_data.read(study.parent).names, report_data.read(study.parent).found.overlap)
    order = figures.cluster_order(matrix)
    titles = [e[1]["title"] for e in rendered.cells("Overlap matrix")]
    assert [t.split(" with itself")[0] for t in titles[:: len(names) + 1]] == [names[k] for k in order]


def test_a_picture_of_the_page_shows_the_matrix(browser, study, tmp_path):
    picture = tmp_path / "page.png"
    browser(study, "--window-size=1100,3000", f"--screenshot={picture}")
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    assert pixels.shape == (3000, 1100, 3)
    assert (pixels == 255).all(-1).mean() > 0.5  # dark on white
    assert (pixels.max(-1) < 80).mean() > 0.005
    found = report_data.read(study.parent).found
    page = study.read_text(encoding="utf-8")
    off = ~np.eye(len(NAMES), dtype=bool)
    largest, least = (
        np.unravel_index(k, off.shape) for k in (np.argmax(np.where(off, found.overlap, -1)), np.argmin(found.transfer))
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


def test_the_page_needs_nothing_from_outside(study):
    found = Page(study.read_text(encoding="utf-8"))
    addresses = [e[1][k] for e in found.found for k in ("src", "href") if k in e[1]]
    assert all(a.startswith(("#", "data:", "figures/")) for a in addresses) and addresses
    assert not re.search(r"url\(|@import|https?:", study.read_text(encoding="utf-8"))
    assert "default-src 'none'" in found.all("meta", **{"http-equiv": "Content-Security-Policy"})[0][1]["content"]


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_numbers_on_the_page_are_those_of_the_tables(browser, smoke):
    found = Page(browser(smoke, "--dump-dom"))
    titles = {e[1]["title"].split(":")[0]: e[1]["title"] for e in found.cells("Overlap matrix")}
    pairs = rows(smoke.parent / "overlap_long.csv")
    assert len(pairs) == 66
    for pair in pairs:
        values = {k: float(pair[k]) for k in ("O", "se", "T_ij", "T_ji")}
        title = titles[f"{pair['i']} and {pair['j']}"]
        o, se, free = re.search(rf"O = {NUMBER} ± {NUMBER}, unclipped {NUMBER} ", title).groups()
        forth = re.search(rf"T {pair['i']} \S {pair['j']} = {NUMBER}", title)[1]
        back = re.search(rf"T {pair['j']} \S {pair['i']} = {NUMBER}", title)[1]
        expected = (values["O"], values["se"], (values["T_ij"] + values["T_ji"]) / 2, values["T_ij"], values["T_ji"])
        assert all(map(shows, (o, se, free, forth, back), expected)), (title, values)
        assert ("weak gain" in title) == ("weak" in pair["flags"])
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
        assert float(numbers[2][1]) == pytest.approx(float(after["R_se"]), rel=0.15)
        assert cells[-1] == ("weak gain *" if model in flagged else "")


def matrix_of(workdir):
    header, *lines = [line.split(",") for line in (workdir / "overlap.csv").read_text().splitlines()[1:]]
    return header[1:], np.array([line[1:] for line in lines], float)


def test_balance_and_stability_are_those_of_the_tables(smoke):
    found = Page(smoke.read_text(encoding="utf-8"))
    names, matrix = matrix_of(smoke.parent)
    means = dict(zip(report_data.short_names(names), (matrix.sum(axis=1) - 1) / 11))
    balance, stability = found.rows(class_="bars wide")
    shown = {row[0]: row[1].split(" ± ")[0] for row in balance[1:]}
    assert shown.keys() == means.keys() and all(shows(shown[name], mean) for name, mean in means.items())
    values = np.array(list(means.values()))
    text = found.text("section", id="balance")
    spread = re.search(rf"mean {NUMBER}, population standard deviation {NUMBER}, range {NUMBER}", text).groups()
    assert all(map(shows, spread, (values.mean(), values.std(), values.max() - values.min())))
    shares = json.loads((smoke.parent / "stability.json").read_text())["members"]
    expected = {short: f"{100 * shares[name]:.0f} %" for short, name in zip(report_data.short_names(names), names)}
    assert {row[0]: row[1] for row in stability[1:]} == expected
    for name in json.loads((smoke.parent / "benchmark.json").read_text())["members"]:
        assert f"selected in {100 * shares[name]:.0f} % of resamples" in found.text("section", id="benchmark")


def test_sweep_finds_the_largest_sets_of_smallest_mean_overlap(smoke):
    """Against all 4095 sets of the twelve corruptions."""
    names, matrix = matrix_of(smoke.parent)
    sets = []
    for bits in range(1, 1 << len(names)):
        members = [k for k in range(len(names)) if bits >> k & 1]
        pairs = matrix[np.ix_(members, members)][np.triu_indices(len(members), 1)]
        sets.append((len(members), pairs.max(initial=0), pairs.mean() if len(pairs) else 0.0))
    sizes, largest, means = np.array(sets).T
    ((header, numbers, overlaps, *members),) = Page(smoke.read_text(encoding="utf-8")).rows(class_="sweep")
    assert list(map(float, header[1:])) == [round(0.05 * k, 2) for k in range(21)]
    assert {row[0] for row in members} == set(report_data.short_names(names))
    for column in range(1, 22):
        allowed = largest <= float(header[column])
        best = sizes[allowed].max()
        dots = sum(row[column] == "●" for row in members)
        assert dots == int(numbers[column]) == best
        assert shows(overlaps[column], means[allowed & (sizes == best)].min())


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
        "import sys; sys.argv = ['report.py', *sys.argv[1:]]; import runpy\n"
        "try: runpy.run_path('report.py', run_name='__main__')\n"
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


def test_samples_follow_the_range_of_the_study():
    from analysis import report_samples

    config = {
        "dataset": {"image_size": 32},
        "train": {"corruption_options": {"imagenet_c/contrast": {"range": [1.5, 4.0]}}},
    }
    found = report_samples.draw(("noc/border", "imagenet_c/contrast", "x/unknown"), config)
    assert set(found.images) == {"noc/border", "imagenet_c/contrast"}
    assert found.columns["noc/border"] == ("0", "0.25", "0.5", "0.75", "1")
    for pictures in found.pictures.values():
        change = np.abs(pictures.astype(int) - pictures[0]).mean((1, 2, 3))
        assert len(pictures) == 6 and np.all(np.diff(change) > 0)
    published = report_samples.draw(("imagenet_c/contrast",), {})
    assert published.columns["imagenet_c/contrast"] == ("1", "2", "3", "4", "5")
    spread = [p.std() for p in (published.pictures["imagenet_c/contrast"], found.pictures["imagenet_c/contrast"])]
    assert spread[0] != spread[1]
    np.testing.assert_allclose(  # level 4 is the severe end of the calibrated range
        found.pictures["imagenet_c/contrast"][5].astype(int), published.pictures["imagenet_c/contrast"][4], atol=1
    )
    assert all(Image.open(io.BytesIO(png)).size == (6 * 64 + 5 * 2, 64) for png in found.images.values())


def test_missing_results_say_what_to_run(tmp_path):
    workdir = report_studies.smoke(tmp_path / "work")
    for name in ("benchmark.json", "stability.json", "scores.csv"):
        (workdir / name).unlink()
    found = report_data.read(workdir)
    text = Page(report.page(found, report_benchmark.sweep(found), "No pictures.")).text("main")
    for command in (
        f"python select_noc.py --overlap={workdir}/overlap.csv", f"python overlap.py --workdir={workdir}",
        f"python calibrate.py --workdir={workdir}", "python compare.py",
    ):  # fmt: skip
        assert command in text, command


def test_optional_results_are_shown(tmp_path):
    workdir = report_studies.smoke(tmp_path / "work")
    entry = {
        "range": [0.1, 0.75], "unit": "fraction", "robustness": [0.951, 0.502], "robustness_se": [0.004, 0.009],
        "capped": [False, True], "monotone": True, "mean_robustness": 0.72, "mean_robustness_se": 0.01,
    }  # fmt: skip
    (workdir / "ranges.json").write_text(json.dumps({"corruptions": {"noc/hue": entry}}))
    (workdir / "timing.json").write_text(json.dumps({"training_seconds": {"standard|0": 100.0, "noc/hue|0": 200.0}}))
    comparison = {
        "first": "one", "second": "two", "threshold": 0.1, "training_seconds": [None, None],
        "matrices": {
            "pairs": 66, "spearman": 0.81, "spearman_interval": [0.7, 0.9], "pearson": 0.85, "mean_difference": 0.06,
            "standardised": 1.4,
        },
        "benchmarks": [{"threshold": 0.1, "first": ["noc/hue"], "second": ["noc/hue"], "shared": ["noc/hue"], "jaccard": 1.0}],
    }  # fmt: skip
    (workdir / "comparison.json").write_text(json.dumps(comparison))
    found = report_data.read(workdir)
    page = Page(report.page(found, None, "No pictures."))
    text = page.text("section", id="further")
    assert "0.951 ± 0.004" in text and "severe target out of reach" in text and "Spearman 0.81" in text
    assert "calibrate.py" not in text and "compare.py" not in text
    assert "5 minutes for 2 models" in page.text("section", id="study")


def test_other_revisions_and_pairs_near_the_threshold_are_warned_of(tmp_path):
    workdir = report_studies.smoke(tmp_path / "work")
    later = {"git_revision": "feed" * 10, "device": "1 x H200 (gpu)"}
    record = report_studies.PROVENANCE | {"git_revision": "beef" * 10 + "+changes", "continued": [later]}
    (workdir / "provenance.json").write_text(json.dumps(record))
    model = workdir / "models" / "standard" / "seed0"
    model.mkdir(parents=True)
    (model / "provenance.json").write_text(json.dumps({"git_revision": "cafe" * 10, "device": "2 x cpu (cpu)"}))
    (workdir / "benchmark.json").write_text(
        (workdir / "benchmark.json").read_text().replace('overlap.csv": "', 'overlap.csv": "0')
    )
    found = report_data.read(workdir)
    text = Page(report.page(found, None, "No pictures.")).text("section", id="warnings")
    for part in (
        "uncommitted changes", "feedfeedfeed", "1 of 1 models were trained by another revision", "cafecafecafe",
        "1 x H200 (gpu)", "others wrote counts.csv (3f60e402a648)", "selected from another overlap.csv",
        "noc/quantization and noc/hue, both members, may overlap more than 0.1",
        "12 other sets have the same size", "too large for overlaps",
        "imagenet_c/pixelate: training on it gives a gain of +0.0106",
    ):  # fmt: skip
        assert part in text, part


def break_file(name, change):
    def broken(workdir):
        path = workdir / name
        path.write_text(change(path.read_text()))

    return broken


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda workdir: shutil.rmtree(workdir), "found no folder"),
        (lambda workdir: [(workdir / n).unlink() for n in ("counts.csv", "config.json")], "without config.json, counts.csv"),
        (break_file("overlap.csv", lambda text: text[:-30]), "found the file cut off"),
        (break_file("overlap.csv", lambda text: text.replace("0.8482563628973593", "0.9")), "which follows from counts.csv"),
        (break_file("overlap_long.csv", lambda text: text.replace("0.98724819", "0.88724819")), "overlap_long.csv: expected"),
        (break_file("overlap_long.csv", lambda text: "\n".join(text.split("\n")[:-2]) + "\n"), "1 missing"),
        (break_file("counts.csv", lambda text: text.replace("standard,0,clean,0,7346,", "standard,0,clean,0,7345,")), "run overlap.py again"),
        (break_file("counts.csv", lambda text: text.replace("noc/hue,0,noc/hue,random,6926,10000\n", "")), "lacks 1"),
        (break_file("config.json", lambda text: text[:-5]), "config.json: expected valid JSON"),
        (break_file("provenance.json", lambda text: "[]"), "expected a JSON object, found list"),
        (break_file("benchmark.json", lambda text: text.replace("noc/hue", "noc/who")), "found noc/who"),
        (break_file("stability.json", lambda text: "{}"), "stability.json: expected members"),
    ],
)  # fmt: skip
def test_broken_workdirs_are_refused_with_a_reason(tmp_path, damage, message):
    workdir = report_studies.smoke(tmp_path / "work")
    damage(workdir)
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        report_data.read(workdir)


def test_errors_of_the_command_are_one_clear_message(tmp_path):
    done = subprocess.run(
        [sys.executable, "report.py", f"--workdir={tmp_path}"], cwd=ROOT, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "report.py: expected a workdir of overlap.py" in done.stderr


def test_large_studies_show_colours_and_keep_every_value(tmp_path):
    names = tuple(f"x/c{k}" for k in range(34))
    report_studies.write(tmp_path / "work", names, number=60, resamples=2)
    found = report_data.read(tmp_path / "work")
    page = Page(report.page(found, report_benchmark.sweep(found), "No pictures."))
    cells = page.cells("Overlap matrix")
    assert len(cells) == 34**2 and page.all("table", class_="matrix")[0][1]["data-detail"] == "colours"
    assert all(e[2] for e in cells)
