"""Compares this working tree with another revision: pixels, gradients, trained parameters, cells of tables.

    git worktree add ../before 4e17979
    python -m tests.frozen --before=../before --out=/tmp/frozen [--parts=pixels,floats,training,tables]

Each tree computes its own results in its own processes, on this machine; the results are then compared exactly. A
difference that is intended stands in INTENDED, with its reason. Results of --before are kept under --out and are
not computed again.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
from absl import app, flags

_BEFORE = flags.DEFINE_string("before", None, "checkout of the revision to compare with", required=True)
_OUT = flags.DEFINE_string("out", "/tmp/frozen", "folder of the results of both trees")
_PARTS = flags.DEFINE_list("parts", ["pixels", "floats", "training", "tables"], "parts to compare")

HERE = pathlib.Path(__file__).resolve().parents[1]

INTENDED = {}
"""Pattern of a result -> reason why it may differ or be absent."""

_SMALL = [
    f"--config.{setting}"
    for setting in (
        "dataset.train_limit=600",
        "dataset.test_limit=200",
        "train.epochs=4",
        "train.batch_size=50",
        "train.learning_rate=0.05",
        "eval.batch_size=100",
    )
]

# Runs inside each tree with that tree's own library; keeps to names that both revisions have.
_PIXELS = r"""
import sys, numpy as np, jax, corruptions
import corruptions.syn2nat
from corruptions import augment
out, kind = sys.argv[1:]
key, rng = jax.random.key(7), np.random.default_rng(3)
def smooth(n, h, w):
    coarse = rng.integers(0, 256, (n, 8, 8, 3)).astype(np.float32)
    rows, columns = np.linspace(0, 7, h), np.linspace(0, 7, w)
    grid = np.stack([[np.interp(rows, np.arange(8), c) for c in image.transpose(1, 2, 0).reshape(24, 8)] for image in coarse])
    grid = grid.reshape(n, 8, 3, h)
    full = np.stack([[[np.interp(columns, np.arange(8), image[:, c, y]) for c in range(3)] for y in range(h)] for image in grid])
    noisy = full.transpose(0, 1, 3, 2) + rng.normal(0, 12, (n, h, w, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8)
small, large = smooth(4, 32, 32), smooth(2, 224, 180)
names = sorted({*corruptions.names(), *(n for b in corruptions.benchmarks() for n in corruptions.names(b))})
def levels(name):
    found = corruptions.severities(name)
    return tuple(found) if found else (0.0, 0.3, 0.7, 1.0)
def save(name, value):
    np.save(f"{out}/{name.replace('/', '.')}.npy", np.asarray(value))
if kind == "pixels":
    for name in names:
        try: steps = levels(name)
        except Exception: steps = (0.0, 0.3, 0.7, 1.0)
        for images, size in ((small, "32"), (large, "224x180")):
            rows = [corruptions.corrupt(key, images, name, s) for s in steps] + [corruptions.corrupt(key, images, name)]
            save(f"corrupt-{size}-{name}", np.stack([np.asarray(r) for r in rows]))
        save(f"image-{name}", corruptions.corrupt_image(small[0], name, steps[-1], seed=5))
        save(f"clip-{name}", corruptions.corrupt(key, small[None], name, steps[0], axis="time"))
        sizes = [small[0], small[1, :20, :27], large[0, :60, :45]]
        for way in ("bucket", "exact"):
            for i, r in enumerate(corruptions.corrupt_each(key, sizes, name, steps[-1], sizes=way)):
                save(f"each-{way}-{i}-{name}", r)
    for name in augment.names():
        try: save(f"scheme-{name}", augment.augment(key, small, name))
        except Exception as error: save(f"scheme-{name}", np.array(type(error).__name__))
else:
    floats = small.astype(np.float32)[:2] / np.float32(255)
    for name in names:
        try: step = levels(name)[-1]
        except Exception: step = 1.0
        save(f"float-{name}", corruptions.corrupt(key, floats, name, step))
        for gradient in (None, "straight_through"):
            loss = lambda x: (corruptions.corrupt(key, x, name, step, gradient=gradient) ** 2).sum()
            try: save(f"gradient-{gradient}-{name}", jax.grad(loss)(floats))
            except Exception as error: save(f"gradient-{gradient}-{name}", np.array(type(error).__name__))
"""


_QUICKLY_COMPILED = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
}


def run(tree, *arguments, variables=(), **options):
    """Runs a command in a tree, with that tree's packages first."""
    environment = os.environ | {"PYTHONPATH": str(tree), "JAX_PLATFORMS": "cpu"} | dict(variables)
    return subprocess.run([sys.executable, *map(str, arguments)], cwd=tree, env=environment, check=True, **options)


def arrays(tree, out, kind):
    """Saves the pixels or the float results of a tree as one .npy file a case."""
    out.mkdir(parents=True)
    run(tree, "-c", _PIXELS, out, kind, variables=_QUICKLY_COMPILED)


def training(tree, out):
    """Trains a few small models: standard, JSD, fine-tuned, and one that is killed and continued."""
    out.mkdir(parents=True)
    train = ["train.py", "--config=configs/default.py", *_SMALL]
    log = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run(tree, *train, f"--workdir={out}/standard", **log)
    run(tree, *train, f"--workdir={out}/fog", "--config.train.corruption=imagenet_c/fog", **log)
    jsd = ["--config.train.scheme=augmix", "--config.train.jsd_weight=12.0"]
    run(tree, *train, f"--workdir={out}/jsd", *jsd, **log)
    run(tree, *train, f"--workdir={out}/stability", "--config.train.stability_weight=0.1",
        "--config.train.stability_noise=0.05", **log)  # fmt: skip
    run(tree, *train, f"--workdir={out}/finetuned", f"--config.train.init_from={out}/standard", **log)
    killed = [*train, f"--workdir={out}/killed", "--config.train.epochs=12", "--config.train.corruption=noc/border"]
    environment = os.environ | {"PYTHONPATH": str(tree), "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen([sys.executable, *killed], cwd=tree, env=environment, **log)
    checkpoints = out / "killed" / "checkpoints"
    while process.poll() is None and not (
        checkpoints.is_dir() and any(p.name.isdigit() for p in checkpoints.iterdir())
    ):
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run(tree, *killed, **log)


def tables(tree, out):
    """Runs a small overlap study with a mixture, and evaluates it further."""
    out.mkdir(parents=True)
    work = out / "study"
    study = ["--config.study.corruptions=('noc/border','noc/hue','imagenet_c/gaussian_noise')",
             "--config.study.mixtures=('mixture=imagenet_noc',)", "--config.study.seeds=(0,1)"]  # fmt: skip
    log = {"stdout": subprocess.DEVNULL}
    run(tree, "overlap.py", f"--workdir={work}", *_SMALL, *study, **log)
    more = ["--config.eval.corruptions=('imagenet_c/fog','noc/rain')", "--config.eval.severity=levels"]
    run(tree, "eval.py", f"--workdir={work}", *more, "--config.eval.batch_size=100", **log)


def digests(folder):
    """Finds the digest of the parameters of every finished model under a folder."""
    return {
        str(path.parent.relative_to(folder)): json.loads(path.read_text())["digest"]
        for path in sorted(folder.rglob("final.json"))
    }


def cells(path):
    """Reads a CSV into sorted rows of cells, without comment lines; numbers with 12 digits."""

    def cell(text):
        try:
            return f"{float(text):.10g}"
        except ValueError:
            return text

    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return lines[0], sorted(tuple(map(cell, line.split(","))) for line in lines[1:])


def compare(before, now, part):
    """Lists the differences between the results of two trees."""
    if part in ("pixels", "floats"):
        names = sorted({p.name for folder in (before, now) for p in folder.glob("*.npy")})
        for name in names:
            if not ((before / name).exists() and (now / name).exists()):
                yield name, "only in one tree"
                continue
            a, b = np.load(before / name), np.load(now / name)
            if a.shape != b.shape or a.dtype != b.dtype:
                yield name, f"{a.dtype}{a.shape} became {b.dtype}{b.shape}"
            elif a.dtype.kind in "US":
                if str(a) != str(b):
                    yield name, f"{a} became {b}"
            elif not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                off = np.abs(a.astype(np.float64) - b)
                yield name, f"{(off > 0).mean():.2e} of the values differ, by at most {np.nanmax(off):.3g}"
    elif part == "training":
        a, b = digests(before), digests(now)
        for name in sorted(a.keys() | b.keys()):
            if a.get(name) != b.get(name):
                yield name, f"parameters {a.get(name)} became {b.get(name)}"
    else:
        for path in sorted(before.rglob("*.csv")):
            other = now / path.relative_to(before)
            if not other.exists():
                yield str(path.relative_to(before)), "table is missing"
                continue
            (head, rows), (new_head, new_rows) = cells(path), cells(other)
            if head != new_head:
                yield path.name, f"columns {head} became {new_head}"
            elif rows != new_rows:
                different = sum(a != b for a, b in zip(rows, new_rows))
                yield str(path.relative_to(before)), f"{different} of {len(rows)} rows differ ({len(new_rows)} now)"


def main(argv):
    del argv
    out, trees = pathlib.Path(_OUT.value), {"before": pathlib.Path(_BEFORE.value).resolve(), "now": HERE}
    make = {"training": training, "tables": tables}
    failed = 0
    for part in _PARTS.value:
        for side, tree in trees.items():
            folder = out / side / part
            done = folder / ".done"
            if side == "before" and done.exists():
                continue
            shutil.rmtree(folder, ignore_errors=True)
            if part in make:
                make[part](tree, folder)
            else:
                arrays(tree, folder, part)
            done.touch()
        differences = [d for d in compare(out / "before" / part, out / "now" / part, part) if d[0] != ".done"]
        for name, text in differences:
            reason = next((why for pattern, why in INTENDED.items() if pattern in name), None)
            failed += reason is None
            print(f"{part}: {name}: {text}{f' (intended: {reason})' if reason else ''}")
        print(f"{part}: {len(differences)} differences", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    app.run(main)
