"""A folder of corruptions.evaluate belongs to one classifier, test set and code: what is reused, and what is refused."""

import contextlib
import json
import pathlib
import shutil

import numpy as np
import pytest

import corruptions
from analysis import answers
from corruptions import files
from corruptions.scoring import Classifier, classifier, folder, results
from corruptions.scoring.folder import read_confidence, read_wrong
from tests.corruptions.scoring.evaluate_test import NAMES, OF, predict
from tests.corruptions.scoring.evaluate_test import stub as stub
from tests.corruptions.write.datasets import IMAGES, LABELS, register_mine, register_of_file
from tests.refusing import refuses

# Written by version 0.2 (revision c6dcd0ab): evaluate(predict, IMAGES, LABELS, path=..., **OF).
EARLIER = pathlib.Path(__file__).parents[2] / "fixtures" / "evaluate_0.2"
# The same of revision 4872d3e4, without contrast.
BETWEEN = EARLIER.with_name("evaluate_after_0.2")


def other(images):
    """Another classifier."""
    return predict(images)[:, ::-1]


def unsure(images):
    """A classifier with the classes of `predict`, and other confidences."""
    return predict(images) * 30


def reordered(order):
    return [(IMAGES[rows], LABELS[rows]) for rows in np.array_split(np.asarray(order), 3)]


@pytest.mark.parametrize("network", [other, unsure])
@pytest.mark.parametrize("as_batches", [False, True])
def test_results_of_another_classifier_are_refused_before_anything_is_stored(stub, tmp_path, network, as_batches):
    given = (reordered(range(12)),) if as_batches else (IMAGES, LABELS)
    found = corruptions.evaluate(predict, *given, path=tmp_path, **OF)
    before = contents(tmp_path)
    for severity in ("0,0.5", "0,0.5,1"):
        with pytest.raises(ValueError, match=r"network: .*Classifier"):
            corruptions.evaluate(network, *given, path=tmp_path, **OF | {"severity": severity})
    assert contents(tmp_path) == before
    almost = lambda images: predict(images) * 1.001  # noqa: E731 - as another machine computes it
    assert corruptions.evaluate(almost, *given, path=tmp_path, **OF | {"batch_size": 12}) == found


def contents(path):
    return {file.relative_to(path): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def test_a_classifier_is_asked_about_corrupted_images_where_the_clean_results_were_removed(stub, tmp_path):
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    (tmp_path / "answers/clean-0.npz").unlink()
    refuses(lambda: corruptions.evaluate(other, IMAGES, LABELS, path=tmp_path, **OF), "network", "Classifier")
    assert corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF) == found


def test_a_name_replaces_asking_a_classifier_that_draws(stub, tmp_path):
    rng = np.random.default_rng(0)
    drawn = lambda images: predict(images) + rng.normal(size=(len(images), 3))  # noqa: E731
    found = corruptions.evaluate(Classifier(drawn, network="a"), IMAGES, LABELS, path=tmp_path, **OF)
    unasked = Classifier(lambda x: pytest.fail("asked"), network="a")
    assert corruptions.evaluate(unasked, IMAGES, LABELS, path=tmp_path, **OF) == found
    for name in ("b", None):
        with pytest.raises(ValueError, match=r"network: stored '?a'?, requested"):
            corruptions.evaluate(Classifier(drawn, network=name), IMAGES, LABELS, path=tmp_path, **OF)


MINE = {"corruptions": "mine/darker", "severity": "levels", "batch_size": 12, "progress": False}


def test_an_edited_corruption_is_refused_and_an_edited_comment_costs_nothing(own_registry, tmp_path, monkeypatch):
    register_mine(10)
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **MINE)
    called = []
    corrupt = classifier.corrupt
    monkeypatch.setattr(classifier, "corrupt", lambda *args, **kw: called.append(args[3]) or corrupt(*args, **kw))
    register_mine(10, unused=1)
    assert corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **MINE) == found and sorted(called) == [1, 2, 3]
    register_mine(10, version=2)
    refuses(lambda: corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **MINE), "stored 1, requested 2")
    register_mine(20)
    for severity in ("levels", "1"):
        with pytest.raises(ValueError, match=r"code: .* mine/darker"):
            corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **MINE | {"severity": severity})


def test_equal_code_of_the_library_is_not_probed(tmp_path, monkeypatch):
    asked = MINE | {"corruptions": "noc/hue", "severity": 0.5}
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **asked)
    with monkeypatch.context() as patch:
        patch.setattr(classifier, "corrupt", lambda *args, **kw: pytest.fail("probed"))
        assert corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **asked) == found
    monkeypatch.setattr("corruptions.core.code._of_library", lambda: "edited")
    assert corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **asked) == found
    monkeypatch.setattr(classifier, "corrupt", lambda *args, **kw: pytest.fail("probed again"))
    assert corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **asked) == found


def test_a_data_file_of_a_corruption_that_changed_is_noticed(own_registry, tmp_path):
    register_of_file(tmp_path / "level.npy", 10)
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path / "mine", **MINE)
    assert corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path / "mine", **MINE) == found
    register_of_file(tmp_path / "level.npy", 20)
    for asked in (MINE, MINE | {"severity": "random"}):
        with pytest.raises(ValueError, match=r"code: .* mine/darker .*file"):
            corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path / "mine", **asked)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seed": 1}, "seed"),
        ({"outputs": "probabilities"}, "outputs"),
        ({"dtype": "uint8"}, "dtype"),
        ({"index": range(1, 13)}, "data.index"),
        ({"options": {NAMES[0]: {"range": (0.5, 0.8)}}}, "options.range"),
    ],
)
@pytest.mark.parametrize("earlier", [False, True])
def test_other_arguments_are_named(stub, tmp_path, change, field, earlier):
    if earlier:
        shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    else:
        corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    warns = pytest.warns(FutureWarning) if change.keys() & {"outputs", "dtype", "index"} else contextlib.nullcontext()
    with warns, pytest.raises(ValueError, match=f": {field}: stored .*, requested .*use another folder"):
        corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF, **change)
    refuses(lambda: corruptions.evaluate(predict, IMAGES[::-1], 2 - LABELS, path=tmp_path, **OF), "data.images: stored")


def test_options_are_those_of_one_corruption(stub, tmp_path):
    one, two = ({**OF, "path": tmp_path, "corruptions": name} for name in NAMES)
    corruptions.evaluate(predict, IMAGES, LABELS, **one, options={NAMES[0]: {"range": (0.5, 0.8)}})
    corruptions.evaluate(predict, IMAGES, LABELS, **two, options={NAMES[1]: {"range": np.array([0.1, 0.2])}})
    for of in (one, two):
        with pytest.raises(ValueError, match=r"options.range: stored"):
            corruptions.evaluate(predict, IMAGES, LABELS, **of)
    again = {"options": {NAMES[1]: {"range": [0.1, 0.2]}}}
    corruptions.evaluate(predict, IMAGES, LABELS, **two, **again)


def test_results_are_bound_to_the_bank_of_tiles(monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(classifier, "corrupt", lambda *given, index, **options: shown.append(options) or given[1])
    of = {"corruptions": "laion_c/mosaic", "severity": 1, "batch_size": 12, "path": tmp_path}
    banks = [corruptions.laion_c.use_bank(images) for images in (IMAGES, IMAGES[:5])]
    corruptions.evaluate(predict, IMAGES, LABELS, **of)
    assert shown == [{"bank": banks[1]}]
    corruptions.laion_c.use_bank(IMAGES)
    refuses(lambda: corruptions.evaluate(predict, IMAGES, LABELS, **of), "options.bank: stored")
    given = {"options": {"laion_c/mosaic": {"bank": banks[1]}}}
    corruptions.evaluate(predict, IMAGES, LABELS, **of, **given)
    assert len(shown) == 1


def test_a_folder_of_version_0_2_is_read_continued_and_compared(tmp_path):
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    before = read_wrong(tmp_path)
    assert len(before) == 5 and read_confidence(tmp_path).keys() == before.keys()
    more = OF | {"severity": (0, 0.5, 1)}
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **more)
    assert found == corruptions.evaluate(predict, IMAGES, LABELS, **more)
    after = read_wrong(tmp_path)
    assert len(after) == 7 and all((after[cell] == wrong).all() for cell, wrong in before.items())
    assert (tmp_path / "answers.npz").read_bytes() == (EARLIER / "answers.npz").read_bytes()
    refuses(lambda: corruptions.evaluate(other, IMAGES, LABELS, path=tmp_path, **OF), "network")


def test_a_folder_of_a_revision_after_0_2_is_read_continued_and_compared(tmp_path):
    shutil.copytree(BETWEEN, tmp_path, dirs_exist_ok=True)
    assert read_wrong(tmp_path).keys() == {("clean", "0"), ("noc/hue", "0.0"), ("noc/hue", "0.5")}
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    assert found == corruptions.evaluate(predict, IMAGES, LABELS, **OF)
    assert {path.name for path in (tmp_path / "answers").iterdir()} == {f"noc.contrast-{s}.npz" for s in (0.0, 0.5)}
    assert [count for _, count in answers.read(tmp_path).counts] == sorted(found)
    refuses(lambda: corruptions.evaluate(other, IMAGES, LABELS, path=tmp_path, **OF), "network")


def test_a_folder_of_version_0_2_is_compared_with_the_code(stub, tmp_path):
    """The stub corrupts otherwise than the code that made the folder."""
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    refuses(lambda: corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF), "code", "noc/contrast")


def test_of_two_sets_of_random_severities_tables_take_the_one_that_was_asked_for_last(tmp_path, monkeypatch):
    monkeypatch.setattr(classifier, "corrupt", lambda key, images, *given, **options: images)
    both = ("imagenet_c_bar", "cifar10_c_bar")
    (name, *_) = sorted(set(corruptions.names(both[0])) & set(corruptions.names(both[1])))
    first, second = (corruptions.selected_levels(name, benchmark) for benchmark in both)
    assert first != second
    for benchmark in (*both, both[0]):
        given = {"corruptions": benchmark, "severity": "random", "batch_size": 12, "progress": False}
        corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **given)
        record = answers.read(tmp_path).record(("standard", 0, name, "random"))
        assert record.levels == corruptions.selected_levels(name, benchmark)
    refuses(lambda: read_wrong(tmp_path), "use two folders")


class Loader:
    """Batches that another order has at each pass, or other pixels."""

    def __init__(self, orders, add=(0, 0, 0, 0, 0, 0)):
        self.orders, self.add, self.passes = orders, add, 0

    def __iter__(self):
        order, add = self.orders[self.passes % len(self.orders)], self.add[self.passes]
        self.passes += 1
        yield from ((images + np.uint8(add), labels) for images, labels in reordered(order))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    "loader",
    [
        lambda: Loader([range(12), range(11, -1, -1)]),
        lambda: Loader([range(12), [*range(3, 12), 0, 1, 2]]),  # the same labels
        lambda: Loader([range(12)], add=(0, 1, 0, 0, 0, 0)),
        lambda: Loader([range(12), range(8), range(12)]),
    ],
    ids=["labels", "images", "pixels", "fewer"],
)
def test_a_loader_that_shuffles_is_refused_before_its_results_are_stored(stub, tmp_path, loader, kept):
    refuses(lambda: corruptions.evaluate(predict, loader(), path=tmp_path if kept else None, **OF), "shuffle")
    assert not kept or not folder.is_folder(tmp_path)


def test_a_loader_without_shuffling_is_read_again_and_again(stub, tmp_path):
    found = corruptions.evaluate(predict, Loader([range(12)]), path=tmp_path, **OF)
    assert found == corruptions.evaluate(predict, IMAGES, LABELS, **OF)


def test_bytes_written_are_at_most_twice_those_of_the_result(stub, tmp_path, monkeypatch):
    written = []
    replace = files.replace
    monkeypatch.setattr(files, "replace", lambda path, content: written.append(len(content)) or replace(path, content))
    severities = np.linspace(0, 1, 40)
    images, labels = np.repeat(IMAGES[:, :16, :16], 100, 0), np.repeat(LABELS, 100)
    given = OF | {"severity": severities, "batch_size": 1200}
    corruptions.evaluate(predict, images, labels, path=tmp_path, **given)
    assert sum(written) <= 2 * sum(map(len, contents(tmp_path).values()))
    assert sum(map(len, contents(tmp_path).values())) < 2 * 81 * 1200 * 15  # mostly results


MODEL = "standard|0"


def damaged_bytes(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def edited(change):
    def edit(path):
        with np.load(path) as archive:
            arrays = dict(archive)
        made_from = json.loads(str(arrays.pop("made_from")))
        change(arrays, made_from)
        np.savez(path, **arrays, made_from=json.dumps(made_from))

    return edit


@pytest.mark.parametrize(
    "damage",
    [
        damaged_bytes,
        edited(lambda arrays, of: arrays.update({MODEL: arrays[MODEL][:1]})),
        edited(lambda arrays, of: arrays.update({MODEL: ~arrays[MODEL]})),
        edited(lambda arrays, of: of.pop("sha256")),
        edited(lambda arrays, of: of["record"]["classifiers"][MODEL].update(network="a")),
        lambda path: path.rename(path.with_name("noc.hue-1.npz")),
        lambda path: shutil.copy(path.with_name("noc.hue-0.0.npz"), path),
    ],
    ids=["half", "shorter", "turned", "unsealed", "another network", "renamed", "copied"],
)
def test_files_that_evaluate_did_not_write_so_are_refused(stub, tmp_path, damage):
    corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    damage(tmp_path / "answers" / "noc.hue-0.5.npz")
    for call in (
        lambda: corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF),
        lambda: read_wrong(tmp_path),
    ):
        with pytest.raises(ValueError, match="remove it to evaluate this condition again"):
            call()


def test_a_file_of_another_folder_is_refused(stub, tmp_path):
    for name, network, seed in (("a", predict, 0), ("b", other, 0), ("c", predict, 1)):
        corruptions.evaluate(network, IMAGES, LABELS, path=tmp_path / name, seed=seed, **OF)
    whole = (tmp_path / "a/answers/noc.hue-0.5.npz").read_bytes()
    for name, field in (("b", "network"), ("c", "seed")):
        shutil.copy(tmp_path / name / "answers/noc.hue-0.5.npz", tmp_path / "a/answers")
        with pytest.raises(ValueError, match=f"expected the {field} of"):
            read_wrong(tmp_path / "a")
    (tmp_path / "a/answers/noc.hue-0.5.npz").write_bytes(whole)
    assert len(read_wrong(tmp_path / "a")) == 5


def test_a_record_of_a_newer_version_is_refused(stub, tmp_path):
    corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF | {"corruptions": "noc/hue", "severity": 1})
    path = tmp_path / "answers/noc.hue-1.0.npz"
    by_model, record = results.read_file(path)
    path.write_bytes(results.to_bytes(by_model, record._replace(origin={**record.origin, "weather": "fine"})))
    refuses(lambda: read_wrong(tmp_path), "'weather'", "newer jax-corruptions")


@pytest.mark.parametrize("nothing", [None, np.zeros((12, 3), np.float32)])
def test_what_is_no_classifier_is_refused_with_what_reads_a_folder(stub, tmp_path, nothing):
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    with pytest.raises(TypeError, match=r"expected predict, .*read_wrong\(path\)") as refused:
        corruptions.evaluate(nothing, IMAGES, LABELS, path=tmp_path, **OF)
    assert "\n" not in str(refused.value) and len(read_wrong(tmp_path)) == len(found)


def test_what_a_mac_leaves_beside_results_is_left_out(stub, tmp_path):
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    for path in [*tmp_path.glob("answers/*.npz")]:
        path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7")
    assert corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF) == found
    assert len(read_wrong(tmp_path)) == len(found)
