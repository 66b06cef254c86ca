"""Finds which corruptions other compilers take, and whether their programs give our pixels.

    pip install -e '.[study]' iree-base-compiler iree-base-runtime jax2onnx onnxruntime
    python -m benchmarks.export --out=benchmarks/results/export.md

For each corruption at its middle severity two programs are handed over: `corrupt`, a batch of two uint8 images with the raw
words of a key, and `apply`, one float image with the random parameters that `sample` returned. IREE compiles the StableHLO of
`jax.export` for a CPU; jax2onnx converts the function, traced in `corruptions.portable`, and ONNX Runtime runs it. Each attempt
has a process of its own, which may crash or take too long. A row is written when it is measured; the same command continues.
"""

from runtime import command  # isort: skip

import concurrent.futures
import importlib.metadata
import multiprocessing
import platform
import re

import jax
import numpy as np
from absl import flags

import corruptions
from benchmarks import timing
from tests.reference.photographs import photographs

PACKAGES = ("jax", "iree-base-compiler", "jax2onnx", "onnxruntime")
HEADER = ("corruption", "IREE `corrupt`", "IREE `apply`", "jax2onnx `corrupt`", "jax2onnx `apply`")
ATTEMPTS = tuple((compiler, form) for compiler in ("iree", "onnx") for form in ("corrupt", "apply"))
YES = "yes"
_STRAY = 1e-3  # share of values that may differ by more than one 8-bit level
_KEY = jax.random.key(0)


def program(name: str, form: str, side: int):
    """Makes (function of arrays, its arguments, scale of its result in 8-bit levels)."""
    corruption = corruptions.get(name)
    corruptions.laion_c.use_bank(photographs(8, 64, 64))
    severities = corruptions.severities(name)
    severity = severities[len(severities) // 2]
    images = photographs(2, side, side)
    if form == "corrupt":
        key = jax.random.key_data(_KEY)
        return (lambda key, x: corruptions.corrupt(jax.random.wrap_key_data(key), x, name, severity)), (key, images), 1
    image = images[0].astype(np.float32) / 255
    leaves, tree = jax.tree.flatten(corruption.sample(_KEY, image.shape, severity))
    return (lambda x, *leaves: corruption.apply(x, jax.tree.unflatten(tree, leaves))), (image, *leaves), 255


def by_iree(function, arguments):
    """Compiles with IREE for a CPU, and runs the program."""
    from iree import compiler, runtime

    exported = jax.export.export(jax.jit(function), platforms=("cpu",))(*arguments)
    binary = compiler.compile_str(
        exported.mlir_module(),
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    context = runtime.SystemContext(config=runtime.Config("local-task"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, binary))
    module = list(context.modules.values())[-1]
    return module["main"](*map(np.asarray, arguments)).to_host()


def by_onnx(function, arguments):
    """Converts with jax2onnx, and runs the model in ONNX Runtime."""
    import jax2onnx
    import onnxruntime

    shapes = [jax.ShapeDtypeStruct(np.shape(array), np.asarray(array).dtype) for array in arguments]
    with corruptions.portable():
        model = jax2onnx.to_onnx(function, inputs=shapes)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    inputs = zip((one.name for one in session.get_inputs()), map(np.asarray, arguments), strict=True)
    return session.run(None, dict(inputs))[0]


def attempt(name: str, compiler: str, form: str, side: int) -> str:
    """Hands a program over: `yes`, by how much its result differs, or the reason why there is none."""
    function, arguments, scale = program(name, form, side)
    expected = np.asarray(jax.jit(function)(*arguments)).astype(np.float64)
    try:
        found = {"iree": by_iree, "onnx": by_onnx}[compiler](function, arguments)
    except Exception as error:  # noqa: BLE001 - the compilers have errors of many kinds
        return reason(f"{type(error).__name__}: {error}")
    difference = np.abs(found.astype(np.float64) - expected) * scale
    if not (difference > 1.001).mean() <= _STRAY:  # NaN differs
        return (
            f"{100 * (difference > 1.001).mean():.0f} % of values differ, by up to {np.nanmax(difference):.0f} levels"
        )
    return YES


def reason(text: str) -> str:
    """Shortens an error of a compiler to what it does not take."""
    for pattern in (
        r"primitive '?\"?(\w+)",
        r"failed to legalize operation '([\w.]+)'",
        r"error: ('?[^\n]{0,90})",
        r"([^\n]{0,90})",
    ):
        if match := re.search(pattern, text):
            return match[1].replace("|", "/").strip()
    return "?"


class Workers:
    """A process that makes attempts, and a new one after a crash or a time-out."""

    def __init__(self, seconds: int):
        self._seconds, self._pool = seconds, None

    def __call__(self, *given) -> str:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        try:
            return self._pool.submit(attempt, *given).result(self._seconds)
        except concurrent.futures.TimeoutError:
            return self._end(f"more than {self._seconds} s")
        except concurrent.futures.BrokenExecutor:
            return self._end("crash")

    def _end(self, text):
        for process in self._pool._processes.values():
            process.kill()
        self._pool, pool = None, self._pool
        pool.shutdown(wait=False, cancel_futures=True)
        return text


def main(argv):
    given = command.given(argv)
    names, workers = given.names or corruptions.names(), Workers(given.seconds)
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES)
    top = (
        f"# Corruptions in other compilers\n\n{versions}; Python {platform.python_version()}, {timing.processor()}. Images of {given.size} pixels, "
        f"middle severity. `yes`: all values but .1 % are within one 8-bit level of ours; else what the compiler does not take, or by how much "
        f"its program differs.\n"
    )
    rows = timing.continued(
        given.out, top, HEADER, names, lambda name: [workers(name, *one, given.size) for one in ATTEMPTS]
    )
    for column, title in enumerate(HEADER[1:], 1):
        print(f"{title}: {sum(row[column] == YES for row in rows)} of {len(rows)}")


if __name__ == "__main__":
    flags.DEFINE_list("names", [], "Corruptions; empty for all.")
    flags.DEFINE_integer("size", 32, "Side of the images.", lower_bound=16)
    flags.DEFINE_integer("seconds", 120, "Limit of an attempt.", lower_bound=1)
    flags.DEFINE_string("out", "", "Markdown file to write, or to continue; empty prints only.")
    command.run(main)
