"""What each call of the library refuses: in one line that names the expected and the found value."""

import dataclasses
import functools
import re

import jax
import numpy as np
import pytest
from PIL import Image

import corruptions
from corruptions import augment as schemes
from corruptions import enhance, noc, optics, scoring
from corruptions.core.errors import Refused, RefusedType, UnknownCorruption
from corruptions.core.severity import Levels
from corruptions.scoring.conditions import expand
from tests.corruptions.core.refused_members import OF_MEMBERS, sampled

KEY = jax.random.key(0)
NAN = float("nan")
IMAGES = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
PHOTO, FLOATS, SIGNED = IMAGES[0], IMAGES / np.float32(255), IMAGES / np.float32(127.5) - 1
CLIPS = RIG = np.ones((2, 3, 32, 32, 3), np.uint8)
MASK = np.zeros((2, 32, 32), bool)
WHERE = np.zeros((1, 10, 12, 2), np.float32)
HIDDEN = np.ma.array(IMAGES, mask=np.arange(IMAGES.size).reshape(IMAGES.shape) == 0)
SOME = ("noc/border", "noc/brightness", "imagenet_c/contrast")
CROPPING = dataclasses.replace(
    corruptions.get("noc/border"), name="half", benchmark="my", applier=lambda image, params: image[:16]
)
corrupt, each = functools.partial(corruptions.corrupt, KEY), functools.partial(corruptions.corrupt_each, KEY)
contrast, border = (functools.partial(corruptions.corrupt, KEY, name=n) for n in ("imagenet_c/contrast", "noc/border"))
one_image = corruptions.corrupt_image
augment = functools.partial(schemes.augment, KEY)
choose, lens = corruptions.random_choice, functools.partial(optics.lens, "x")


def mine(scale, rounding):
    member = corruptions.registrar("mine", scale, rounding, "of mine")
    return member("colour", lambda key, shape, severity: {}, {}, name="darker")(lambda image, params: image / 2)


WRONG_NAMES = ("..", "", "a,b", "it's", '"a"', "<b>", "$x$", "a b", "-a", "a\n", "a" * 300)


def named(name):
    return corruptions.register(dataclasses.replace(noc.border, benchmark="mine", name=name))


OF_CORRUPT = [
    # Images.
    (lambda: border(PHOTO),
     Refused, "images", (32, 32, 3), "(number, height, width, channels)", "give one image as image[None]"),
    (lambda: border(np.zeros((2, 3, 32, 32), np.uint8)),
     Refused, "images", "3x32 in shape (2, 3, 32, 32)", "channels come last: np.moveaxis"),
    (lambda: border(IMAGES[..., :0]), Refused, "images", (2, 32, 32, 0)),
    (lambda: border(IMAGES[:, :8]), Refused, "images", "8x32 in shape (2, 8, 32, 3)", "at least 16x16 pixels"),
    (lambda: border(IMAGES[:, :0, :0]), Refused, "images", "0x0 in shape (2, 0, 0, 3)", "at least 16x16 pixels"),
    (lambda: border(IMAGES > 9), RefusedType, "images", "bool"),
    (lambda: border(IMAGES.astype(np.int32)), RefusedType, "images", "int32"),
    (lambda: border(np.full_like(FLOATS, 200)), Refused, "images", "values from 200 to 200", "divide by 255"),
    (lambda: contrast(IMAGES.astype(np.float64), severity=3),
     Refused, "images", "values from 0 to 255", "divide by 255"),
    (lambda: border(np.full_like(FLOATS, -0.1)), Refused, "images", "values from -0.1 to -0.1"),
    (lambda: border(np.full_like(FLOATS, np.nan)), Refused, "images", "values from nan to nan"),
    (lambda: border(SIGNED), Refused, "images", "values from -1 to 1", "value_range=(-1, 1)"),
    (lambda: border([[1, 2]]),
     RefusedType, "images", "list", "numpy.stack(images) where all have one size, else corrupt_each("),
    (lambda: corrupt(np.zeros((1, 32, 32, 5), np.uint8), "imagenet_c/saturate", 1),
     Refused, "images", 5, "1 to 4 channels"),
    # Names, severities, options.
    (lambda: corrupt(IMAGES, "jpeg", 1), UnknownCorruption, "name", "'jpeg'", "jpeg_compression'"),
    (lambda: corrupt(IMAGES, "imagenet_c/fgo", 1), UnknownCorruption, "name", "'imagenet_c/fgo'", "imagenet_c/fog"),
    (lambda: corrupt(IMAGES, "imagenetc/fog"),
     UnknownCorruption, "name", "'imagenetc/fog'", "did you mean 'imagenet_c/fog'"),
    (lambda: corrupt(IMAGES, "imagenetc"), UnknownCorruption, "name", "'imagenetc'", "did you mean 'imagenet_c'"),
    (lambda: corrupt(IMAGES, "imagenet_c"), Refused, "name", "the benchmark 'imagenet_c'", "names('imagenet_c')"),
    (lambda: contrast(IMAGES, severity=0), Refused, "severity", 0, "level 1..5"),
    (lambda: contrast(IMAGES, severity=6), Refused, "severity", 6, "level 1..5"),
    (lambda: contrast(IMAGES, severity="3"), Refused, "severity", "'3'", "level 1..5 or None"),
    (lambda: contrast(IMAGES, severity=2.5), Refused, "severity", 2.5, "pass interpolate=True"),
    (lambda: contrast(IMAGES, severity=[1, 7]), Refused, "severity", "[1 7]", "level 1..5"),
    (lambda: contrast(IMAGES, levels=(1, 6)), Refused, "levels", "(1, 6)", "whole numbers in 1..5"),
    (lambda: contrast(IMAGES, levels=()), Refused, "levels", "()", "levels=(1, 3"),
    (lambda: contrast(IMAGES, severity=2, levels=(1, 6)), Refused, "levels", "(1, 6)", "whole numbers in 1..5"),
    (lambda: contrast(IMAGES, severity=2, range=(0, 9)), Refused, "range", (0, 9), "range=(mild, severe) with"),
    (lambda: contrast(IMAGES, levels=(1, 2), range=(1, 2)),
     Refused, "range", "range=(1.0, 2.0) and levels=(1, 2)", "one of the options range and levels"),
    (lambda: contrast(IMAGES, severity=1, tabel="cifar"), Refused, "tabel", "'tabel'", "did you mean 'table'"),
    (lambda: contrast(IMAGES, severity=1, table="mnist"),
     Refused, "table", "'mnist'", "cifar, tiny, imagenet, inception, by_size"),
    (lambda: contrast(IMAGES, severity=1, validate="all"),
     Refused, "validate", "'all'", "validate=True, False or 'checkify'"),
    (lambda: border(IMAGES, severity=1.5), Refused, "severity", 1.5, "in [0, 1], a fraction of the range"),
    (lambda: border(IMAGES, severity=np.zeros(5, np.float32)),
     Refused, "severity", (5,), "scalar severity or one of shape (2,)"),
    (lambda: corrupt(IMAGES, CROPPING, 1), Refused, "applier", (16, 32, 3), "my/half to keep the shape (32, 32, 3)"),
    (lambda: noc.quantization(KEY, FLOATS[0], gradient="smooth"),
     Refused, "gradient", "'smooth'", "gradient=None or 'straight_through'"),
    # Arguments in another order, or of another call.
    (lambda: corruptions.corrupt(0, IMAGES, "fog", 3),
     RefusedType, "key", "the number 0", "a key as the first argument"),
    (lambda: corruptions.corrupt(PHOTO, "fog", 3),
     RefusedType, "key", "an array of shape (32, 32, 3)", "a key as the first argument", "corrupt_image(image, name"),
    (lambda: corruptions.corrupt(None, IMAGES, "fog", 3),
     RefusedType, "key", "NoneType", "a key as the first argument"),
    (lambda: corruptions.imagenet_c.fog(PHOTO, 3),
     RefusedType, "key", "an array of shape (32, 32, 3)", "a key as the first argument"),
    (lambda: corruptions.coordinates(0, IMAGES, "noc/rotation"),
     RefusedType, "key", "the number 0", "a key as the first argument"),
    (lambda: schemes.augment(0, IMAGES, "augmix"), RefusedType, "key", "the number 0", "a key as the first argument"),
    (lambda: corrupt(IMAGES, 3, "fog"),
     RefusedType, "name", 3, "the order is corrupt(key, images, name, severity), corrupt_image(image, name, severity)"),
    (lambda: corrupt("fog", IMAGES),
     RefusedType, "name", "ndarray", "the order is corrupt(key, images, name, severity), corrupt_image(image, name, severity)"),
    (lambda: corrupt(IMAGES), TypeError, "missing 1 required positional argument: 'name'"),
    (lambda: noc.border(KEY, FLOATS), Refused, "image", "a batch of shape (2, 32, 32, 3)", "use corruptions.corrupt"),
    (lambda: corruptions.imagenet_c.fog(KEY, PHOTO, 3),
     RefusedType, "image", "uint8", "image / 255, or corrupt_image("),
    (lambda: corruptions.imagenet_c.saturate(KEY, np.zeros((32, 32, 5), np.float32), 1), Refused, "images", 5),
    (lambda: sampled(corruptions.imagenet_c.saturate, (32, 32, 5), 1), Refused, "images", 5),
    (lambda: sampled(noc.border, severity=np.ones(2)),
     Refused, "severity", "one of shape (2,)", "a scalar severity for one image"),
    (lambda: corruptions.imagenet_c.store(PHOTO), RefusedType, "image", "uint8", "a float32 image"),
    (lambda: corruptions.imagenet_c.store(FLOATS), Refused, "image", "a batch of shape (2, 32, 32, 3)", "one image"),
    # Ranges of values, masks, clips, cameras.
    (lambda: contrast(IMAGES, value_range=(-1, 1)),
     RefusedType, "images", "uint8", "floats with value_range=(-1, 1)", "uint8"),
    (lambda: contrast(SIGNED, value_range=(1, -1)),
     Refused, "value_range", "(1, -1)", "value_range=(low, high) with low < high"),
    (lambda: contrast(SIGNED, value_range=(0, 0)), Refused, "value_range", "(0, 0)", "low < high"),
    (lambda: contrast(SIGNED, value_range=1), Refused, "value_range", "1", "low < high"),
    (lambda: corruptions.get("noc/hue", value_range=(1, 1)), Refused, "value_range", "(1, 1)", "low < high"),
    (lambda: corruptions.corrupt_image(IMAGES[0], corruptions.get("noc/hue", value_range=(-1, 1))),
     Refused, "name", "<Corruption noc/hue: color, value_range=(-1.0, 1.0)>", "only corrupt takes it"),
    (lambda: corruptions.compose(corruptions.get("noc/hue", value_range=(-1, 1))),
     Refused, "members", "<Corruption noc/hue: color, value_range=(-1.0, 1.0)>", "members of images"),
    (lambda: contrast(SIGNED, value_range=(-1, float("inf"))), Refused, "value_range", "(-1, inf)", "low < high"),
    (lambda: contrast(SIGNED, value_range=(-0.5, 1)),
     Refused, "images", "values from -1 to 1", "values in value_range=(-0"),
    (lambda: contrast(np.full_like(SIGNED, np.nan), value_range=(-1, 1)), Refused, "images", "values from nan to nan"),
    (lambda: contrast(IMAGES, where=MASK[:, :5]),
     Refused, "where", "bool of shape (2, 5, 32)", "where: bool of shape (2, 32, 32)"),
    (lambda: contrast(IMAGES, where=MASK.astype(np.float32)),
     Refused, "where", "float32 of shape (2, 32, 32)", "where: bool of shape (2, 32, 32)"),
    (lambda: contrast(RIG[:, :0], axis="camera"), Refused, "images", (2, 0, 32, 32, 3), "with at least one camera"),
    (lambda: contrast(IMAGES, axis="camera"),
     Refused, "images", (2, 32, 32, 3), "shape (number, cameras, height, width, channels) with at least one camera"),
    (lambda: contrast(RIG, axis=("time", "camera")),
     Refused, "images", (2, 3, 32, 32, 3), "shape (number, time, cameras, height, width, channels)"),
    (lambda: contrast(RIG, axis="camera", fresh_noise=True),
     Refused, "axis", "axis='camera'", "axis='time' with fresh_noise=True"),
    (lambda: contrast([1], axis="camera"), RefusedType, "images", "list", "an array of samples of cameras"),
    (lambda: contrast(IMAGES, axis="frames"), Refused, "axis", "'frames'", "axis=None, 'time', 'camera' or"),
    (lambda: contrast(IMAGES, fresh_noise=True),
     Refused, "axis", "axis=None", "axis='time' with fresh_noise=True"),
    (lambda: contrast(CLIPS), Refused, "images", (2, 3, 32, 32, 3), "clips go with axis='time'"),
    (lambda: contrast(IMAGES, axis="time"),
     Refused, "images", (2, 32, 32, 3), "clips of shape (number, time,", "images alone go without"),
    (lambda: contrast("clip.mp4", axis="time"), RefusedType, "images", "str", "an array of clips"),
    (lambda: contrast(CLIPS * 2.0, axis="time"), Refused, "images", "values from 2 to 2", "values in [0, 1]"),
    (lambda: contrast(CLIPS, axis="time", severity=np.ones(3)), Refused, "severity", (3,), "or one of shape (2,)"),
    (lambda: contrast(CLIPS, axis="time", severity=1, index=[1, 2, 3]),
     Refused, "index", (3,), "an index of shape (2,)"),
    (lambda: corrupt(CLIPS, "noc/gaussian", axis="time", fresh_noise=True, index=[2**31, 4]),
     Refused, "index", "more bits", "an index below 2**31 with fresh_noise"),
    (lambda: corrupt(CLIPS, corruptions.compose("noc/gaussian"), axis="time", fresh_noise=True),
     Refused, "fresh_noise", True, "whose parts draw together"),
]  # fmt: skip
OF_CORRUPT_IMAGE = [
    (lambda: one_image("cat.png", "fog"),
     RefusedType, "image", "str", "an array, nested lists or a Pillow image", "read_image"),
    (lambda: one_image(None, "noc/border"), RefusedType, "image", "NoneType"),
    (lambda: one_image(PHOTO[None], "noc/border"),
     Refused, "image", "a batch of shape (1, 32, 32, 3)", "use corruptions.corrupt"),
    (lambda: one_image([PHOTO, PHOTO], "noc/border"), Refused, "image", "a batch of shape (2, 32, 32, 3)"),
    (lambda: one_image(PHOTO.transpose(2, 0, 1), "noc/border"),
     Refused, "image", (3, 32, 32), "(height, width, channels)"),
    (lambda: one_image(PHOTO[0, 0], "noc/border"), Refused, "image", (3,)),
    (lambda: one_image([[1, 2], [3]], "noc/border"),
     Refused, "image", "lists of different lengths", "corrupt_each(key, images, name, severity)"),
    (lambda: one_image([], "noc/border"), Refused, "image", (0,)),
    (lambda: one_image([[[-9, 501, 0]] * 32] * 32, "noc/border"),
     Refused, "image", "values from -9 to 501", "levels from 0 to 255"),
    (lambda: one_image(PHOTO[:8], "noc/border"),
     Refused, "images", "8x32 in shape (1, 8, 32, 3)", "at least 16x16 pixels"),
    (lambda: one_image(PHOTO[:0, :, 0], "noc/border"),
     Refused, "images", "0x32 in shape (1, 0, 32, 3)", "at least 16x16 pixels"),
    (lambda: one_image(PHOTO.astype(np.int64), "noc/border"), RefusedType, "image", "int64"),
    (lambda: one_image(PHOTO > 9, "noc/border"), RefusedType, "image", "bool"),
    (lambda: one_image(np.zeros((3, 20, 24), np.uint8), "noc/border"),
     Refused, "image", (3, 20, 24), "channels come last: image.transpose"),
    (lambda: one_image(PHOTO.astype(np.float64), "noc/border"),
     Refused, "images", "values from 0 to 255", "divide by 255 or pass uint8"),
    (lambda: one_image(np.full((32, 32), np.nan), "noc/border"), Refused, "images", "values from nan to nan"),
    (lambda: one_image(Image.fromarray(PHOTO).convert("P"), "noc/border"),
     Refused, "image", "mode P", "read_image"),
    (lambda: one_image(Image.fromarray(PHOTO).convert("CMYK"), "noc/border"),
     Refused, "image", "mode CMYK", "mode L, LA, RGB, RGBA"),
    (lambda: jax.jit(lambda image: one_image(image, "contrast"))(PHOTO),
     RefusedType, "image", "a traced one", "inside a jit use corruptions.corrupt"),
    (lambda: one_image(PHOTO, "contrats"), UnknownCorruption, "name", "'contrats'", "did you mean 'contrast'"),
    (lambda: one_image(PHOTO, 3, "fog"), RefusedType, "name", 3, "corrupt_image(image, name, severity)"),
    (lambda: one_image(PHOTO, corruption_name="fog", severity=3), TypeError, "argument: 'name'"),
    (lambda: one_image(PHOTO, "contrast", sizes="padded"), Refused, "sizes", "'padded'", "sizes='bucket' or 'exact'"),
    (lambda: one_image(PHOTO, "contrast", 6), Refused, "severity", 6, "level 1..5"),
    (lambda: one_image(PHOTO, "border", 2), Refused, "severity", 2, "in [0, 1], a fraction of the range"),
    (lambda: one_image(PHOTO, "contrast", np.ones(32)), Refused, "severity", "one of shape (32,)", "scalar severity"),
    (lambda: one_image(PHOTO, "contrast", seed=0.5), RefusedType, "seed", "0.5", "an integer seed"),
    (lambda: one_image(PHOTO, "contrast", seed=-1), Refused, "seed", -1, "from 0 to 2**64 - 1"),
    (lambda: one_image(PHOTO, "contrast", tabel="cifar"), Refused, "tabel", "'tabel'", "did you mean 'table'"),
    (lambda: one_image(PHOTO, "contrast", index=[3]), Refused, "index", "'index'"),
]  # fmt: skip
OF_CORRUPT_EACH = [  # others are named as of `corrupt_image`, by the same checks
    (lambda: corruptions.corrupt_each(0, IMAGES, "fog"),
     RefusedType, "key", "the number 0", "a key as the first argument"),
    (lambda: each(IMAGES, "fog", sizes="padded"), Refused, "sizes", "'padded'", "sizes='bucket' or 'exact'"),
    (lambda: each("photos", "fog"), RefusedType, "images", "the path 'photos'"),
    (lambda: list(each(["cat.png"], "noc/border")), RefusedType, "image", "str"),
    (lambda: list(each(IMAGES, "noc/border", 1, index=[7])),
     Refused, "index", "1 and more images", "as many positions in index as images"),
    (lambda: list(each(IMAGES, "noc/border", 1, index=[7, 8, 9])),
     Refused, "index", "2 images and more positions", "as many positions in index as images"),
]  # fmt: skip
OF_LABELS = [
    (lambda: corruptions.coordinates(KEY, IMAGES, corruptions.compose("noc/border", "noc/rotation"), 0.5),
     Refused, "name", "compose/border+rotation, which contains noc/rotation, which turns the image"),
    (lambda: corruptions.coordinates(KEY, IMAGES, "noc/rotation", value_range=(-1, 1)),
     Refused, "value_range", "(-1, 1)", "no value_range for coordinates,"),
    (lambda: corruptions.coordinates(KEY, IMAGES, "noc/rotation", validate=False),
     Refused, "validate", "False", "no validate for coordinates,"),
    (lambda: corruptions.move_masks(np.zeros((10, 12)), WHERE),
     Refused, "masks", (10, 12), "masks of shape (1, 10, 12) or with one axis more"),
    (lambda: corruptions.move_boxes(np.zeros((2, 4)), WHERE),
     Refused, "boxes", (2, 4), "boxes of shape (1, number, 4)"),
    (lambda: corruptions.move_masks(MASK, IMAGES),
     Refused, "coordinates", (2, 32, 32, 3), "coordinates of shape (number, height, width, 2)"),
    (lambda: corruptions.move_boxes(np.zeros((2, 1, 4)), IMAGES),
     Refused, "coordinates", (2, 32, 32, 3), "height, width, 2)"),
    (lambda: corruptions.move_boxes([[(0, 0, 4, 4), (9, 3, 5, 7)]], WHERE),
     Refused, "boxes", "left, top, right, bottom = [9.0, 3.0, 5.0, 7.0]", "left <= right,"),
    (lambda: corruptions.move_boxes([[(0, 0, 4, 4)]], WHERE, MASK),
     Refused, "reflected", "bool of shape (2, 32, 32)", "reflected: bool"),
    (lambda: corruptions.move_masks(np.full((1, 10, 12), 2**40 + 5), WHERE),
     Refused, "masks", 1099511627781, "labels of at most 31 bits"),
]  # fmt: skip
OF_REGISTRY = [
    (lambda: corruptions.register(print), RefusedType, "corruption", "print", "a Corruption", "registrar('mine'"),
    (lambda: corruptions.register(noc.border),
     Refused, "corruption", "'noc/border', registered already", "replace=True replaces it"),
    (lambda: optics.lens("two words", [{3: 1.0}]),
     Refused, "name", "'lens/two words'", "a name without spaces"),
    (lambda: expand([dataclasses.replace(noc.border)]),
     Refused, "name", "<Corruption noc/border: occlusion>, which is not", "registered corruptions", "register(it) first"),
    (lambda: mine(5, "nearest"), RefusedType, "scale", "5", "scale=Levels(number) or Fraction()"),
    (lambda: mine(Levels(5), "round"), Refused, "rounding", "'round'", "rounding='truncate' or 'nearest'"),
    (lambda: corruptions.registrar("mine", 5, "nearest", "of mine"), RefusedType, "scale", "5"),
    (lambda: corruptions.registrar("mine", Levels(5), "round", "of mine"), Refused, "rounding", "'round'"),
    (lambda: corruptions.registrar("mine", Levels(5), "nearest", "of mine")(
        "blur", lambda key, shape, severity: {"width": severity}, {"widht": "pixels"}, name="wide"
     )(lambda image, params: image), Refused, "units", "'widht'", "width"),
    *((lambda name=name: named(name), ValueError, "expected (names|a name) ") for name in WRONG_NAMES),
    *((lambda name=name: corruptions.register_benchmark(name, SOME), ValueError, "expected names ")
      for name in (*WRONG_NAMES, "a/b")),
    *((lambda name=name: corruptions.registrar(name, Levels(5), "nearest", "of mine"), ValueError, "expected names ")
      for name in (*WRONG_NAMES, "a/b")),
    *((lambda call=call: call("elastic"),
       Refused, "name", "'elastic', which several benchmarks or packages use", "say 'noc/elastic' or 'imagenet_c/elastic_transform'")
      for call in (lambda name: corrupt(IMAGES, name), lambda name: one_image(IMAGES[0], name), corruptions.get,
                   lambda name: corruptions.evaluate(None, IMAGES, [0, 1], corruptions=["noc/hue", name], severity=1))),
    (lambda: corruptions.get("frosted_glass_blur"),
     UnknownCorruption, "name", "'frosted_glass_blur'", "did you mean 'imagenet_c/glass_blur'"),
    (lambda: corruptions.evaluate(None, IMAGES, [0, 1], corruptions="imagenetc"),
     UnknownCorruption, "name", "'imagenetc'", "did you mean 'imagenet_c'"),
    (lambda: corruptions.evaluate(None, IMAGES, [0, 1], corruptions=["imagenet_c/fog", "noc/hue"], severity=3),
     Refused, "severity", 3.0, "a severity in [0, 1]"),
    (lambda: border(IMAGES, severity=np.ma.masked), Refused, "array", "masked ones"),
    (lambda: contrast(IMAGES, severity=np.ma.array([3, 4], mask=[False, True])), Refused, "array", "masked ones"),
    *((call, ValueError, "found masked ones") for call in (
        lambda: border(HIDDEN), lambda: border(HIDDEN / np.float32(255)), lambda: one_image(HIDDEN[0], "noc/border"),
        lambda: list(each(HIDDEN, "noc/border")), lambda: border(IMAGES, index=np.ma.array([0, 1], mask=[0, 1])),
        lambda: border(IMAGES, where=np.ma.array(MASK, mask=HIDDEN.mask[..., 0])),
        lambda: corruptions.evaluate(None, HIDDEN, [0, 1]), lambda: corruptions.evaluate(None, [(HIDDEN, [0, 1])]),
        lambda: corruptions.evaluate(None, IMAGES, np.ma.array([0, 1], mask=[0, 1])),
        lambda: corruptions.evaluate(lambda _: np.ma.array(np.eye(2), mask=[[0, 1], [0, 0]]), IMAGES, [0, 1], batch_size=2),
        lambda: corruptions.write_dataset("unused", (HIDDEN, [0, 1])))),
    (lambda: border(IMAGES, index={0, 1}), RefusedType, "index", "{0, 1}", "an index of integers, one for each image"),
    (lambda: corruptions.evaluate(None, scoring.TestSet(IMAGES, [0, 1]), [0, 1], batch_size=2),
     RefusedType, "images", "an argument beside it", "batch_size, labels as fields of the TestSet"),
    (lambda: corruptions.evaluate(scoring.Classifier(None), IMAGES, [0, 1], dtype="uint8"),
     RefusedType, "predict", "an argument beside it", "dtype as fields of the Classifier"),
    (lambda: corruptions.evaluate(None, IMAGES, [0, 1], severty=3), TypeError, "unexpected keyword argument 'severty'"),
    (lambda: corruptions.evaluate(None, IMAGES, [0, 1], options=["fog"]), RefusedType, "options", "list", "options as"),
    (lambda: one_image(PHOTO, "contrast", seed=KEY),
     RefusedType, "seed", "Array((), dtype=key<fry>) overlaying: [0 0]", "an integer seed"),
    (lambda: corruptions.read_image(Image.fromarray(FLOATS[0, ..., 0])), ValueError, "multiply them by 255"),
    (lambda: corruptions.read_image(PHOTO), TypeError, "expected a path, .* found ndarray"),
    (lambda: Levels("5"), Refused, "count", "'5'", "number of levels of at least 1"),
    (lambda: corruptions.names("imagenetc"), Refused, "benchmark", "'imagenetc'", "did you mean 'imagenet_c'"),
    (lambda: corruptions.severities("imagenet_c/fog", "cifar10_c_bar"),
     Refused, "name", "imagenet_c/fog", "a member of cifar10_c_bar"),
    (lambda: corruptions.severities("camera/iso_noise", "robobev"),
     Refused, "name", "camera/iso_noise", "a member of robobev"),
    (lambda: corruptions.register_benchmark("other", ("cbar/ripple",), options={"tabel": "cifar"}),
     Refused, "tabel", "'tabel'", "did you mean 'table'"),
    (lambda: corruptions.register_benchmark("imagenet_c", ("noc/border",)),
     Refused, "name", "'imagenet_c', registered already", "replace=True replaces it"),
    (lambda: corruptions.register_benchmark("other", ("cbar/ripple",), levels={"cbar/ripple": (1, 99)}),
     Refused, "levels", "(1, 99)", "whole numbers in 1.."),
    (lambda: corruptions.register_benchmark("other", ("cbar/ripple",), levels={}),
     Refused, "levels", "None of cbar/ripple", "levels of each member, which has levels"),
    (lambda: corruptions.register_benchmark("other", ("noc/border",), levels={"noc/border": (1,)}),
     Refused, "levels", "(1,) of noc/border", "which has levels"),
    (lambda: choose("imagenetc"), Refused, "benchmark", "'imagenetc'", "did you mean 'imagenet_c'"),
    (lambda: choose([]), Refused, "members", "none", "at least one corruption"),
    (lambda: corrupt(IMAGES, corruptions.compose("imagenet_c/fog", "noc/border", "noc/hue"), 3),
     Refused, "severity", 3, "5, noc/border in [0, 1])"),
    (lambda: corruptions.compose(), Refused, "members", "none", "at least one corruption"),
    (lambda: choose(SOME, (1, 2)), Refused, "weights", 2, "a weight for each of 3 members"),
    (lambda: choose(SOME, (1, 2, -1)), Refused, "weights", (1, 2, -1), "not negative"),
    (lambda: choose(SOME, (0, 0, 0)), Refused, "weights", (0, 0, 0), "one of them positive"),
    (lambda: corruptions.compose("noc/border", probability=2), Refused, "probability", 2, "a probability in [0, 1]"),
    (lambda: corruptions.compose("noc/border", name="mine"), Refused, "name", "'mine'", "name='PREFIX/NAME'"),
]  # fmt: skip
OF_SCHEMES = [
    (lambda: augment(PHOTO, "augmix"), Refused, "images", (32, 32, 3), "a batch of shape"),
    (lambda: augment(IMAGES.astype(np.float32), "augmix"),
     Refused, "images", "values from 0 to 255", "float32 values in [0, 1]"),
    (lambda: augment(IMAGES.astype(np.int32), "augmix"), RefusedType, "images", "int32", "uint8 images or float32"),
    (lambda: augment(IMAGES, "augmix", dtype=np.int32),
     RefusedType, "dtype", "int32", "dtype uint8, float32 or None"),
    (lambda: augment(IMAGES, "augmix", index=np.arange(3)), Refused, "index", (3,), "index of shape (2,)"),
    (lambda: augment(IMAGES, "augmix", widht=2), Refused, "widht", "'widht'", "did you mean 'width'"),
    (lambda: augment(IMAGES[:, :12], "augmix"), Refused, "images", "12x32 in shape (2, 12, 32, 3)", "at least 16x16"),
    (lambda: augment(IMAGES, "augmix", severity=0.05), Refused, "severity", "0.05", "severity above 0.1 and up to 10"),
    (lambda: augment(IMAGES, "augmix", width=0), Refused, "width", "0 and 3", "width and a depth of at least 1"),
    (lambda: augment(IMAGES, "augmix", sevrity=2),
     Refused, "sevrity", "'sevrity'", "did you mean 'severity'"),
    (lambda: augment(IMAGES, "autoaugment_cifar", table="svhn"),
     Refused, "table", "'svhn'", "table among cifar, imagenet"),
    (lambda: augment(IMAGES, "patch_gaussian", table="svhn"),
     Refused, "table", "'svhn'", "table among cifar, imagenet"),
    (lambda: augment(IMAGES, "patch_gaussian", sigma=-1.0), Refused, "sigma", "-1.0", "positive sigma"),
    (lambda: augment(IMAGES, "patch_gaussian", width=NAN), Refused, "width", "nan", "a finite, positive width"),
    (lambda: augment(IMAGES, "patch_gaussian", width=float("inf")), Refused, "width", "inf", "finite, positive width"),
    (lambda: schemes.get("augmx"), Refused, "name", "'augmx'", "did you mean 'augmix'"),
    (lambda: schemes.get("fog"), Refused, "name", "'fog'"),
    (lambda: schemes.get("op"), Refused, "name", "'op'"),
    (lambda: schemes.get("autoaugment_cifar=rotate"),
     Refused, "name", "'autoaugment_cifar=rotate'"),
    (lambda: schemes.get("augmix=rotat"),
     Refused, "name", "'rotat'", "did you mean 'rotate'"),
    (lambda: schemes.get("augmix=rotate+"), Refused, "name", "''"),
    (lambda: schemes.get("augmix=rotate+rotate"), ValueError, "expected every operation once"),
    (lambda: schemes.get("op=brightness"), Refused, "name", "'brightness'"),
    (lambda: schemes.get("op="), ValueError, "expected one operation after op="),
    (lambda: schemes.get("op=rotate+equalize"), ValueError, "expected one operation after op="),
    (lambda: schemes.get(3), ValueError, "expected the name of an augmentation scheme, found 3"),
    (lambda: schemes.get(f"stored=some@{'0' * 12}"), ValueError, "expected stored=FILE"),
    (lambda: schemes.coinciding("augmix", ["fgo"]), UnknownCorruption, "name", "'fgo'"),
    (lambda: enhance.check("clahe:clipp=4"), Refused, "clipp", "'clipp'", "did you mean 'clip'"),
    (lambda: enhance.check("clahe:grid=4"), ValueError, "expected grid=ROWSxCOLUMNS of clahe, found 'grid=4'"),
    (lambda: enhance.check("clahe:clip=high"), ValueError, "expected clip=a number from 0 of clahe, found 'clip=high'"),
    (lambda: enhance.check("nlm:h=nan"), ValueError, "expected h=a number from 0 of nlm, found 'h=nan'"),
    (lambda: enhance.check("nlm:patch=2.5"),
     ValueError, "expected patch=a whole number from 1 of nlm, found 'patch=2.5'"),
    (lambda: enhance.check("clahe:grid=0x4"), ValueError, "found 'grid=0x4'"),
    (lambda: enhance.check("nlm:h=1e+1"), ValueError, r"expected h=a number from 0 of nlm, found 'h=1e\+1'"),
    (lambda: enhance.check("clahe:clip=4,clip=2"), ValueError, "expected each setting of clahe once, found clip again"),
    (lambda: enhance.check("nlm:patch=4"), ValueError, "expected an odd patch of nlm, 3 or more, found 4"),
    (lambda: enhance.check("nlm:patch=1"), ValueError, "expected an odd patch of nlm, 3 or more, found 1"),
    (lambda: enhance.check("nlm:sigma=-1"), ValueError, "found 'sigma=-1'"),
    (lambda: enhance.check("ten_crop:crops=5"), Refused, "crops", "'crops'"),
    (lambda: enhance.enhance(IMAGES, "clahee"),
     Refused, "name", "'clahee'", "did you mean"),
    (lambda: enhance.averaged(len, "ten_crops"), Refused, "name", "'ten_crops'", "did you mean 'ten_crop'"),
    (lambda: enhance.enhance(IMAGES, "ten_crop"), ValueError, r"expected an enhancement of images, .*found 'ten_crop'"),
    (lambda: enhance.enhance(IMAGES.astype(np.int32), "clahe"),
     RefusedType, "images", "int32", "uint8 images or float32"),
]  # fmt: skip
TABLES = {name[3:].lower(): table for name, table in list(globals().items()) if name.startswith("OF_")}
TABLES["members"] = OF_MEMBERS
CASES = [pytest.param(row, id=f"{of}-{number}") for of, rows in TABLES.items() for number, row in enumerate(rows)]


@pytest.mark.parametrize("row", CASES)
def test_it_is_refused_in_one_line(row):
    """Rows (call, type, name, actual, words of the rest) of errors with fields, (call, type, pattern of the message) of others."""
    call, kind, *said = row
    with pytest.raises(kind) as refusal:
        call()
    error = refusal.value
    assert "\n" not in str(error)
    if not issubclass(kind, Refused):
        assert re.search(said[0], str(error)), error
        return
    name, actual, *words = said
    assert (type(error), error.name, error.actual) == (kind, name, actual)
    assert all(part in f"{error.place} {error.expected} {error.hint}" for part in words), error
