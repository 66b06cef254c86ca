"""Rows of `refusals_test.py`, for arguments that single corruptions refuse."""

import functools

import jax
import numpy as np

import corruptions
from corruptions import camera, noc, optics
from corruptions.core.errors import MissingAssets, Refused, RefusedType
from corruptions.laion_c import superclass_scores
from tests.reference.photographs import photographs

KEY = jax.random.key(0)
IMAGES = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
corrupt = functools.partial(corruptions.corrupt, KEY)
lens = functools.partial(optics.lens, "x")
RIG = np.ones((2, 3, 32, 32, 3), np.uint8)


def sampled(corruption, shape=(32, 32, 3), severity=None, **options):
    return corruption.sample(KEY, shape, severity, **options)


def tiled(**options):
    corruptions.laion_c.use_bank(photographs(3, 16, 16), side=4)
    return corrupt(np.zeros((1, 48, 48, 3), np.uint8), "laion_c/mosaic", 1, **options)


NAN, LOGITS = float("nan"), np.zeros((1, 1000))
OF_MEMBERS = [
    (lambda: sampled(noc.border, grey=2), Refused, "grey", "2", "grey=None"),
    (lambda: sampled(noc.gaussian, half_normal="yes"), ValueError, "half_normal"),
    (lambda: sampled(noc.rain, severity=1.5), Refused, "severity", 1.5, "fraction"),
    (lambda: noc.ranges((32,)), Refused, "shape", (32,), "image shape"),
    (lambda: sampled(corruptions.cbar.lines, severity=1, table="tiny"),
     Refused, "table", "'tiny'", "a severity table among cifar, imagenet, by_size"),
    (lambda: sampled(corruptions.cbar.pinch_and_twirl, severity=1, table="tiny"),
     Refused, "table", "'tiny'", "a severity table among cifar, imagenet, by_size"),
    (lambda: corruptions.cbar.table_for((32, 32, 3), "celeba"),
     Refused, "table", "'celeba'", "among cifar, imagenet, by_size"),
    (lambda: corruptions.imagenet_c.table_for((32, 32, 3), "celeba"),
     Refused, "table", "'celeba'", "among cifar, tiny, imagenet, inception, by_size"),
    (lambda: corrupt(IMAGES, "laion_c/glitched", 1, mode="fresh"),
     ValueError, "mode='release' or 'random', found 'fresh'"),
    (lambda: tiled(bank="0" * 64), MissingAssets, "bank", "none of digest 0000000000000000", "read one"),
    (lambda: tiled(table="tiny"), Refused, "table", "'tiny'", "table among cifar, imagenet, by_size"),
    (lambda: tiled(), ValueError, "at least 16x16 pixels for tiles of that side, found 4x4; read it again with use_bank"),
    (lambda: superclass_scores(LOGITS, "max"), ValueError, "reduce='mean' or 'sum', found 'max'"),
    (lambda: superclass_scores(LOGITS[:, :100]), ValueError, "up to 954, found 100 logits"),
    (lambda: superclass_scores(LOGITS[:, :3], "sum", {"a": (0, 1), "b": ()}),
     ValueError, "members of every class, found none of b"),
    (lambda: camera.camera_crash(KEY, RIG[0], 2), Refused, "images", (3, 32, 32, 3), "(number, cameras, height, width, channels)"),
    (lambda: camera.frame_lost(KEY, RIG[:, :0], 2), Refused, "images", (2, 0, 32, 32, 3), "at least one camera"),
    (lambda: camera.camera_crash(KEY, RIG, 6), ValueError, "expected a severity level 1..5, found 6"),
    (lambda: camera.camera_crash(KEY, RIG, 5, replace=False), ValueError, "at most 3 different cameras"),
    (lambda: camera.camera_crash(KEY, RIG * 1.0, 4, value_range=(-1, 0)),
     Refused, "images", "values from 1 to 1", "values in value_range=(-1, 0)"),
    (lambda: camera.frame_lost(KEY, RIG * 1.0, 4, value_range=(-1, 0)),
     Refused, "images", "values from 1 to 1", "values in value_range=(-1, 0)"),
    (lambda: camera.camera_crash(KEY, RIG, 4, value_range=(-1, 1)),
     RefusedType, "images", "uint8", "uint8 images go without it"),
    (lambda: camera.frame_lost(KEY, RIG, 4, value_range=(-1, 1)),
     RefusedType, "images", "uint8", "uint8 images go without it"),
    (lambda: lens([{37: 1.0}]), ValueError, "expected Zernike numbers 0 to 36 of the Fringe set, found 37"),
    (lambda: lens([{-1: 1.0}]), ValueError, "found -1"),
    (lambda: lens([{3.5: 1.0}]), ValueError, "found 3.5"),
    (lambda: lens([{3: NAN}]), ValueError, "expected finite Zernike coefficients"),
    (lambda: lens([{3: 1.0}], q=0.0), ValueError, "expected a positive q in pixels, found"),
    (lambda: optics.psf({}, 0.128), ValueError, "does not repeat within 25 pixels, 196 or more with q=0.128, found 96"),
    (lambda: lens([{3: 1.0}], q=1e-3), ValueError, "25000 or more with q=0.001, found 1024"),
    (lambda: lens([{3: 1.0}], size=24), ValueError, "expected an odd size in pixels, found 24"),
    (lambda: lens([{3: 1.0}], size=33), ValueError, "size up to 31"),
    (lambda: lens([]), ValueError, "at least one severity"),
    (lambda: lens([{3: 1.0}], q=(1.0, 2.0)), ValueError, "one or three channels"),
    (lambda: sampled(optics.coma, severity=1, kernel=2), Refused, "kernel", "2", "kernel=None or one of 0 to 1"),
    (lambda: sampled(optics.coma, severity=1, border="black"), Refused, "border", "'black'", "border='reflect' or"),
    (lambda: sampled(optics.coma, severity=6), Refused, "severity", 6, "a severity level 1"),
]  # fmt: skip
RANGES = [
    ("border", (46, 9), "smaller to the greater"),
    ("quantization", (3, 8), "greater .mild. to the smaller"),
    ("border", (1.5, 9), "whole numbers"),
    ("border", (1, 200), r"within \[0, 112\] \(pixels\) for images of 224x224"),
    ("gaussian", (0.1, NAN), r"within \[0.0, 1.0\]"),
    ("hue", (0.1, 0.7), r"within \[0.0, 0.5\]"),
    ("thumbnail_resize", (0.5, 2), "within"),
    ("rain", (1, 10**6), "within"),
    ("shear", 12, "two whole numbers"),
    ("contrast", (0.1, 0.2, 0.3), "two numbers"),
    ("rain", "ab", "two whole numbers"),
]
OF_MEMBERS += [
    (lambda n=n, b=b: sampled(getattr(noc, n), (224, 224, 3), range=b), ValueError, f"{n}.*expected.*{message}.*found")
    for n, b, message in RANGES
]
