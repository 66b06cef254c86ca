"""Packs what a machine without network needs to measure itself: wheels, CIFAR-10, the checkout but docs/; at most 60 MB.

    python -m benchmarks.device.pack --tfds=TFDS --out=build/device

TFDS is a folder of tfds datasets that holds `cifar10`. The machine needs Linux on x86-64, Python 3.12 and JAX for its device,
with Flax, Optax, Orbax and Chex; packages that it has take precedence over the packed ones. Parts that are there already are
not fetched again. Prints the command to run there, which continues wherever it was cut.
"""

from runtime import command  # isort: skip

import pathlib
import subprocess
import sys
import zipfile

from absl import flags

from runtime import files
from runtime.artifacts import git_revision
from runtime.log import log

LIMIT = 60e6
PYTHON = "3.12"
WHEELS = """
absl-py array-record dm-pix dm-tree etils googleapis-common-protos immutabledict ml-collections pandas pillow promise protobuf
psutil python-dateutil six tensorflow-datasets tensorflow-metadata toml tqdm wrapt
"""
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64")
_RUN = """\
#!/usr/bin/env bash
# Measures this machine: bash run.sh --minutes=8 --out=DIR. The same command continues.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
python="${PYTHON:-python3.12}"
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' || { echo "expected Python 3.12, found $("$python" -V); PYTHON=PATH names another"; exit 1; }
"$python" -c 'import jax, flax, optax, orbax.checkpoint, chex' || { echo "expected JAX, Flax, Optax, Orbax and Chex in $python"; exit 1; }
to="${UNPACKED:-$here/unpacked}/REVISION"
if [ ! -e "$to/complete" ]; then
    mkdir -p "$to/checkout" "$to/packages" "$to/tfds"
    tar -xzf "$here/checkout-REVISION.tar.gz" -C "$to/checkout"
    for wheel in "$here"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$to/packages"; done
    "$python" -m zipfile -e "$here/cifar10.zip" "$to/tfds"
    touch "$to/complete"
fi
out=""
arguments=()
for argument in "$@"; do case "$argument" in --out=*) out="$(realpath -m "${argument#--out=}")" ;; *) arguments+=("$argument") ;; esac; done
[ -n "$out" ] || { echo "expected --out=DIR"; exit 1; }
cd "$to/checkout"
exec "$python" -c 'import runpy, sys
sys.path[:0], sys.path[len(sys.path):] = [""], [sys.argv.pop(1)]
runpy.run_module("benchmarks.device", run_name="__main__", alter_sys=True)' "$to/packages" "--data_dir=$to/tfds" "--out=$out" "${arguments[@]}"
"""


def checkout(folder: pathlib.Path, revision: str) -> None:
    """Packs the committed files but docs/, with their revision in a file REVISION."""
    path = folder / f"checkout-{revision[:12]}.tar.gz"
    for old in folder.glob("checkout-*.tar.gz"):
        if old != path:
            old.unlink()
    if not path.exists():
        committed = [f"--add-virtual-file=REVISION:{revision}", "HEAD", ".", ":(exclude)docs"]
        archive = ["git", "archive", "--format=tar.gz", *committed]
        files.write_atomically(path, subprocess.run(archive, check=True, capture_output=True).stdout)


def cifar10(folder: pathlib.Path, tfds: pathlib.Path) -> None:
    """Packs the folder cifar10 of tfds datasets; raises FileNotFoundError where there is none."""
    found = [path for path in sorted(tfds.glob("cifar10/**/*")) if path.is_file()]
    if not found:
        raise FileNotFoundError(f"expected a folder of tfds datasets with cifar10, found none in {tfds}")
    if (folder / "cifar10.zip").exists():
        return
    with files.writing(folder / "cifar10.zip") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in found:
            packed.write(path, path.relative_to(tfds))


def wheels(folder: pathlib.Path) -> None:
    """Fetches the missing wheels, or builds them from pure Python; raises RuntimeError where pip fails."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    target = ["--only-binary=:all:", f"--python-version={PYTHON}", *(f"--platform={name}" for name in _PLATFORMS)]
    for name in WHEELS.split():
        if list(folder.glob(f"{name.replace('-', '_')}-*.whl")):
            continue
        log.info("fetching %s", name)
        for way in (["download", *target, "-d"], ["wheel", "-w"]):
            done = subprocess.run([*pip, *way, folder, "--no-deps", name], capture_output=True, text=True)
            if not done.returncode:
                break
        if done.returncode or not list(folder.glob(f"{name.replace('-', '_')}-*.whl")):
            raise RuntimeError(f"expected a wheel of {name}, found an error of pip: {done.stderr.strip()[-300:]}")


def main(argv):
    given = command.given(argv, {"tfds": "DIR"})
    folder, revision = pathlib.Path(given.out), git_revision()
    if revision.endswith("+changes"):
        log.warning("files are changed; the pack has them as they are committed")
        revision = revision.removesuffix("+changes")
    cifar10(folder, pathlib.Path(given.tfds))
    checkout(folder, revision)
    wheels(folder / "wheels")
    files.write_atomically(folder / "run.sh", _RUN.replace("REVISION", revision[:12]))
    parts = [*folder.glob("*"), *folder.glob("wheels/*")]  # not the files that run.sh unpacked here
    sizes = {path: path.stat().st_size for path in parts if path.is_file()}
    if sum(sizes.values()) > LIMIT:
        largest = max(sizes, key=sizes.get)
        raise ValueError(
            f"expected at most {LIMIT / 1e6:.0f} MB, found {sum(sizes.values()) / 1e6:.0f} MB in {folder}, most of it in {largest.name}"
        )
    log.info("%s: %.0f MB. On the machine:", folder, sum(sizes.values()) / 1e6)
    print(f"bash {folder}/run.sh --minutes=8 --out=runs/device")


if __name__ == "__main__":
    flags.DEFINE_string("tfds", None, "Folder of tfds datasets with cifar10 (required).")
    flags.DEFINE_string("out", "build/device", "Folder to pack into.")
    command.run(main)
