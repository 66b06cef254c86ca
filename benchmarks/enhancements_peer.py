"""The peer of benchmarks/enhancements.py in its own Python: OpenCV and scikit-image, one thread."""

import json
import sys
import time

import cv2
import numpy as np
import skimage
from skimage import exposure, restoration

EQUALIZER = cv2.createCLAHE(2.0, (8, 8))


def one_channel(image):
    return EQUALIZER.apply(np.ascontiguousarray(image[..., 1]))


def lightness(image):
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    lab[..., 0] = EQUALIZER.apply(np.ascontiguousarray(lab[..., 0]))
    return cv2.cvtColor(lab, cv2.COLOR_LAB2RGB)


def denoise(image):
    given = image / np.float32(255)
    sigma = float(restoration.estimate_sigma(given, channel_axis=-1, average_sigmas=True))
    settings = {"patch_size": 5, "patch_distance": 6, "h": 0.8 * sigma, "fast_mode": True, "channel_axis": -1}
    return restoration.denoise_nl_means(given, **settings)


WORK = {
    "clahe of one channel": one_channel,
    "clahe": lightness,
    "clahe_skimage": exposure.equalize_adapthist,
    "nlm": denoise,
}


def main():
    cv2.setNumThreads(1)
    images = np.load(sys.argv[1])
    for work in WORK.values():
        work(images[0])  # imports, warm-up
    print(f"OpenCV {cv2.__version__}, scikit-image {skimage.__version__}", flush=True)
    for line in sys.stdin:
        work = WORK[line.strip()]
        start = time.process_time()
        for image in images:
            work(image)
        print(json.dumps(1000 * (time.process_time() - start) / len(images)), flush=True)


if __name__ == "__main__":
    main()
