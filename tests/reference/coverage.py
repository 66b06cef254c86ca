"""The coverage study computed a second time, from the committed answers by NumPy alone: nothing of ours is imported.

An answer file `CONDITION.npz` holds for each `model|seed` one bit per test image, 1 where it is right (np.packbits). With
A[m,c] the accuracy of model m (row 0 standard, then the candidates) on condition c (column 0 clean), averaged over seeds:

    R[m,c] = A[m,c] / A[m,0],   T[i,j] = (R[i,j] - R[0,j]) / (R[j,j] - R[0,j]),   O[i,j] = (T[i,j] + T[j,i]) / 2
    CE[m,c] = 100 ((1 - A[m,c]) - (1 - A[m,0])) / ((1 - A[0,c]) - (1 - A[0,0]))
"""

import pathlib

import numpy as np

NUMBER = 10_000


def right_answers(folder: pathlib.Path, names: list[str], seeds: tuple[int, ...]) -> np.ndarray:
    """Reads bool [seeds, 1 + n, 1 + n, N] of the standard model and those trained with each of n candidates."""
    found = np.empty((len(seeds), 1 + len(names), 1 + len(names), NUMBER), bool)
    stems = ["clean-0", *(name.replace("/", ".") + "-random" for name in names)]
    for column, stem in enumerate(stems):
        with np.load(folder / f"{stem}.npz") as file:
            for s, seed in enumerate(seeds):
                for row, model in enumerate(["standard", *names]):
                    found[s, row, column] = np.unpackbits(file[f"{model}|{seed}"], count=NUMBER)
    return found


def accuracies(folder: pathlib.Path, model: str, conditions: list[str], seeds: tuple[int, ...]) -> np.ndarray:
    """Reads the accuracies of one model, averaged over seeds, [conditions]."""
    found = []
    for name in conditions:
        stem = "clean-0" if name == "clean" else name.replace("/", ".") + "-random"
        with np.load(folder / f"{stem}.npz") as file:
            found.append(np.mean([np.unpackbits(file[f"{model}|{seed}"], count=NUMBER).mean() for seed in seeds]))
    return np.array(found)


def transfers(accuracy: np.ndarray) -> np.ndarray:
    """Computes T [n, n] from accuracies [1 + n, 1 + n]."""
    robust = accuracy[:, 1:] / accuracy[:, :1]
    gained = robust[1:] - robust[0]
    return gained / np.diag(gained)


def overlaps(accuracy: np.ndarray) -> np.ndarray:
    """Computes the unclipped O [..., n, n] from accuracies [1 + n, 1 + n]."""
    directed = transfers(accuracy)
    return (directed + directed.T) / 2


def mean_relative_ce(accuracy: np.ndarray, members: list[int]) -> np.ndarray:
    """Averages the relative CE over the members, for the model of each, [members]; they index the candidates."""
    at = 1 + np.array(members)
    lost = accuracy[at, :1] - accuracy[np.ix_(at, at)]
    return (100 * lost / (accuracy[0, 0] - accuracy[0, at])).mean(axis=1)


def mean_robustness(accuracy: np.ndarray, members: list[int]) -> np.ndarray:
    """Averages R over the members, for the model of each, [members]."""
    at = 1 + np.array(members)
    return (accuracy[np.ix_(at, at)] / accuracy[at, :1]).mean(axis=1)


def resampled(bits: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Draws test images with replacement: accuracies averaged over seeds, [number, 1 + n, 1 + n]."""
    rng = np.random.default_rng(seed)
    _, models, conditions, images = bits.shape
    weights = rng.multinomial(images, np.full(images, 1 / images), size=number).astype(np.float32)
    flat = bits.mean(axis=0, dtype=np.float32).reshape(-1, images)
    return (weights @ flat.T / images).reshape(number, models, conditions).astype(float)


def covered(unclipped: np.ndarray, members: list[int], margin: float) -> int:
    """Counts the candidates outside of a benchmark whose largest overlap with a member is above a margin."""
    outside = [k for k in range(len(unclipped)) if k not in members]
    return int((unclipped[np.ix_(outside, members)].max(axis=1) > margin).sum())
