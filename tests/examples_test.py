"""Every example runs, but for a cheap one as its own process, and does what it says."""

import re
import sys

import jax
import pytest

from examples import segmentation
from tests import compiling, processes
from tests.processes import ROOT

EXAMPLES = {"flax_loop", "keras_loop", "segmentation", "torch_dlpack"}


def run(name):
    """Standard output of `python -m examples.<name>`."""
    # Run by a user's settings, not the tests'.
    environment = {k: v for k, v in compiling.environment().items() if "PROMOTION" not in k}
    environment |= {"JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax"}
    command = [sys.executable, "-m", f"examples.{name}"]
    done = processes.run(command, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_learns(output):
    first, last = map(float, re.search(r"loss (\S+) -> ([0-9.]+)", output).groups())
    assert last < 0.9 * first, output


def test_every_example_is_run_here_and_short():
    files = {path.stem: path for path in (ROOT / "examples").glob("*.py")}
    assert files.keys() == EXAMPLES
    for path in files.values():
        assert len(path.read_text().splitlines()) <= 60, path


@pytest.mark.slow
def test_the_notebook(capsys):
    """Runs all cells but the installation; training with corruptions halves the error under other ones."""
    text = (ROOT / "examples/robust_nnx.md").read_text()
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", text, re.M | re.S)
    found = {"__name__": "notebook"}
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):  # as a user runs it
        for cell in cells:
            exec(re.sub(r"^!.*\n", "", cell, flags=re.M), found)
    assert capsys.readouterr().out.count("severity") == 2 * 3 * 2
    assert found["errors"]["corrupted"] < 0.5 * found["errors"]["clean"], found["errors"]
    assert "torch" not in text


def test_jupytext_reads_the_notebook():
    jupytext = pytest.importorskip("jupytext")
    text = (ROOT / "examples/robust_nnx.md").read_text()
    cells = jupytext.reads(text, "md:myst").cells
    assert cells[0].source.startswith("# ") and sum(cell.cell_type == "code" for cell in cells) == text.count(
        "{code-cell}"
    )


def test_flax_loop():
    output = run("flax_loop")
    assert_learns(output)
    assert "1 compiled program" in output


@pytest.mark.needs("keras")
def test_keras_loop():
    output = run("keras_loop")
    assert_learns(output)
    assert "in training 100% of images are corrupted" in output and "at test time none" in output


@pytest.mark.needs("torch")
def test_torch_dlpack():
    output = run("torch_dlpack")
    assert_learns(output)
    assert "0 batches copied" in output


def test_segmentation(capsys):
    """Masks and boxes that follow a shear are found as well as before; those of the images before it are not."""
    segmentation.main("noc/shear", number=2, side=32)
    output = capsys.readouterr().out
    shares = [float(share) for share in re.findall(r"rPC (\S+)", output)]
    assert output.count("clean") == 2 and min(shares) > 0.9, output
