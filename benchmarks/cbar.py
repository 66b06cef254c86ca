"""CPU time per image of every C-bar candidate, with compile seconds, beside NumPy definitions.

    python -m benchmarks.cbar --size=224 --out=benchmarks/results/cbar_224.md
    python -m benchmarks.cbar --size=32 --out=benchmarks/results/cbar_32.md

The released code needs a NumPy below 1.24 and cannot be installed beside JAX. In its place stand
the definitions that our tests compare pixels with (`tests/reference/cbar/`, NumPy and SciPy in
float64, vectorised, one image at a time); the seconds that the authors' code took on one core are
given where they are known. Times are CPU seconds of all threads together, the least of several
repeats, which other work on the machine disturbs little; so a ratio is one of cores needed, and
above 1 we are faster. Compile seconds are those of a first call without JAX's cache on disk.
"""

import os
import platform
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from absl import app, flags
from matplotlib import colors

import corruptions
from runtime.files import write_atomically
from tests.reference.cbar import blur_definitions, definitions, warp_definitions
from tests.reference.photographs import photographs

_SIZE = flags.DEFINE_integer("size", 224, "Side of the square test images.", lower_bound=16)
_BATCH = flags.DEFINE_integer("batch", 0, "Images per call; 0 chooses by size.", lower_bound=0)
_ROUNDS = flags.DEFINE_integer("rounds", 6, "Timed rounds per candidate, levels 1, 4, 7, 10, 1, ...", lower_bound=1)
_OUT = flags.DEFINE_string("out", "", "Markdown file for the table; empty prints only.")

# Seconds of the released code for one image of 224 x 224 on one core of another machine.
RELEASED = {
    "caustic_refraction": 15,
    "fish_eye": 15,
    "sparkles": 13,
    "voronoi_noise": 12,
    "color_dither": 5,
    "caustic_noise": 5,
    "perlin_noise": 5,
    "pinch_and_twirl": 4,
    "plasma_noise": 3.4,
    "inverse_sparkles": 2.9,
}
SLOWEST = 5  # ratio that every candidate should reach


def hue_shift(image, params):
    """The definition without the loop over pixels that the tests' reference has."""
    hsv = colors.rgb_to_hsv(image / 255)
    hsv[..., 0] = (hsv[..., 0] + params["turns"]) % 1
    return np.clip(255 * colors.hsv_to_rgb(hsv), 0, 255).astype(np.uint8)


def definition(name):
    """(uint8 image, draws) -> uint8 image, in NumPy."""
    if name == "hue_shift":
        return hue_shift
    return next(getattr(m, name) for m in (definitions, blur_definitions, warp_definitions) if hasattr(m, name))


def cpu_seconds(function, *args):
    started = time.process_time()
    jax.block_until_ready(function(*args))
    return time.process_time() - started


def numpy_seconds(name, image, rounds):
    """CPU seconds of the definition for one image: see `_typical`."""
    times = []
    for turn in range(rounds):
        params = corruptions.get(name).sample(jax.random.key(turn), image.shape, _level(turn))
        params = {k: np.float64(v) if v.dtype == np.float32 else np.asarray(v) for k, v in params.items()}
        times.append(cpu_seconds(definition(name.split("/")[1]), image, params))
    return _typical(times)


def our_seconds(name, images, rounds):
    """(CPU seconds to trace and compile, CPU seconds for one image: see `_typical`)."""
    first = cpu_seconds(corruptions.corrupt, jax.random.key(0), images, name, 1)
    times = [
        cpu_seconds(corruptions.corrupt, jax.random.key(turn), images, name, _level(turn)) for turn in range(rounds)
    ]
    run = _typical(times)
    return max(0.0, first - run), run / len(images)


def _typical(times):
    """The median over levels of the least time of each level."""
    levels = {}
    for turn, seconds in enumerate(times):
        levels.setdefault(_level(turn), []).append(seconds)
    return statistics.median(min(of_level) for of_level in levels.values())


def _level(turn):
    return 1 + 3 * turn % 12


def _ratio(x):
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def summary(ratios, released, compiles):
    """Writes lines on how the candidates stand, from {name: ratio} and those to released
    seconds."""
    slow = [f"{name} ({_ratio(ratio)})" for name, ratio in ratios.items() if ratio < SLOWEST]
    lines = [
        f"Mean of the {len(ratios)} ratios to the NumPy definitions: {_ratio(statistics.mean(ratios.values()))}. "
        + (f"Less than {SLOWEST} times as fast: {', '.join(slow)}." if slow else f"None is below {SLOWEST}."),
    ]
    if released:
        mixed = [released.get(name, ratio) for name, ratio in ratios.items()]
        lines.append(
            f"Mean with the released code's seconds (another machine's) in place of ours for the {len(released)} candidates "
            f"where they are known: {_ratio(statistics.mean(mixed))}; the least of those ratios is "
            f"{_ratio(min(released.values()))}."
        )
    slowest = max(compiles, key=compiles.get)
    lines.append(f"Slowest to compile: {slowest}, {compiles[slowest]:.1f} CPU s.")
    return lines


def main(argv):
    del argv
    jax.config.update("jax_enable_compilation_cache", False)
    size = _SIZE.value
    batch = _BATCH.value or max(24, min(512, 2**21 // (size * size * 3)))
    load = os.getloadavg()[0]
    images = jnp.asarray(photographs(batch, size, size))
    rows, sums, ratios, released, compiles = [], [0.0, 0.0], {}, {}, {}
    for name in corruptions.names("cbar_candidates"):
        plain = name.split("/")[1]
        compiles[plain], ours = our_seconds(name, images, _ROUNDS.value)
        theirs = numpy_seconds(name, np.asarray(images[0]), _ROUNDS.value)
        sums[0], sums[1] = sums[0] + ours, sums[1] + theirs
        ratios[plain] = theirs / ours
        row = [plain, f"{compiles[plain]:.1f}", f"{ours * 1e3:.3f}", f"{theirs * 1e3:.2f}", _ratio(ratios[plain])]
        if size == 224:
            seconds = RELEASED.get(plain)
            if seconds:
                released[plain] = seconds / ours
            row += [f"{seconds:g}", _ratio(seconds / ours)] if seconds else ["", ""]
        rows.append(row)
        print(" | ".join(row), flush=True)
    rows.append(["sum", "", f"{sums[0] * 1e3:.2f}", f"{sums[1] * 1e3:.0f}", _ratio(sums[1] / sums[0])])
    header = ["corruption", "compile CPU s", "CPU ms/image", "NumPy CPU ms/image", "ratio"]
    if size == 224:
        rows[-1] += ["", ""]
        header += ["released s/image", "ratio"]
    title = (
        f"{size}x{size}, batch {batch}, {jax.devices()[0].platform}, {platform.machine()}, {os.cpu_count()} cores, JAX "
        f"{jax.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, Python {platform.python_version()}; load "
        f"average {load:.1f} before the run" + (" (shared with other work)" if load > 0.3 else "")
    )
    lines = [f"# C-bar candidates: {title}", "", *summary(ratios, released, compiles), ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    text = "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
    if _OUT.value:
        write_atomically(_OUT.value, text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    app.run(main)
