"""Error rates of one trained classifier on our images and on those of imagecorruptions-imaug."""

import hashlib
import pathlib
import subprocess
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict
from tqdm import tqdm

import corruptions
from data.dataset import Split
from evaluation import correctness, trained_models
from runtime import meshes
from runtime.workdirs import read_json
from training import study

# Where the peer is not the original, on images of 32x32. What is not named here is the same
# computation.
DEPARTURES = {
    "glass_blur": "same copies, its own random generator",
    "motion_blur": "sums in floats, without the original's 16-bit step; stops, without renormalising, where the motion "
    "leaves the image: dark at the higher severities",
    "zoom_blur": "no centring of the enlarged layers",
    "snow": "layer not centred, rounded instead of truncated, no 8-bit step before the blur",
    "frost": "six photographs, one of which the original never draws, enlarged by 1.1; ours: procedural textures",
    "fog": "fractal as large as the image (32); ours and the original's at these levels: a corner of 256",
    "elastic_transform": "another algorithm: no affine map, fields in proportion to the image, not in pixels of 244",
}


def peer_images(python, images, names, folder):
    """Makes the peer's images, where missing, in a folder of their own within `folder`.

    Returns:
      (version of the peer, {name: uint8 [5, N, H, W, 3]} for the unqualified names given).

    Raises:
      RuntimeError: the peer's process failed; the message ends with what it said.
    """
    folder = pathlib.Path(folder) / hashlib.sha256(images).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "clean.npy", images)
    script = pathlib.Path(__file__).with_name("peer.py")
    done = subprocess.run(
        [python, str(script), str(folder / "clean.npy"), str(folder), *names], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the peer's Python {python} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1], {name: np.load(folder / f"{name}.npy", "r") for name in names}


def first_images(workdir, number, data_dir):
    """(dataset, its first `number` test images as a Split) of a workdir of train.py."""
    config = ConfigDict(read_json(workdir / "config.json"))
    if data_dir:
        config.dataset.data_dir = data_dir
    dataset = study.load_data(config, meshes.data_mesh())[0]
    test = dataset.test
    return dataset, Split(test.images[:number], test.labels[:number], test.index[:number])


def error_rates(workdir, names, python, number, folder, data_dir=""):
    """Measures a model's error under the `imagenet` levels, on our and on the peer's images.

    The model is the standard one of the workdir if there is one.

    Args:
      workdir: a workdir of train.py (or overlap.py) on CIFAR-10 or another dataset of small images.
      names: qualified names.
      python: a Python with imagecorruptions-imaug.
      number: of test images.
      folder: where the peer's images are kept.

    Returns:
      A dictionary: `clean` (error, per cent), `model`, `peer` (version), `number`, and `rows`:
      {name: {"ours": [5], "peer": [5] (per cent), "difference": mean over severities of ours -
      peer, "se": its standard error over images}}.
    """
    workdir, mesh = pathlib.Path(workdir), meshes.data_mesh()
    dataset, split = first_images(workdir, number, data_dir)
    labels = jnp.asarray(split.labels)
    models = trained_models.read_models(workdir, dataset.num_classes, split.images.shape[1], mesh)
    trained, seed = min(models, key=lambda key: (key[0] != "standard", key))
    model = models[trained, seed]

    def wrong(images):
        return ~correctness.of_model(model, jnp.asarray(images), labels, 500, mesh)

    version, theirs = peer_images(python, np.asarray(split.images), [name.split("/")[1] for name in names], folder)
    rows = {}
    for name in tqdm(names, desc="errors", dynamic_ncols=True):
        key = jax.random.key(zlib.crc32(name.encode()))
        ours = np.stack(
            [
                wrong(corruptions.corrupt(key, jnp.asarray(split.images), name, severity, table="imagenet"))
                for severity in range(1, 6)
            ]
        )
        peer = np.stack([wrong(images) for images in theirs[name.split("/")[1]]])
        by_image = 100 * (ours.astype(float) - peer).mean(0)
        rows[name] = {
            "ours": (100 * ours.mean(1)).tolist(),
            "peer": (100 * peer.mean(1)).tolist(),
            "difference": float(by_image.mean()),
            "se": float(by_image.std(ddof=1) / np.sqrt(len(by_image))),
        }
    clean = 100 * float(wrong(split.images).mean())
    model_name = (
        f"{read_json(workdir / 'config.json')['model']['name']} trained on {dataset.name} ({trained}, seed {seed})"
    )
    return {"clean": clean, "model": model_name, "peer": version, "number": len(labels), "rows": rows}
