"""Speed of the real training loop: images per second, share of the peak, where the rest goes.

    python -m benchmarks.train                                        # the rows for this kind of device
    python -m benchmarks.train --rows resnet18:224:8 small_resnet:32:128:float32 --out=FILE

A row is MODEL:SIZE:BATCH or MODEL:SIZE:BATCH:DTYPE. Writes benchmarks/results/train_DEVICE.md,
after each row, so that a run cut short leaves what it measured. The same network in PyTorch on a
CPU: benchmarks/train_cpu.py.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = {  # images per second on one H200 in bfloat16, standard training
    ("resnet18", 224): 10_000,
    ("resnet50", 224): 3_000,
    ("densenet121", 224): 2_000,
    ("cifar_resnet18", 32): 50_000,
}
OVERHEAD_TARGET = 0.25  # of the slowest ImageNet-C corruption, as a share of a ResNet-18 step at 224
ROWS = {
    "cpu": ["small_resnet:32:128", "cifar_resnet18:32:32", "resnet18:224:8"],
    "accelerator": ["resnet18:224:256", "resnet50:224:256", "densenet121:224:256", "cifar_resnet18:32:1000"],
}
HEADER = """| model | side | batch | type | images/s | with corruption | GFLOP/image | TFLOP/s | of the peak | outside the step \
| slowest corruption | of a step | peak memory |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def parse_row(text):
    """MODEL:SIZE:BATCH[:DTYPE] as the arguments of `train_row.measure`."""
    parts = text.split(":")
    if len(parts) not in (3, 4) or not all(part.isdecimal() for part in parts[1:3]):
        raise argparse.ArgumentTypeError(f"expected MODEL:SIZE:BATCH or MODEL:SIZE:BATCH:DTYPE, found {text!r}")
    return {
        "model": parts[0],
        "image_size": int(parts[1]),
        "batch_size": int(parts[2]),
        "dtype": parts[3] if len(parts) == 4 else "",
    }


def cells(row, values):
    """The cells of a row of the table."""
    rate, corrupted = (row["batch_size"] / values[key] for key in ("loop", "corrupted_loop"))
    achieved = values["flops"] * row["batch_size"] / values["loop"]
    outside = 1 - values["step"] / values["loop"]
    memory = f"{values['memory'] / 2**30:.2f} GiB" if values["memory"] else "-"
    return [
        row["model"],
        row["image_size"],
        row["batch_size"],
        values["dtype"],
        f"{rate:,.0f}",
        f"{corrupted:,.0f}",
        f"{values['flops'] / 1e9:.3g}",
        f"{achieved / 1e12:.3g}",
        f"{100 * achieved / values['peak']:.0f} %",
        f"{100 * outside:.0f} %",
        values["slowest"].removeprefix("imagenet_c/"),
        f"{100 * values['corruption'] / values['step']:.0f} %",
        memory,
    ]


def report(table, measured):
    """The page: machine, how to read the table, the table, the targets."""
    first = measured[0][1]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "flax"))
    return f"""# Speed of training

`python -m benchmarks.train` on {machine(first)}, Python {platform.python_version()}, {versions}; load average while it
ran {os.getloadavg()[1]:.1f} (above the number of cores: other work had its share, and all speeds are below what they would be alone).

`images/s`: of `training.loop` on standard images, uint8 in, converted and normalised on the device within the step; `with
corruption`: half of each batch under the slowest corruption of those tried. `TFLOP/s`: the operations of convolutions and matrix
products at that speed; `of the peak`: {100:d} % is {first["peak"] / 1e12:.3g} TFLOP/s ({first["peak_text"]}). `outside the step`: 1 - time
of the compiled step run back to back / time of a step in the loop: gathering, mirroring, the host (below 0: noise of the machine).
`of a step`: time to corrupt half a batch by the slowest corruption / time of a step.

{table}

{targets(measured)}
"""


def machine(values):
    if values["platform"] == "cpu":
        return f"{values['devices']} CPU cores, {platform.machine().replace('_', '-')}"
    return f"{values['devices']} x {values['kind']}"


def targets(measured):
    """What was aimed at on one H200, with what was found, or how to find it."""
    lines = ["Targets on one H200 in bfloat16, `python -m benchmarks.train`:", ""]
    on_target = measured[0][1]["kind"].startswith("NVIDIA H200")
    rates = {(r["model"], r["image_size"]): r["batch_size"] / f["loop"] for r, f in measured if on_target}
    for (model, size), target in TARGETS.items():
        state = f"measured {rates[model, size]:,.0f}" if (model, size) in rates else "not yet measured"
        lines.append(f"- {model} at {size}: {target:,} images/s; {state}")
    shares = [
        f["corruption"] / f["step"]
        for r, f in measured
        if on_target and (r["model"], r["image_size"]) == ("resnet18", 224)
    ]
    state = f"measured {100 * shares[0]:.0f} %" if shares else "not yet measured"
    lines.append(
        f"- slowest ImageNet-C corruption, share of a resnet18 step at 224: {100 * OVERHEAD_TARGET:.0f} %; {state}"
    )
    return "\n".join(lines)


def run_row(row):
    """`train_row.measure` of a row, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.train_row", json.dumps(row)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"expected numbers of {row['model']}, found exit status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=parse_row, help="MODEL:SIZE:BATCH[:DTYPE]")
    parser.add_argument("--corruptions", nargs="+", default=[], help="tried for the slowest; default: ImageNet-C's 15")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a block of steps")
    parser.add_argument("--blocks", type=int, default=5, help="measured, of which the best counts")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.rows is None:
        arguments.rows = [parse_row(text) for text in ROWS["cpu" if _on_cpu() else "accelerator"]]
    options = {"corruption_names": arguments.corruptions, "seconds": arguments.seconds, "blocks": arguments.blocks}
    table, measured = [HEADER], []
    print(HEADER, flush=True)
    for row in arguments.rows:
        values = run_row(row | options)
        measured.append((row, values))
        table.append("| " + " | ".join(map(str, cells(row, values))) + " |")
        print(table[-1], flush=True)
        out = arguments.out or ROOT / "benchmarks" / "results" / f"train_{_slug(values)}.md"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(report("\n".join(table), measured))


def _on_cpu():
    """Asked in a process of its own: this one must not hold the device."""
    code = "import jax; print(jax.default_backend())"
    return subprocess.check_output([sys.executable, "-c", code], text=True).split()[-1] == "cpu"


def _slug(values):
    name = platform.machine() if values["platform"] == "cpu" else values["kind"]
    return "".join(c if c.isalnum() else "_" for c in name.lower())


if __name__ == "__main__":
    main()
