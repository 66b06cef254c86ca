"""The content of a study's page."""

import json
import os
import re
import shlex
import shutil

import numpy as np
import pytest

import corruptions
from analysis import answers
from analysis.errors.reference import Conditions
from analysis.report import charts, document, inputs
from analysis.report.inputs import Study
from tests.analysis.made_up import counted, write_answers
from tests.tools import report_studies
from tests.tools.report_pages import NUMBER, Page, shows


def test_missing_results_say_what_to_run(small, page):
    text = page(small).text("main")
    for command in (
        f"python select_noc.py --workdir={small}",
        f"python -m tools.calibrate --workdir={small}",
        f"python -m tools.msd --config=configs/msd.py --workdir={small}",
        f"python -m tools.tables OTHER {small} --table=overlaps",
        "python overlap.py --config.study.mixtures=",
    ):
        assert command in text, command


def test_a_copied_study_has_the_dates_of_its_records(small, page, tmp_path):
    record = json.loads((small / "provenance.json").read_text()) | {"written": "2026-02-03T04:05:06+00:00"}
    (small / "provenance.json").write_text(json.dumps(record))
    shutil.copytree(small, copy := tmp_path / "copy")
    for path in copy.glob("answers/*.npz"):
        os.utime(path, (0, 0))
    for folder in (small, copy):
        assert "2026-02-03 04:05 UTC" in page(folder, drawn=None).text("main")


def test_warnings_come_first_and_the_command_is_broken_at_its_flags(small, page):
    found = page(small)
    sections = [e[1]["id"] for e in found.all("section")]
    assert sections[0] == "warnings" and [e[1]["href"][1:] for e in found.all("a")][1:9] == sections
    assert found.all("pre", class_="command")[0][2] == "overlap.py \\\n    --config=configs/overlap_shapes.py"
    command = """python x.py --a='b c' --d --e="('x/y','z')" --f='$"' """
    shown = document._wrapped(command)
    assert shown == """python x.py \\\n    --a='b c' \\\n    --d \\\n    --e="('x/y','z')" \\\n    --f='$"'"""
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(command)


@pytest.fixture(scope="module")
def weak(tmp_path_factory):
    """A study of five corruptions; the gains of two of them are weak."""
    workdir = tmp_path_factory.mktemp("weak") / "work"
    report_studies.write(workdir, tuple(f"x/c{k}" for k in range(5)), number=400, weak=(0, 3))
    return workdir


def test_weak_numbers_are_called_weak_everywhere(weak, page):
    """An overlap that rests on a weak gain is any number, such as 15.36 or 0 with an error of 40."""
    study, found = inputs.read(weak), page(weak, drawn=None)
    assert study.overlap.flags == ("weak", "", "", "weak", "")
    for name, directed in (("overlap", False), ("transfer", True)):
        for _, _, title in found.titles(name):
            pair = re.findall(r"x/c\d", title.partition(":")[0].partition(" =")[0])
            is_weak = bool(study.weak(pair[1:] if directed else pair)) and len(set(pair)) == 2
            if "itself" not in title:
                assert ("weak gain of" in title) == is_weak, title
                assert ("±" in title) != is_weak, title
    for name in ("balance", "means"):
        of_name = {title.partition(":")[0]: title for _, _, title in found.titles(name)}
        for n in study.names:
            is_weak = bool(study.weak([n]))
            assert ("weak" in of_name[n]) == is_weak, n
            assert ("±" in of_name[n]) != is_weak, n
    ((_, numbers, means, *_),) = found.rows(class_="sweep")
    sizes = dict(zip(numbers[1:], means[1:]))
    assert "weak" in sizes.values()
    ((_, *rows),) = found.rows(**{"aria-label": "Members"})
    assert {row[0] for row in rows} == set(study.selection.members)
    assert all((row[3] == "weak") == bool(study.weak([row[0]])) for row in rows)
    ((_, *others),) = found.rows(**{"aria-label": "Coverage of the other candidates"})
    assert {row[0] for row in others} == set(study.names) - set(study.selection.members)
    assert all((row[1] == "weak") == bool(study.weak([row[0]])) for row in others)
    texts = [text for tag, _, text in found.found if tag in ("td", "text", "title", "p", "li")]
    numbers = [number for text in texts for number in re.findall(rf"{NUMBER} ± {NUMBER}", text)]
    assert len(numbers) > 50 and max(abs(float(number)) for pair in numbers for number in pair) < 2


def test_a_benchmark_of_flagged_members_is_not_the_headline(weak, page):
    study, found = inputs.read(weak), page(weak)
    flagged = study.weak(study.selection.members)
    assert flagged
    head = found.text("header")
    assert f"No benchmark to use: {len(flagged)} of the {study.selection.size} corruptions" in head
    assert "Benchmark at an overlap" not in head
    assert f"selected although a weak gain leaves their overlaps unknown: {', '.join(flagged)}" in found.text("main")
    good = tuple(name for name, flag in zip(study.names, study.overlap.flags) if not flag)
    clear = study._replace(selection=study.selection.__class__(**vars(study.selection) | {"members": good}))
    assert "Benchmark at an overlap of at most 0.1: c1, c2, c4." in " ".join(_head(clear).split())


def _head(study: Study) -> str:
    return re.sub("<[^>]*>", "", document.document(study).partition("<header>")[2].partition("</header>")[0])


def test_optional_results_are_shown(small, page):
    ranges = {"corruptions": {"noc/hue": report_studies.RANGE, "noc/border": {"range": [10, 45]}}}
    (small / "ranges.json").write_text(json.dumps(ranges))
    (small / "timing.json").write_text(json.dumps({"training_seconds": {"standard|0": 100.0, "noc/hue|0": 200.0}}))
    (small / "coverage.json").write_text(json.dumps({"benchmark": ["noc/hue"]}))
    found = page(small)
    text = found.text("section", id="further")
    for part in ("given, not calibrated", "0.951 ± 0.004", "severe target out of reach", "Coverage by noc/hue."):
        assert part in text, part
    assert "tools.calibrate" not in text
    assert "5 minutes for 2 models" in found.text("section", id="study")


def test_errors_and_mixtures_are_computed_from_answers(tmp_path, page):
    names, mixture = ("noc/hue", "noc/border"), "mixture=imagenet_noc"
    described = {name: {"range": [0, 1]} for name in corruptions.names("imagenet_noc")}
    conditions, counts = Conditions("shapes", 10, (32, 32, 3), "none", described), []
    for model, right in (("standard", 40), ("noc/hue", 50), ("noc/border", 45), (mixture, 70)):
        counts.append(counted(model, 0, "clean", 0, 90, 100))
        counts += [counted(model, 0, name, "random", right, 100) for name in corruptions.names("imagenet_noc")]
    work = write_answers(tmp_path / "work", counts, conditions)
    report_studies.records(work)
    config = report_studies.CONFIG | {"study": {"corruptions": list(names), "mixtures": [mixture]}}
    (work / "config.json").write_text(json.dumps(config))
    found = page(work)
    (gains,) = found.rows(**{"aria-label": "Models trained on whole benchmarks"})
    assert [row[:4] for row in gains[1:] if row[1] == "noc/hue"] == [[mixture, "noc/hue", "member", "40.0"]]
    (errors,) = found.rows(**{"aria-label": "Errors on benchmarks"})
    assert ["standard", "imagenet_noc (random)", "mean error", "60 ± 5"] in errors
    assert "AlexNet" not in found.text("main")  # errors under other conditions
    (work / "evaluation.json").write_text(json.dumps({"eval": {"reference": str(tmp_path / "gone")}}))
    found = page(work)
    assert "The reference of the errors cannot be used any more" in found.text("section", id="warnings")
    by_model, record = answers.read_file(work / "answers" / "clean-0.npz")  # a second training, shown only clean images
    answers.write(work / "answers", by_model | {("standard", 1): np.zeros(100, bool)}, record)
    (gains,) = page(work).rows(**{"aria-label": "Models trained on whole benchmarks"})
    assert [row[:4] for row in gains[1:] if row[1] == "noc/hue"] == [[mixture, "noc/hue", "member", "40.0"]]
    answers_of_mixture = work / "answers" / "noc.shear-random.npz"
    by_model, record = answers.read_file(answers_of_mixture)
    answers.write(work / "answers", {key: bits for key, bits in by_model.items() if key[0] != mixture}, record)
    assert f"answers of {mixture} are missing: run overlap.py" in page(work).text("section", id="warnings")


def test_other_revisions_and_pairs_near_the_threshold_are_warned_of(workdir, page):
    later = {"git_revision": "feed" * 10, "device": "1 x H200 (gpu)"}
    record = report_studies.PROVENANCE | {"git_revision": "beef" * 10 + "+changes", "continued": [later]}
    (workdir / "provenance.json").write_text(json.dumps(record))
    model = workdir / "models" / "standard" / "seed0"
    model.mkdir(parents=True)
    (model / "provenance.json").write_text(json.dumps({"git_revision": "cafe" * 10, "device": "2 x cpu (cpu)"}))
    text = page(workdir).text("section", id="warnings")
    for part in (
        "uncommitted changes",
        "feedfeedfeed",
        "1 of 1 models were trained by another revision",
        "cafecafecafe",
        "1 x H200 (gpu)",
        "pairs lie within two standard errors of the threshold 0.1",
        "12 other sets have the same size",
        "imagenet_c/pixelate: training on it gives a gain of +0.0106",
        "one seed: standard errors are over the test images only",
    ):
        assert part in text, part


def test_a_corruption_without_gain_is_undefined_everywhere(tmp_path, page):
    report_studies.write(tmp_path / "work", ("x/a", "x/b", "x/c", "x/d"), number=300, harmed=2)
    found = page(tmp_path / "work", drawn=("overlap", "overlap_alphabetical"))
    titles = [title for *_, title in found.titles("overlap")]
    assert sum("undefined, because training with one of them gave no gain" in title for title in titles) == 6
    assert "left out of the selection, without a defined overlap: x/c" in found.text("section", id="warnings")
    models = {row[0]: row[-1] for row in found.rows(class_="models")[0]}
    assert models["x/c"] == "no gain !" and models["x/a"] == ""
    assert not re.search(r"(?<![a-z])nan(?![a-z])", found.text("main").lower())


def test_without_any_gain_there_is_no_benchmark_and_the_page_says_so(tmp_path, page):
    names, counts = ("noc/hue", "noc/border"), []
    for model in ("standard", *names):
        counts.append(counted(model, 0, "clean", 0, 50, 100))
        counts += [counted(model, 0, name, "random", 30 if model == "standard" else 20, 100) for name in names]
    report_studies.records(write_answers(tmp_path, counts))
    found = page(tmp_path, drawn=None)
    assert "No overlap is defined, so there is no benchmark" in found.text("section", id="benchmark")
    assert "No overlap is defined, so nothing can be selected" in found.text("section", id="sweep")
    assert "Fewer than two corruptions have a clear gain" in found.text("section", id="balance")
    assert "Benchmark at" not in found.text("header") and not found.all("figure", id="figure-stability")


def test_large_studies_show_colours_and_keep_every_value(tmp_path, page):
    names = tuple(f"x/c{k}" for k in range(34))
    report_studies.write(tmp_path / "work", names, number=60)
    found = page(tmp_path / "work", drawn=("overlap", "overlap_alphabetical"))
    titles = [title for *_, title in found.titles("overlap")]
    assert len(titles) == 34**2 and all(titles)
    assert not any("±" in text[2] for text in found.within("overlap", "text"))


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """(study, page) of the smoke study, read once; two figures are drawn."""
    study = inputs.read(report_studies.smoke(tmp_path_factory.mktemp("smoke") / "work"))
    selections = charts.sweep(study)
    drawn = charts.draw(study, selections, only=("balance", "stability"))
    return study, Page(document.document(study, drawn, selections))


def test_errors_balance_stability_and_members_are_those_of_their_definitions(smoke):
    study, found = smoke
    clear = [k for k, flag in enumerate(study.overlap.flags) if not flag]
    matrix = study.overlap.overlap[np.ix_(clear, clear)]
    means = dict(zip([study.names[k] for k in clear], (matrix.sum(axis=1) - 1) / (len(clear) - 1)))
    shown = {title.partition(":")[0]: title for *_, title in found.titles("balance")}
    for name in study.names:
        number = re.search(rf"mean overlap {NUMBER} ± ", shown[name])
        assert bool(number) == (name in means) and (not number or shows(number[1], means[name]))
    ((_, _, *models),) = found.rows(class_="models")
    for k, (_, _, before, after, _, gain, _) in enumerate(models):
        for cell, of in ((before, study.errors.standard), (after, study.errors.trained), (gain, study.errors.gain)):
            assert shows(cell.partition(" ± ")[2], of[k]), cell
    values = np.array(list(means.values()))
    text = " ".join(text[2] for text in found.within("balance", "text"))
    spread = re.search(rf"mean {NUMBER}, population standard deviation {NUMBER}, range {NUMBER}", text).groups()
    assert all(map(shows, spread, (values.mean(), values.std(), np.ptp(values))))
    shares = study.stability.members
    of_figure = {t.partition(":")[0]: float(re.search(rf"{NUMBER} %$", t)[1]) for *_, t in found.titles("stability")}
    assert of_figure == pytest.approx({name: 100 * share for name, share in shares.items()}, abs=0.5001)
    ((_, *rows),) = found.rows(**{"aria-label": "Members"})
    assert {row[0]: row[4] for row in rows} == {
        name: document.percent(shares[name]).replace("\xa0", " ") for name in study.selection.members
    }


def test_the_sweep_finds_the_largest_sets_of_smallest_mean_overlap(smoke):
    """Against all 4095 sets of the twelve corruptions."""
    study, found = smoke
    names, matrix, sets = study.names, study.overlap.overlap, []
    for bits in range(1, 1 << len(names)):
        members = [k for k in range(len(names)) if bits >> k & 1]
        pairs = matrix[np.ix_(members, members)][np.triu_indices(len(members), 1)]
        sets.append((len(members), pairs.max(initial=0), pairs.mean() if len(pairs) else 0.0))
    sizes, largest, means = np.array(sets).T
    ((header, numbers, overlaps, *members),) = found.rows(class_="sweep")
    labels = dict(zip(study.labels, names))
    assert list(map(float, header[1:])) == [round(0.05 * k, 2) for k in range(21)]
    assert {row[0].rstrip(" *") for row in members} == set(labels)
    for column in range(1, 22):
        allowed = largest <= float(header[column])
        best = sizes[allowed].max()
        chosen = [labels[row[0].rstrip(" *")] for row in members if row[column] == "●"]
        assert len(chosen) == int(numbers[column]) == best
        known = not study.weak(chosen)
        assert shows(overlaps[column], means[allowed & (sizes == best)].min()) if known else overlaps[column] == "weak"
