"""Images per second of a training step on a CPU, beside PyTorch and the physical floor.

    python benchmarks/train_cpu.py --peer-python=PATH --threads 2 1 --out=benchmarks/results/train_cpu.md

A step is forward, backward and SGD with momentum and weight decay, on random uint8 images already
in memory; ours runs `training.steps.train_block` (lax.scan over the steps, donated state), the peer
is torch_peer.py in both memory layouts. The two run in turn, each in a process of its own, and
medians over rounds are compared. Two clocks: `wall`, and `cpu`, the seconds all threads of the
process were running. On a machine shared with others only `cpu` with one thread is meaningful:
waiting OpenMP threads of the peer spin, which `cpu` counts with two.

Floor: the floating-point operations per image (forward, input and weight gradients of every
convolution but the first's input gradient), divided by the speed of a 2048 x 2048 float32 matrix
product on the same threads.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ("small_resnet", "cifar_resnet18", "wrn_40_2")


class Worker:
    """A child process that answers JSON lines with JSON lines."""

    def __init__(self, command, threads):
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            ["taskset", "-c", cores, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.hello = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"expected an answer of {self.process.args}, found exit code {self.process.wait()}")
        return json.loads(line)

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve():
    """Our side of the protocol of torch_peer.py, and {"matmul": side}, {"describe": model}."""
    import jax
    import jax.numpy as jnp

    from benchmarks.timing import training_flops

    print(json.dumps({"jax": jax.__version__}), flush=True)
    product = jax.jit(lambda a: a @ a)
    blocks = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "matmul" in request:
            matrix = jnp.ones((request["matmul"],) * 2)
            work = lambda matrix=matrix: jax.block_until_ready(product(matrix))  # noqa: E731
        elif "describe" in request:
            print(json.dumps({"flops": training_flops(request["describe"])}), flush=True)
            continue
        else:
            key = request["model"], request["batch"], request["steps"], request.get("conv", "auto")
            if key not in blocks:
                blocks = {key: training_block(*key)}  # memory for one network at a time
                blocks[key]()
            work = blocks[key]
        if request.get("warm"):
            work()
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        answer = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(answer | {"compile": getattr(work, "compile", None)}), flush=True)


def training_block(name, batch, steps, conv):
    """Makes a callable that trains `steps` steps; its `.compile` is the seconds of compilation."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import nnx

    import models
    from training.states import initial_state
    from training.steps import train_block

    graphdef, params, rest = nnx.split(models.build(name, 10, dtype="float32", conv=conv), nnx.Param, ...)
    optimizer = optax.chain(optax.add_decayed_weights(5e-4), optax.sgd(0.1, momentum=0.9))
    rng = np.random.default_rng(0)
    images = jnp.asarray(rng.integers(0, 256, (steps, batch, 32, 32, 3)).astype(np.uint8))
    labels = jnp.asarray(rng.integers(0, 10, (steps, batch)).astype(np.int32))
    state, key = initial_state(params, rest, optimizer), jax.random.key(0)
    start, cpu = time.perf_counter(), time.process_time()
    program = jax.jit(train_block, static_argnums=(0, 1), donate_argnums=2)
    compiled = program.lower(graphdef, optimizer, state, images, labels, key).compile()
    seconds = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}

    def work():
        nonlocal state
        state, _ = jax.block_until_ready(compiled(state, images, labels, key))

    work.compile = seconds
    return work


def compare(ours, peer, name, batch, rounds, steps):
    """Measures {side: {clock: images / s}}, medians of alternating rounds, and seconds to
    compile."""
    request = {"model": name, "batch": batch, "steps": steps}
    sides = {"ours": (ours, {})}
    if peer:
        sides |= {"torch NCHW": (peer, {"channels_last": False}), "torch NHWC": (peer, {"channels_last": True})}
    times = {side: [] for side in sides}
    for _ in range(rounds):
        for side, (worker, extra) in sides.items():
            times[side].append(worker.ask(**request, **extra))
    speed = {
        side: {clock: steps * batch / statistics.median(t[clock] for t in answers) for clock in ("wall", "cpu")}
        for side, answers in times.items()
    }
    return speed, times["ours"][0]["compile"]


def rows(threads, arguments):
    """Measures everything with a number of threads; yields lines of the table."""
    ours = Worker([sys.executable, __file__, "--serve"], threads)
    peer = None
    if arguments.peer_python:
        script = str(ROOT / "benchmarks" / "torch_peer.py")
        peer = Worker([arguments.peer_python, script, f"--threads={threads}"], threads)
    for name in arguments.models:
        flops = ours.ask(describe=name)["flops"]
        for batch in arguments.batches:
            steps = max(1, round(arguments.gigaflops * 1e9 / (flops * batch)))
            speed, compiled = compare(ours, peer, name, batch, arguments.rounds, steps)
            product = min(ours.ask(matmul=2048, warm=True)["cpu"] for _ in range(5)) / threads
            floor = 2 * 2048**3 / product / flops
            cells = [name, batch, threads, f"{speed['ours']['wall']:.0f}", f"{speed['ours']['cpu'] * threads:.0f}"]
            if peer:
                best = {c: max(s[c] for side, s in speed.items() if side != "ours") for c in ("wall", "cpu")}
                cells += [f"{best['wall']:.0f}", f"{best['cpu'] * threads:.0f}"]
                cells += [f"{speed['ours'][clock] / best[clock]:.2f}" for clock in ("wall", "cpu")]
            else:
                cells += ["-"] * 4
            cells += [f"{flops / 1e6:.0f}", f"{floor:.0f}", f"{compiled['wall']:.1f} / {compiled['cpu']:.1f}"]
            yield "| " + " | ".join(map(str, cells)) + " |"
    ours.close()
    if peer:
        peer.close()


HEADER = """| model | batch | threads | ours, wall | ours, cpu | torch, wall | torch, cpu | ratio, wall | ratio, cpu \
| MFLOP/image | floor | compile, wall / cpu s |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--batches", nargs="+", type=int, default=(128, 256))
    parser.add_argument("--threads", nargs="+", type=int, default=(len(os.sched_getaffinity(0)),))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigaflops", type=float, default=500, help="work of one measurement")
    parser.add_argument("--peer-python", help="a Python with torch; default: this one, if it has torch")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve()
    if arguments.peer_python is None and importlib.util.find_spec("torch"):
        arguments.peer_python = sys.executable
    lines = [HEADER]
    print(HEADER, flush=True)
    for threads in arguments.threads:
        for line in rows(threads, arguments):
            print(line, flush=True)
            lines.append(line)
            if arguments.out:  # after each row: a run cut short leaves what it measured
                arguments.out.parent.mkdir(parents=True, exist_ok=True)
                arguments.out.write_text(report(lines))


def processor():
    """The name of the CPU, of Linux."""
    description = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in description if line.startswith("model name")), "unknown")


def report(lines):
    """The table with what is needed to read it: machine, versions, meaning of the columns."""
    found = [f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "flax")]
    versions = [f"Python {platform.python_version()}", *found]
    load = os.getloadavg()[1]
    return (
        f"""# Training on CPU, images per second

Generated by `python {" ".join(pathlib.Path(a).name if a.endswith(".py") else a for a in sys.argv if "peer-python" not in a)}`
on {processor()}, {os.cpu_count()} cores, load average {load:.1f} (others at work: read the ratios), {", ".join(versions)}.
`wall` and `cpu`: images per second of the clock, and per second of all cores in use (cpu seconds / threads). `ratio`:
ours / PyTorch in its faster memory layout; above 1 we are faster. `floor`: images per second if the convolutions ran
at the speed of a 2048 x 2048 matrix product and everything else were free.

"""
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
