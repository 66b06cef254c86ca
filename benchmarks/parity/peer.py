"""Makes the peer's images for errors.py: imagecorruptions-imaug, in its own Python.

    python benchmarks/parity/peer.py IMAGES.npy FOLDER NAME ...

IMAGES.npy is uint8 [N, H, W, 3]; for each corruption NAME writes FOLDER/NAME.npy, uint8 [5, N, H,
W, 3]. What is there already is not made again. Every image and severity has its own seed.
"""

import importlib.metadata
import multiprocessing
import os
import pathlib
import sys
import warnings

import numpy as np

_OWN_GENERATORS = ("glass_blur", "impulse_noise")  # they ignore NumPy's global seed


def _corrupt(task):
    from imagecorruptions import corrupt

    image, name, severity, seed = task
    warnings.simplefilter("ignore")
    np.random.seed(seed)
    seeded = {"seed": seed} if name in _OWN_GENERATORS else {}
    return corrupt(image, corruption_name=name, severity=severity, **seeded)


def main():
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # the processes share the cores already
    images, folder = np.load(sys.argv[1]), pathlib.Path(sys.argv[2])
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        for name in sys.argv[3:]:
            file = folder / f"{name}.npy"
            if file.exists():
                continue
            tasks = [
                (image, name, severity, 5 * k + severity) for severity in range(1, 6) for k, image in enumerate(images)
            ]
            corrupted = np.stack(pool.map(_corrupt, tasks, chunksize=32))
            aside = file.with_suffix(".tmp")
            with open(aside, "wb") as handle:
                np.save(handle, corrupted.reshape(5, *images.shape))
            aside.replace(file)
    print(importlib.metadata.version("imagecorruptions-imaug"))


if __name__ == "__main__":
    main()
