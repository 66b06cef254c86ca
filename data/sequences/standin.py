"""Sequences of the embedded dataset's images, so that tools.flips runs without ImageNet-P.

    python -m data.sequences.standin --out=DIR [--number=20]

Writes gaussian_noise.npy (standard deviation .02, anew in each frame but the first, which is clean),
brightness.npy (.015 more from frame to frame, none in the middle) and translate.npy (a pixel more
from frame to frame, wrapped around), 31 frames each: in the spirit of CIFAR-10-P, and not its images.
"""

import argparse
from pathlib import Path

import numpy as np

import data
from runtime import files

FRAMES = 31


def sequences(images: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Makes {perturbation: uint8 [N, 31, H, W, 3]} of uint8 images [N, H, W, 3]."""
    clean = np.repeat(images[:, None], FRAMES, axis=1).astype(np.float32)
    noise = np.random.default_rng(seed).normal(size=clean.shape).astype(np.float32)
    noise[:, 0] = 0
    steps = np.arange(FRAMES) - FRAMES // 2
    made = {"gaussian_noise": clean + 255 * 0.02 * noise}
    made["brightness"] = clean + 255 * 0.015 * steps[:, None, None, None].astype(np.float32)
    made["translate"] = np.stack([np.roll(clean[:, i], step, axis=2) for i, step in enumerate(steps)], axis=1)
    return {name: np.round(np.clip(values, 0, 255)).astype(np.uint8) for name, values in made.items()}


def write(folder: Path, made: dict[str, np.ndarray]) -> None:
    """Writes an array for each perturbation."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in made.items():
        files.write_array(folder / f"{name}.npy", array)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the sequences")
    parser.add_argument("--number", type=int, default=20, help="of sequences for each perturbation")
    given = parser.parse_args()
    images = data.load("shapes", train_limit=1, test_limit=given.number).test.images
    write(given.out, sequences(np.asarray(images)))
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
