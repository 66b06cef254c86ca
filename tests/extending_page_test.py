"""docs/extending.md: its examples run and do what they say, and config.imports brings them to commands."""

import importlib.util
import json
import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import corruptions
import data
import models
from analysis import answers, frames
from analysis.errors import joint
from analysis.errors.reference import Conditions
from analysis.report import inputs
from evaluation import results, trained_models
from projects.natural_shift.sources import read_workdirs
from runtime import workdirs
from runtime.command import import_all, refuse_imports
from runtime.settings import SettingsError
from tests import processes
from tests.analysis.made_up import counted, read_counts, write_answers
from tests.pages import FENCE, ROOT, commands, section_of
from tests.refusing import refuses
from tests.training import tiny
from training import cli, study

PAGE = ROOT / "docs/extending.md"
SMALL = (  # but above chance
    *("dataset.train_limit=600", "dataset.test_limit=200", "train.epochs=6", "train.batch_size=50"),
    *("train.learning_rate=0.05", "eval.batch_size=100"),
)


@pytest.fixture
def extending(tmp_path, monkeypatch, own_registry):
    """The examples of docs/extending.md, {file: module}, the files written to a folder that is imported from."""
    blocks = [b for b in FENCE.finditer(PAGE.read_text()) if b["head"].startswith("python")]
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {}
    for block in blocks:
        title = re.search(r'title="([^"]+)"', block["head"])
        path = tmp_path / (title[1] if title else "script.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(block["body"])
        specification = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(specification)
        sys.modules[path.stem] = module  # `import my_corruptions` finds the one that is registered
        specification.loader.exec_module(module)
        found[path.relative_to(tmp_path).as_posix()] = module
    yield found
    for module in found.values():
        sys.modules.pop(module.__name__, None)
    data._SOURCES.pop("my_dataset")


def test_extending_examples_do_what_they_say(extending, tmp_path, monkeypatch):
    shaded, alone = np.asarray(extending["script.py"].shaded), np.asarray(extending["script.py"].alone)
    assert shaded.dtype == np.uint8 and set(np.unique(shaded)) <= {130, 200} and len(np.unique(shaded)) == 2
    assert alone.dtype == np.float32 and alone.shape == (32, 32, 3)

    monkeypatch.setattr(models, "_REGISTRY", models._REGISTRY | extending["models/tiny_net.py"].FAMILY)
    graphdef, state = nnx.split(models.build("tiny_net", 10, dtype="float32"))
    images = jnp.zeros((2, 32, 32, 3))
    logits, features = jax.eval_shape(lambda s, x: nnx.merge(graphdef, s)(x, train=False), state, images)
    assert logits.shape == (2, 10) and features["penultimate"].shape == (2, 16)

    pixels, labels = np.zeros((6, 32, 32, 3), np.uint8), np.arange(6) % 2
    arrays = {
        f"{split}_{what}": x for split in ("train", "test") for what, x in (("images", pixels), ("labels", labels))
    }
    np.savez(tmp_path / "my_dataset.npz", **arrays)
    assert "my_dataset.py" in extending
    dataset = data.load("my_dataset", data_dir=tmp_path, train_limit=4)
    assert len(dataset.train) == 4 and len(dataset.test) == 6 and dataset.num_classes == 2
    refuses(lambda: data.load("my_dataset", data_dir=tmp_path, image_size=64), "my_dataset: expected image_size 32 or")


def written_module(folder, monkeypatch, name="my_corruptions_of_a_test"):
    """The page's first file, under another name, where Python finds it."""
    (folder / f"{name}.py").write_text(next(FENCE.finditer(PAGE.read_text()))["body"].replace('"mine', '"test_of_mine'))
    monkeypatch.syspath_prepend(str(folder))
    return name


def test_a_config_imports_modules_and_workdirs_keep_them(tmp_path, monkeypatch, own_registry):
    name = written_module(tmp_path, monkeypatch)
    config = tiny.config(corruption="test_of_mine/shade")
    config.imports = (name,)
    refuses(lambda: cli.check(config), "'test_of_mine/shade'", "--imports=MODULE", kind=SettingsError)
    import_all(config.imports)
    cli.check(config)
    config.eval.corruptions = ("my_benchmark",)
    cli.check(config)
    of_model = study.model_config(config, config.train.corruption, 0)
    with workdirs.open_workdir(tmp_path / "work", of_model.to_dict()):
        pass
    with trained_models.open_workdir(tmp_path / "work", tiny.config()) as trained:
        assert corruptions.get(trained.train.corruption).name == "shade" and list(trained.imports) == [name]
    assert "imports" not in study.model_config(tiny.config(), "noc/border", 0)


def test_tables_know_what_the_evaluation_imported_once_it_is_imported(tmp_path, monkeypatch, own_registry):
    trained, given = tiny.config(), tiny.config()
    name = written_module(tmp_path, monkeypatch, "other_corruptions_of_a_test")  # not imported before
    trained.imports, given.imports = ("json",), ("json", name)
    members = ("test_of_mine/shade", "test_of_mine/both", "noc/border")
    counts = [counted("standard", 0, name, "random", 60, 100) for name in members]
    counts.append(counted("standard", 0, frames.CLEAN, 0, 80, 100))
    imported = {"imports": [*trained.imports, *given.imports]}
    write_answers(tmp_path, counts, Conditions("shapes", 10, (32, 32, 3), "none", {}), **imported)
    import_all((name,))
    found = joint.joint([joint.read(tmp_path, "made_up")])
    assert ("my_benchmark", "random", "mean_error") in found.columns
    assert results.asked_for(given, trained)["imports"] == tuple(given.imports)


def reads(folder):
    """{kind of reading: a function that reads a workdir in `folder`}."""
    return {
        "answers": lambda: answers.read(folder),
        "table": lambda: joint.read(folder, "made_up"),
        "report": lambda: inputs.read(folder),
        "natural_shift": lambda: read_workdirs([folder]),
        "evaluation": lambda: trained_models.list_models(folder),
    }


@pytest.mark.parametrize("kind", reads(None))
def test_a_workdir_of_others_runs_no_code(kind, tmp_path, monkeypatch):
    """Only the user's command line or config file names code to import; a workdir that does is refused."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder, ran, name = tmp_path / "downloaded", tmp_path / "ran", f"payload_of_{kind}"
    folder.mkdir()
    (tmp_path / f"{name}.py").write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n")
    counts = [counted("standard", 0, frames.CLEAN, 0, 80, 100)]
    write_answers(folder, counts, Conditions("shapes", 10, (32, 32, 3), "none", {}), imports=[name])
    (folder / "config.json").write_text(json.dumps(tiny.config().to_dict() | {"imports": [name]}))
    (folder / "evaluation.json").write_text(json.dumps({"imports": [name]}))
    workdirs.write_final(folder, step=1, digest="0" * 64, num_classes=10)
    for file in (*inputs.REQUIRED, "provenance.json"):
        (folder / file).exists() or (folder / file).write_text("{}")
    with pytest.raises(SettingsError, match=f"downloaded.*found imports {name}; if you trust this code, .*import"):
        reads(folder)[kind]()
    assert not ran.exists()


def test_a_command_without_config_imports_what_its_command_line_names(tmp_path):
    """The refusal names the flag, with which the same command goes on."""
    (tmp_path / "payload.py").write_text("print('imported')\n")
    counts = [counted("standard", 0, frames.CLEAN, 0, 80, 100)]
    write_answers(tmp_path / "work", counts, Conditions("shapes", 10, (32, 32, 3), "none", {}), imports=["payload"])
    command = [sys.executable, "-m", "tools.tables", str(tmp_path / "work")]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    refused = processes.run(command, env=environment)
    assert refused.returncode == 1 and "imported" not in refused.stdout, refused.stderr
    assert "found imports payload; if you trust this code, add --imports=payload\n" in refused.stderr
    given = processes.run([*command, "--imports=payload"], env=environment)
    assert given.returncode == 0 and given.stdout.startswith("imported\n"), given.stderr


def test_a_training_that_continues_without_its_imports_is_told_the_flag(tmp_path):
    """Also where a name that they register is asked for, which without them is unknown."""
    stored = tiny.config(corruption="mine/shade").to_dict() | {"imports": ["my_corruptions"]}
    (tmp_path / "config.json").write_text(json.dumps(stored))
    asked = [f"--config={ROOT}/configs/aug.py:mine/shade", f"--workdir={tmp_path}"]
    for script, more in (("train.py", []), ("eval.py", ["--config.eval.corruptions=('mine/shade',)"])):
        done = processes.run([sys.executable, script, *asked, *more])
        assert done.returncode == 1, done.stdout
        assert "found imports my_corruptions; if you trust this code, add --imports=my_corruptions\n" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json"]
    (tmp_path / "my_corruptions.py").write_text(next(FENCE.finditer(PAGE.read_text()))["body"])
    given = [sys.executable, "train.py", *asked, "--imports=my_corruptions", "--config.train.epochs=-1"]
    done = processes.run(given, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.stderr.startswith("train.py: config.train.epochs: expected ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("stored", ["name", [3], ["a b"], [""], ["x\nadd --all"], {"a": 1}])
def test_stored_imports_that_are_no_names_are_refused(stored):
    refuses(lambda: refuse_imports(stored, "config.json"), "modules as imports, found", kind=SettingsError)


@pytest.mark.parametrize(
    "given, message",
    [
        (("no_such_module",), "found 'no_such_module': ModuleNotFoundError: No module named"),
        ("my_corruptions", "names of modules"),
        ((".mine",), r"found '\.mine': TypeError: .*relative import"),
        (("wrong_module_of_a_test",), "found 'wrong_module_of_a_test': NameError: name 'shade' is not defined"),
    ],
)
def test_modules_that_cannot_be_imported_are_named(given, message, tmp_path, monkeypatch):
    (tmp_path / "wrong_module_of_a_test.py").write_text("shade")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SettingsError, match=f"config.imports: .*{message}"):
        import_all(given)


def test_the_recipe_of_the_howto_is_of_the_commands_that_go_through():
    recipe = section_of("docs/howto/corrupt.md", "Add a corruption, a model, a dataset")
    executed = list(commands(PAGE.read_text().split("## A corruption in the library")[0]))
    assert [command[0] for command in commands(recipe)] == ["train.py", "eval.py", "overlap.py"]
    assert all(command in executed for command in commands(recipe))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_commands_of_the_page_go_through(tmp_path):
    (tmp_path / "my_corruptions.py").write_text(next(FENCE.finditer(PAGE.read_text()))["body"])
    section = PAGE.read_text().split("## A corruption in the library")[0]
    for command in commands(section):
        given = [word.replace("runs/", f"{tmp_path}/") for word in command]
        given += [f"--config.{setting}" for setting in SMALL] if command[0] != "-m" else []
        done = processes.run([sys.executable, *given], env=os.environ | {"PYTHONPATH": str(tmp_path)})
        assert done.returncode == 0, done.stderr
    evaluated = {count.corruption for _, count in read_counts(tmp_path / "shade" / "counts.csv")}
    assert evaluated == {"clean", "mine/shade", "mine/both", "noc/border"}
    assert (tmp_path / "shade_overlap" / "overlap.csv").read_text().count("mine/shade") >= 2
    assert (tmp_path / "shade_overlap" / "report.html").stat().st_size > 10_000
