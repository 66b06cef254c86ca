"""The peer of benchmarks/corruptions.py in its own Python: imagecorruptions-imaug on every core."""

import importlib.metadata
import multiprocessing
import os
import sys
import time
import warnings

import numpy as np


def _work(task):
    from imagecorruptions import corrupt

    image, name, level = task
    warnings.simplefilter("ignore")
    return corrupt(image, corruption_name=name, severity=level).shape


def main():
    images = np.load(sys.argv[1])
    cores = len(os.sched_getaffinity(0))
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # the processes share the cores already
    from imagecorruptions import get_corruption_names

    known = set(get_corruption_names("all"))
    with multiprocessing.Pool(cores) as pool:
        pool.map(_work, [(images[0], name, 1) for name in known for _ in range(cores)], chunksize=1)  # imports, warm-up
        version = importlib.metadata.version("imagecorruptions-imaug")
        print(f"imagecorruptions-imaug {version}, {cores} processes", flush=True)
        for line in sys.stdin:
            name, level = line.split()
            if name not in known:
                print("none", flush=True)
                continue
            started = time.perf_counter()
            pool.map(
                _work, [(image, name, int(level)) for image in images], chunksize=max(1, len(images) // (4 * cores))
            )
            print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
