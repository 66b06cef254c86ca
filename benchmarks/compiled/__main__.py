"""Compiles programs for a chip that is not there and tabulates what its compiler says of them.

    python -m benchmarks.compiled --target=tpu_v5e                                   # all corruptions
    python -m benchmarks.compiled --target=tpu_v5e --size=32 --batch=1024
    python -m benchmarks.compiled --target=tpu_v5e --names imagenet_c/snow           # these anew, the rest stays
    python -m benchmarks.compiled --target=tpu_v5e --programs=training               # or schemes, evaluation
    JAX_OPTIMIZATION_LEVEL=O1 python -m benchmarks.compiled --target=tpu_v5e         # compiled in less time

Writes benchmarks/results/compiled_TARGET_PROGRAMS[_SIZE[_batchBATCH]][_LEVEL].md after each program; the same
command continues a run that was stopped.
"""

import argparse
import pathlib

import jax

from benchmarks.compiled import programs, table
from evaluation.planning.asked import counted
from runtime.chips import costs, hlo
from runtime.chips.targets import TARGETS

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "results"
SIZED = ("corruptions", "schemes")
BATCH = 128


def measure(target, kind, name, size, batch):
    """Compiles one program: the cells of its row."""
    program = programs.build(kind, name, size, batch, target.devices)
    try:
        compiled, seconds = target.compile(target.lower(program.function, *program.args, **program.static))
    except jax.errors.JaxRuntimeError as error:  # does not fit, or an operation that the chip lacks
        return table.failed(error)
    found = costs.of_program(hlo.parse(compiled.as_text()))
    temporaries = compiled.memory_analysis().temp_size_in_bytes
    if target.clock:
        flops = compiled.cost_analysis().get("flops", 0.0)  # of a loop's body once: of one batch
    else:
        with target.pretended():
            of_chip = f"{name.rpartition(':')[0]}:1x1" if kind in programs.ROWS else name
            flops, _ = counted(programs.build(kind, of_chip, size, batch, lambda chips: jax.devices("cpu")[:chips]))
    pixels = size**2 if kind in SIZED else 0
    return table.row(target, found, seconds, temporaries, flops, program.images, program.batches, pixels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument("--programs", choices=(*SIZED, *programs.ROWS), default="corruptions")
    parser.add_argument("--size", type=int, default=224, help="of corruptions' and schemes' images")
    parser.add_argument("--batch", type=int, default=BATCH, help="of corruptions and schemes")
    parser.add_argument("--names", nargs="+", default=[], help="compiled anew; default: what the table lacks")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    target, sized = TARGETS[given.target], given.programs in SIZED
    shape = f", {given.size}x{given.size}, batch {given.batch}" if sized else ""
    level = jax.config.jax_optimization_level.replace("UNKNOWN", "")
    shape += f", optimization level {level}" if level else ""
    title = (
        f"{given.programs.capitalize()} compiled for {target.kind}{shape}, JAX {jax.__version__}, {target.compiler()}"
    )
    command = f"JAX_OPTIMIZATION_LEVEL={level} " if level else ""
    command += f"python -m benchmarks.compiled --target={given.target} --programs={given.programs}"
    command += f" --size={given.size} --batch={given.batch}" if sized else ""
    name = f"compiled_{given.target}_{given.programs}" + (f"_{given.size}" if sized else "")
    name += f"_batch{given.batch}" if sized and given.batch != BATCH else ""
    name += f"_{level}" if level else ""
    path = given.out or RESULTS / f"{name}.md"
    rows, known = table.read(path, title), programs.names(given.programs, target.topologies)
    if given.names and not rows and path.exists():
        parser.error(
            f"expected {path} to begin with '# {title}', and the columns of today, found another table; --names adds to none of others"
        )
    bars = table.BARS.get((given.target, given.size, given.batch)) if given.programs == "corruptions" else None
    for name in given.names or [name for name in known if name not in rows]:
        rows[name] = measure(target, given.programs, name, given.size, given.batch)
        print(name, *rows[name], sep=" | ", flush=True)
        rows = {key: rows[key] for key in sorted(rows, key=lambda key: (*known, key).index(key))}
        table.write(path, title, command, target, rows, bars)


if __name__ == "__main__":
    main()
