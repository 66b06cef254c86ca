"""torch-uncertainty in a separate Python, two threads: second peer of benchmarks/speed.py.

    PYTHON benchmarks/peers/tensors.py IMAGES.npy

Answers {"name", "levels": one for each image} with the seconds of that work, [by the clock, CPU of all threads], or null where the
package lacks it. {"name", "file"} writes an .npy file instead, uint8 [S, N, H, W, 3]: the corruption at "severities", else at 1 to 5, drawn from seed 0.
Images go from bytes to tensors and back within that time. Transforms that take a batch get all images
of a severity at once, the others an image at a time. The package retunes some severities (brightness, glass_blur) and
replaces some formulas, so its pixels are not those of ImageNet-C. Without the package the version is null.
"""

import functools
import importlib.metadata
import json
import sys
import time
import warnings

import numpy as np

THREADS = 2
NAMES = {"elastic_transform": "Elastic", "jpeg_compression": "JPEGCompression", "saturate": "Saturation"}


@functools.cache
def transform(name, level):
    """Makes the transform of an ImageNet-C name; None where there is none."""
    from torch_uncertainty.transforms import corruption

    kind = getattr(corruption, NAMES.get(name, name.title().replace("_", "")), None)
    return kind and kind(level)


def corrupted(images, levels, name):
    """Corrupts bytes [N, H, W, 3]; None where the package lacks the corruption."""
    import torch

    found = torch.empty(images.shape, dtype=torch.uint8)
    for level in sorted(set(levels)):
        places = [k for k, one in enumerate(levels) if one == level]
        try:
            function = transform(name, level)
        except ImportError:  # a package for this corruption is missing
            return None
        if function is None:
            return None
        tensors = torch.from_numpy(images[places]).permute(0, 3, 1, 2).float().div(255)
        results = function(tensors) if getattr(function, "batchable", False) else torch.stack([*map(function, tensors)])
        found[places] = results.mul(255).to(torch.uint8).permute(0, 2, 3, 1)
    return found


def main():
    warnings.simplefilter("ignore")
    images, version = np.load(sys.argv[1]), None
    try:
        import torch
        from torch_uncertainty.transforms import corruption  # noqa: F401

        torch.set_num_threads(THREADS)
        found = (f"{name} {importlib.metadata.version(name)}" for name in ("torch-uncertainty", "torch"))
        version = f"{', '.join(found)}, {THREADS} threads"
    except ImportError:
        pass
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        name, known = asked["name"].removeprefix("imagenet_c/"), asked["name"].startswith("imagenet_c/")
        if "file" in asked:
            torch.manual_seed(0)
            np.random.seed(0)
            levels = asked.get("severities", range(1, 6))
            found = [corrupted(images, [level] * len(images), name) for level in levels] if known else [None]
            there = all(one is not None for one in found)
            if there:
                np.save(asked["file"], torch.stack(found).numpy())
            print(json.dumps([0, 0] if there else None), flush=True)
            continue
        wall, cpu = time.perf_counter(), time.process_time()
        done = corrupted(images, [int(level) for level in asked["levels"]], name) if known else None
        spent = [time.perf_counter() - wall, time.process_time() - cpu]
        print(json.dumps(None if done is None else spent), flush=True)


if __name__ == "__main__":
    main()
