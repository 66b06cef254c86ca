"""Installs the wheel in an empty environment outside of the checkout and uses it there: `make release`.

README's first example, `corruptions.evaluate` and the writer of ImageNet-C run with the wheel, jax and numpy alone.
"""

import pathlib
import subprocess
import sys
import tempfile

import corruptions
from tests.pages import ROOT

USE = """
import importlib.util, pathlib, subprocess, sys
import numpy as np

unwanted = [name for name in ("flax", "PIL", "grain", "pandas", "tqdm", "data") if importlib.util.find_spec(name)]
assert not unwanted, f"expected an empty environment, found {unwanted}"
images = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3)).astype(np.uint8)
image, photo, labels = images[0] / np.float32(255), images[0], np.arange(8) % 2
exec(pathlib.Path("example.py").read_text())  # README's
assert pathlib.Path(corruptions.__file__).is_relative_to(sys.prefix), corruptions.__file__

predict = lambda images: images.mean((1, 2))[:, :2]
counts = corruptions.evaluate(predict, images, labels, corruptions="imagenet_c", batch_size=8, path="mine")
assert len(counts) == 76 and pathlib.Path("mine/errors.csv").is_file()
print(f"corruptions {corruptions.__version__}: 75 conditions, mean error {corruptions.mean_error(counts):.2f}")

np.savez("images.npz", images=images, labels=labels)
write = ["-m", "corruptions.write", "--source=images.npz", "--layout=npy", "--out=ImageNet-C"]
subprocess.run([sys.executable, *write], check=True)
written = sorted(path.stem for path in pathlib.Path("ImageNet-C").rglob("*.npy"))
assert {"fog", "jpeg_compression", "labels"} <= set(written) and len(written) == 20, written
print("written:", *written)
"""


def main(wheel: pathlib.Path) -> None:
    """Makes the environment in a folder of its own and runs `USE` there."""
    readme = (ROOT / "README.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/environment/bin/python"
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "--python", sys.executable, f"{folder}/environment"], check=True)
        subprocess.run([*uv, "pip", "install", "-q", "--python", python, str(wheel)], check=True)
        (pathlib.Path(folder) / "example.py").write_text(readme.split("```python\n")[1].split("```")[0])
        (pathlib.Path(folder) / "use.py").write_text(USE)
        subprocess.run([python, "-I", "use.py"], cwd=folder, check=True)


if __name__ == "__main__":
    main((ROOT / f"dist/jax_corruptions-{corruptions.__version__}-py3-none-any.whl").resolve())
