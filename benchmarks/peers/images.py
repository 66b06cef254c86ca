"""imagecorruptions-imaug, OpenCV and scikit-image in a separate Python, a process for each core: peer of benchmarks/speed.py.

    PYTHON benchmarks/peers/images.py IMAGES.npy

Answers {"name", "levels": one for each image} with the seconds of that work, [by the clock, CPU of all processes], or null where
no package has it. {"name", "file"} also writes an .npy file, uint8 [S, N, H, W, 3]: the corruption at "severities", else at 1 to 5,
every image and severity with its own seed.
"""

import functools
import importlib.metadata
import json
import multiprocessing
import os
import sys
import time
import warnings

import numpy as np

OWN_GENERATORS = ("glass_blur", "impulse_noise")  # they ignore NumPy's global seed
PACKAGES = ("imagecorruptions-imaug", "opencv-python-headless", "scikit-image")


@functools.cache
def equalizer():
    import cv2

    cv2.setNumThreads(1)
    return cv2.createCLAHE(2.0, (8, 8))


def clahe_channel(image):
    return equalizer().apply(np.ascontiguousarray(image[..., 1]))


def clahe(image):
    import cv2

    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    lab[..., 0] = equalizer().apply(np.ascontiguousarray(lab[..., 0]))
    return cv2.cvtColor(lab, cv2.COLOR_LAB2RGB)


def clahe_skimage(image):
    from skimage import exposure

    return exposure.equalize_adapthist(image)


def nlm(image):
    from skimage import restoration

    scaled = image / np.float32(255)
    sigma = float(restoration.estimate_sigma(scaled, channel_axis=-1, average_sigmas=True))
    settings = {"patch_size": 5, "patch_distance": 6, "h": 0.8 * sigma, "fast_mode": True, "channel_axis": -1}
    return restoration.denoise_nl_means(scaled, **settings)


ENHANCEMENTS = {function.__name__: function for function in (clahe_channel, clahe, clahe_skimage, nlm)}


def work(task):
    """CPU seconds of one image; None where the packages lack the work."""
    name, image, level = task
    warnings.simplefilter("ignore")
    try:
        if name in ENHANCEMENTS:
            start = time.process_time()
            ENHANCEMENTS[name](image)
        else:
            from imagecorruptions import corrupt, get_corruption_names

            if not name.startswith("imagenet_c/") or name.split("/")[1] not in get_corruption_names("all"):
                return None
            start = time.process_time()
            corrupt(image, corruption_name=name.split("/")[1], severity=int(level))
    except ImportError:
        return None
    return time.process_time() - start


def corrupted(task):
    from imagecorruptions import corrupt

    name, image, severity, seed = task
    warnings.simplefilter("ignore")
    np.random.seed(seed)
    return corrupt(image, corruption_name=name, severity=severity, **({"seed": seed} if name in OWN_GENERATORS else {}))


def write(pool, images, name, file, severities=(1, 2, 3, 4, 5)):
    """Corrupts all images at the severities; the file is complete or absent."""
    name = name.split("/")[1]
    tasks = [(name, image, severity, 5 * k + severity) for severity in severities for k, image in enumerate(images)]
    found = np.stack(pool.map(corrupted, tasks, chunksize=32))
    with open(f"{file}.tmp", "wb") as handle:
        np.save(handle, found.reshape(len(severities), *images.shape))
    os.replace(f"{file}.tmp", file)


def main():
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # the processes share the cores already
    images, cores = np.load(sys.argv[1]), len(os.sched_getaffinity(0))
    with multiprocessing.Pool(cores) as pool:
        installed = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
        found = [f"{name} {installed[name]}" for name in PACKAGES if name in installed]
        print(json.dumps({"version": f"{', '.join(found)}, {cores} processes"}), flush=True)
        for line in sys.stdin:
            request, start = json.loads(line), time.perf_counter()
            if "file" in request:
                write(pool, images, **{key: request[key] for key in ("name", "file", "severities") if key in request})
            tasks = [(request["name"], *task) for task in zip(images, request.get("levels", ()))]
            seconds = pool.map(work, tasks, chunksize=max(1, len(tasks) // (4 * cores)))
            wall = time.perf_counter() - start
            print(json.dumps(None if None in seconds else [wall, sum(seconds)]), flush=True)


if __name__ == "__main__":
    main()
