"""What each call of the library refuses: in one line that names the expected and the found value."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from PIL import Image

import corruptions
from corruptions import augment as schemes
from corruptions import enhance, noc, optics
from corruptions.core.severity import Levels
from corruptions.scoring.conditions import expand
from tests.corruptions.core.refused_members import sampled

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


A_KEY = r"expected a key as the first argument, found"
NAMED_LATER = r"the order is corrupt\(key, images, name, severity\), corrupt_image\(image, name, severity\)"
SHAPED = r"\(number, height, width, channels\), found shape"

OF_CORRUPT = [
    # Images.
    (lambda: border(PHOTO), ValueError, rf"{SHAPED} \(32, 32, 3\); give one image as image\[None\]"),
    (lambda: border(np.zeros((2, 3, 32, 32), np.uint8)),
     ValueError, r"found 3x32 in shape \(2, 3, 32, 32\); channels come last: np\.moveaxis"),
    (lambda: border(IMAGES[..., :0]), ValueError, r"found shape \(2, 32, 32, 0\)"),
    (lambda: border(IMAGES[:, :8]), ValueError, "at least 16x16 pixels, found 8x32"),
    (lambda: border(IMAGES[:, :0, :0]), ValueError, "at least 16x16 pixels, found 0x0"),
    (lambda: border(IMAGES > 9), TypeError, "found dtype bool"),
    (lambda: border(IMAGES.astype(np.int32)), TypeError, "found dtype int32"),
    (lambda: border(np.full_like(FLOATS, 200)), ValueError, "divide by 255"),
    (lambda: contrast(IMAGES.astype(np.float64), severity=3), ValueError, "divide by 255"),
    (lambda: border(np.full_like(FLOATS, -0.1)), ValueError, r"values from -0.1 to -0.1"),
    (lambda: border(np.full_like(FLOATS, np.nan)), ValueError, "values from nan to nan"),
    (lambda: border(SIGNED), ValueError, r"value_range=\(-1, 1\)"),
    (lambda: border([[1, 2]]),
     TypeError, r"found list; numpy\.stack\(images\) where all have one size, else corrupt_each\("),
    (lambda: corrupt(np.zeros((1, 32, 32, 5), np.uint8), "imagenet_c/saturate", 1),
     ValueError, r"expected 1 to 4 channels .*saturate.*hue.* found 5"),
    # Names, severities, options.
    (lambda: corrupt(IMAGES, "jpeg", 1), ValueError, "did you mean .*jpeg_compression'"),
    (lambda: corrupt(IMAGES, "imagenet_c/fgo", 1), ValueError, "did you mean .*imagenet_c/fog"),
    (lambda: corrupt(IMAGES, "imagenetc/fog"), ValueError, "did you mean 'imagenet_c/fog'"),
    (lambda: corrupt(IMAGES, "imagenetc"), ValueError, "did you mean 'imagenet_c'"),
    (lambda: corrupt(IMAGES, "imagenet_c"), ValueError, r"found the benchmark .* names\('imagenet_c'\)"),
    (lambda: contrast(IMAGES, severity=0), ValueError, r"level 1\.\.5, found 0"),
    (lambda: contrast(IMAGES, severity=6), ValueError, r"level 1\.\.5, found 6"),
    (lambda: contrast(IMAGES, severity="3"), ValueError, r"level 1\.\.5 or None, found '3'"),
    (lambda: contrast(IMAGES, severity=2.5), ValueError, "pass interpolate=True"),
    (lambda: contrast(IMAGES, severity=[1, 7]), ValueError, r"level 1\.\.5, found \[1 7\]"),
    (lambda: contrast(IMAGES, levels=(1, 6)), ValueError, r"whole numbers in 1\.\.5, found \(1, 6\)"),
    (lambda: contrast(IMAGES, levels=()), ValueError, r"expected levels=\(1, 3"),
    (lambda: contrast(IMAGES, severity=2, levels=(1, 6)), ValueError, r"whole numbers in 1\.\.5, found \(1, 6\)"),
    (lambda: contrast(IMAGES, severity=2, range=(0, 9)), ValueError, r"expected range=\(mild, severe\) with"),
    (lambda: contrast(IMAGES, levels=(1, 2), range=(1, 2)), ValueError, "one of the options range and levels"),
    (lambda: contrast(IMAGES, severity=1, tabel="cifar"), ValueError, "did you mean 'table'"),
    (lambda: contrast(IMAGES, severity=1, table="mnist"),
     ValueError, "cifar, tiny, imagenet, inception, by_size, found 'mnist'"),
    (lambda: contrast(IMAGES, severity=1, validate="all"),
     ValueError, "expected validate=True, False or 'checkify', found 'all'"),
    (lambda: border(IMAGES, severity=1.5), ValueError, r"in \[0, 1\], a fraction of the range, found 1.5"),
    (lambda: border(IMAGES, severity=np.zeros(5, np.float32)),
     ValueError, r"scalar severity or one of shape \(2,\), found \(5,\)"),
    (lambda: corrupt(IMAGES, CROPPING, 1), ValueError, r"my/half to keep the shape \(32, 32, 3\)"),
    (lambda: noc.quantization(KEY, FLOATS[0], gradient="smooth"),
     ValueError, "gradient=None or 'straight_through', found 'smooth'"),
    # Arguments in another order, or of another call.
    (lambda: corruptions.corrupt(0, IMAGES, "fog", 3), TypeError, rf"{A_KEY} the number 0: jax\.random\.key\(0\)"),
    (lambda: corruptions.corrupt(PHOTO, "fog", 3), TypeError, rf"{A_KEY} an array .*corrupt_image\(image, name"),
    (lambda: corruptions.corrupt(None, IMAGES, "fog", 3), TypeError, rf"{A_KEY} NoneType"),
    (lambda: corruptions.imagenet_c.fog(PHOTO, 3), TypeError, rf"{A_KEY} an array of shape \(32, 32, 3\)"),
    (lambda: corruptions.coordinates(0, IMAGES, "noc/rotation"), TypeError, rf"{A_KEY} the number 0"),
    (lambda: schemes.augment(0, IMAGES, "augmix"), TypeError, rf"{A_KEY} the number 0"),
    (lambda: corrupt(IMAGES, 3, "fog"), TypeError, rf"found 3; {NAMED_LATER}"),
    (lambda: corrupt("fog", IMAGES), TypeError, rf"found ndarray; {NAMED_LATER}"),
    (lambda: corrupt(IMAGES), TypeError, "missing 1 required positional argument: 'name'"),
    (lambda: noc.border(KEY, FLOATS), ValueError, r"use corruptions\.corrupt"),
    (lambda: corruptions.imagenet_c.fog(KEY, PHOTO, 3), TypeError, r"dtype uint8; image / 255, or corrupt_image\("),
    (lambda: corruptions.imagenet_c.saturate(KEY, np.zeros((32, 32, 5), np.float32), 1), ValueError, "found 5"),
    (lambda: sampled(corruptions.imagenet_c.saturate, (32, 32, 5), 1), ValueError, "found 5"),
    (lambda: sampled(noc.border, severity=np.ones(2)),
     ValueError, r"expected a scalar severity for one image, found one of shape \(2,\)"),
    (lambda: corruptions.imagenet_c.store(PHOTO), TypeError, "expected a float32 image .*, found dtype uint8"),
    (lambda: corruptions.imagenet_c.store(FLOATS), ValueError, r"expected one image .*, found a batch of shape"),
    # Ranges of values, masks, clips, cameras.
    (lambda: contrast(IMAGES, value_range=(-1, 1)),
     TypeError, r"expected floats with value_range=\(-1, 1\), found uint8"),
    (lambda: contrast(SIGNED, value_range=(1, -1)),
     ValueError, r"value_range=\(low, high\) with low < high, found \(1, -1\)"),
    (lambda: contrast(SIGNED, value_range=(0, 0)), ValueError, r"low < high, found \(0, 0\)"),
    (lambda: contrast(SIGNED, value_range=1), ValueError, "low < high, found 1"),
    (lambda: corruptions.get("noc/hue", value_range=(1, 1)), ValueError, "low < high"),
    (lambda: corruptions.corrupt_image(IMAGES[0], corruptions.get("noc/hue", value_range=(-1, 1))),
     ValueError, "only corrupt takes it"),
    (lambda: corruptions.compose(corruptions.get("noc/hue", value_range=(-1, 1))), ValueError, "expected members of images"),
    (lambda: contrast(SIGNED, value_range=(-1, float("inf"))), ValueError, "low < high"),
    (lambda: contrast(SIGNED, value_range=(-0.5, 1)),
     ValueError, r"values in value_range=\(-0.5, 1\), found values from -"),
    (lambda: contrast(np.full_like(SIGNED, np.nan), value_range=(-1, 1)), ValueError, "found values from nan to nan"),
    (lambda: contrast(IMAGES, where=MASK[:, :5]),
     ValueError, r"where: bool of shape \(2, 32, 32\), found bool of shape \(2, 5, 32\)"),
    (lambda: contrast(IMAGES, where=MASK.astype(np.float32)),
     ValueError, r"where: bool of shape \(2, 32, 32\), found float32"),
    (lambda: contrast(RIG[:, :0], axis="camera"), ValueError, "with at least one camera, found shape"),
    (lambda: contrast(IMAGES, axis="camera"),
     ValueError, r"shape \(number, cameras, height, width, channels\) with at least one camera"),
    (lambda: contrast(RIG, axis=("time", "camera")),
     ValueError, r"shape \(number, time, cameras, height, width, channels\)"),
    (lambda: contrast(RIG, axis="camera", fresh_noise=True), ValueError, "expected axis='time' with fresh_noise=True"),
    (lambda: contrast([1], axis="camera"), TypeError, "expected an array of samples of cameras, found list"),
    (lambda: contrast(IMAGES, axis="frames"), ValueError, "expected axis=None, 'time', 'camera' or .*, found 'frames'"),
    (lambda: contrast(IMAGES, fresh_noise=True),
     ValueError, "expected axis='time' with fresh_noise=True, found axis=None"),
    (lambda: contrast(CLIPS), ValueError, r"found shape \(2, 3, 32, 32, 3\); clips go with axis='time'"),
    (lambda: contrast(IMAGES, axis="time"),
     ValueError, r"clips of shape \(number, time, .*found shape \(2, 32, 32, 3\); images alone go without"),
    (lambda: contrast("clip.mp4", axis="time"), TypeError, "expected an array of clips, found str"),
    (lambda: contrast(CLIPS * 2.0, axis="time"), ValueError, r"values in \[0, 1\], found values from"),
    (lambda: contrast(CLIPS, axis="time", severity=np.ones(3)), ValueError, r"or one of shape \(2,\), found \(3,\)"),
    (lambda: contrast(CLIPS, axis="time", severity=1, index=[1, 2, 3]),
     ValueError, r"an index of shape \(2,\), found \(3,\)"),
    (lambda: corrupt(CLIPS, "noc/gaussian", axis="time", fresh_noise=True, index=[2**31, 4]),
     ValueError, r"an index below 2\*\*31 with fresh_noise"),
    (lambda: corrupt(CLIPS, corruptions.compose("noc/gaussian"), axis="time", fresh_noise=True),
     ValueError, "whose parts draw together"),
]  # fmt: skip
OF_CORRUPT_IMAGE = [
    (lambda: one_image("cat.png", "fog"),
     TypeError, r"expected an array, nested lists or a Pillow image, found str; .*read_image"),
    (lambda: one_image(None, "noc/border"), TypeError, "found NoneType"),
    (lambda: one_image(PHOTO[None], "noc/border"),
     ValueError, r"found a batch of shape \(1, 32, 32, 3\); use corruptions\.corrupt"),
    (lambda: one_image([PHOTO, PHOTO], "noc/border"), ValueError, r"found a batch of shape \(2, 32, 32, 3\)"),
    (lambda: one_image(PHOTO.transpose(2, 0, 1), "noc/border"),
     ValueError, r"\(height, width, channels\) .* found shape \(3, 32, 32\)"),
    (lambda: one_image(PHOTO[0, 0], "noc/border"), ValueError, r"found shape \(3,\)"),
    (lambda: one_image([[1, 2], [3]], "noc/border"),
     ValueError, r"lists of different lengths; .*corrupt_each\(key, images, name, severity\)"),
    (lambda: one_image([], "noc/border"), ValueError, r"found shape \(0,\)"),
    (lambda: one_image([[[-9, 501, 0]] * 32] * 32, "noc/border"),
     ValueError, "levels from 0 to 255, found values from -9 to 501"),
    (lambda: one_image(PHOTO[:8], "noc/border"), ValueError, "at least 16x16 pixels, found 8x32"),
    (lambda: one_image(PHOTO[:0, :, 0], "noc/border"), ValueError, "at least 16x16 pixels, found 0x32"),
    (lambda: one_image(PHOTO.astype(np.int64), "noc/border"), TypeError, "found dtype int64"),
    (lambda: one_image(PHOTO > 9, "noc/border"), TypeError, "found dtype bool"),
    (lambda: one_image(np.zeros((3, 20, 24), np.uint8), "noc/border"),
     ValueError, r"shape \(3, 20, 24\); channels come last: image\.transpose"),
    (lambda: one_image(PHOTO.astype(np.float64), "noc/border"),
     ValueError, "found values from 0 to 255; divide by 255 or pass uint8"),
    (lambda: one_image(np.full((32, 32), np.nan), "noc/border"), ValueError, "found values from nan to nan"),
    (lambda: one_image(Image.fromarray(PHOTO).convert("P"), "noc/border"),
     ValueError, r"found mode P; .*read_image"),
    (lambda: one_image(Image.fromarray(PHOTO).convert("CMYK"), "noc/border"),
     ValueError, "mode L, LA, RGB, RGBA, found mode CMYK"),
    (lambda: jax.jit(lambda image: one_image(image, "contrast"))(PHOTO),
     TypeError, r"inside a jit use corruptions\.corrupt"),
    (lambda: one_image(PHOTO, "contrats"), ValueError, "did you mean 'contrast'"),
    (lambda: one_image(PHOTO, 3, "fog"), TypeError, r"found 3; the order is .* corrupt_image\(image, name, severity\)"),
    (lambda: one_image(PHOTO, corruption_name="fog", severity=3), TypeError, "argument: 'name'"),
    (lambda: one_image(PHOTO, "contrast", sizes="padded"), ValueError, "sizes='bucket' or 'exact', found 'padded'"),
    (lambda: one_image(PHOTO, "contrast", 6), ValueError, r"level 1\.\.5, found 6"),
    (lambda: one_image(PHOTO, "border", 2), ValueError, r"in \[0, 1\], a fraction of the range, found 2"),
    (lambda: one_image(PHOTO, "contrast", np.ones(32)), ValueError, r"scalar severity"),
    (lambda: one_image(PHOTO, "contrast", seed=0.5), TypeError, "expected an integer seed, found 0.5"),
    (lambda: one_image(PHOTO, "contrast", seed=-1), ValueError, r"from 0 to 2\*\*64 - 1, found -1"),
    (lambda: one_image(PHOTO, "contrast", tabel="cifar"), ValueError, "did you mean 'table'"),
    (lambda: one_image(PHOTO, "contrast", index=[3]), ValueError, "has no option 'index'"),
]  # fmt: skip
OF_CORRUPT_EACH = [  # others are named as of `corrupt_image`, by the same checks
    (lambda: corruptions.corrupt_each(0, IMAGES, "fog"), TypeError, rf"{A_KEY} the number 0: jax\.random\.key"),
    (lambda: each(IMAGES, "fog", sizes="padded"), ValueError, "sizes='bucket' or 'exact', found 'padded'"),
    (lambda: each("photos", "fog"), TypeError, "found the path 'photos'"),
    (lambda: list(each(["cat.png"], "noc/border")), TypeError, r"image 0: .*found str"),
    (lambda: list(each(IMAGES, "noc/border", 1, index=[7])), ValueError, "as many positions in index as images"),
    (lambda: list(each(IMAGES, "noc/border", 1, index=[7, 8, 9])), ValueError, "as many positions in index as images"),
]  # fmt: skip
OF_LABELS = [
    (lambda: corruptions.coordinates(KEY, IMAGES, corruptions.compose("noc/border", "noc/rotation"), 0.5),
     ValueError, "which contains noc/rotation, which turns the image"),
    (lambda: corruptions.coordinates(KEY, IMAGES, "noc/rotation", value_range=(-1, 1)),
     ValueError, "expected no value_range for coordinates, .*: leave it out"),
    (lambda: corruptions.coordinates(KEY, IMAGES, "noc/rotation", validate=False),
     ValueError, "expected no validate for coordinates, .*: leave it out"),
    (lambda: corruptions.move_masks(np.zeros((10, 12)), WHERE),
     ValueError, r"masks of shape \(1, 10, 12\) or with one axis more, found \(10, 12\)"),
    (lambda: corruptions.move_boxes(np.zeros((2, 4)), WHERE),
     ValueError, r"boxes of shape \(1, number, 4\), found \(2, 4\)"),
    (lambda: corruptions.move_masks(MASK, IMAGES),
     ValueError, r"coordinates of shape \(number, height, width, 2\), found \(2, 32, 32, 3\)"),
    (lambda: corruptions.move_boxes(np.zeros((2, 1, 4)), IMAGES), ValueError, r"height, width, 2\), found \(2, 32, 32, 3\)"),
    (lambda: corruptions.move_boxes([[(0, 0, 4, 4), (9, 3, 5, 7)]], WHERE), ValueError, r"left <= right, .*\[9.0, 3.0, 5.0"),
    (lambda: corruptions.move_boxes([[(0, 0, 4, 4)]], WHERE, MASK), ValueError, "reflected: bool"),
    (lambda: corruptions.move_masks(np.full((1, 10, 12), 2**40 + 5), WHERE),
     ValueError, "labels of at most 31 bits, found 1099511627781"),
]  # fmt: skip
OF_REGISTRY = [
    (lambda: corruptions.register(print), TypeError, r"expected a Corruption, found print; registrar\('mine'"),
    (lambda: corruptions.register(noc.border), ValueError, "already; replace=True replaces it"),
    (lambda: optics.lens("two words", [{3: 1.0}]),
     ValueError, "expected a name without spaces, found 'lens/two words'"),
    (lambda: expand([dataclasses.replace(noc.border)]),
     ValueError, r"expected registered corruptions, found <Corruption noc/border: \w+>, .*corruptions.register\(it\) first"),
    (lambda: mine(5, "nearest"), TypeError, r"expected scale=Levels\(number\) or Fraction\(\), found 5"),
    (lambda: mine(Levels(5), "round"), ValueError, "rounding='truncate' or 'nearest', found 'round'"),
    (lambda: corruptions.registrar("mine", 5, "nearest", "of mine"), TypeError, "found 5"),
    (lambda: corruptions.registrar("mine", Levels(5), "round", "of mine"), ValueError, "found 'round'"),
    (lambda: corruptions.registrar("mine", Levels(5), "nearest", "of mine")(
        "blur", lambda key, shape, severity: {"width": severity}, {"widht": "pixels"}, name="wide"
     )(lambda image, params: image), ValueError, "mine/wide: .* width, found 'widht'"),
    *((lambda name=name: named(name), ValueError, "expected (names|a name) ") for name in WRONG_NAMES),
    *((lambda name=name: corruptions.register_benchmark(name, SOME), ValueError, "expected names ")
      for name in (*WRONG_NAMES, "a/b")),
    *((lambda name=name: corruptions.registrar(name, Levels(5), "nearest", "of mine"), ValueError, "expected names ")
      for name in (*WRONG_NAMES, "a/b")),
    *((lambda call=call: call("elastic"),
       ValueError, "'elastic' is used by several .* say 'noc/elastic' or 'imagenet_c/elastic_transform'")
      for call in (lambda name: corrupt(IMAGES, name), lambda name: one_image(IMAGES[0], name), corruptions.get,
                   lambda name: corruptions.evaluate(None, IMAGES, [0, 1], corruptions=["noc/hue", name], severity=1))),
    (lambda: corruptions.get("frosted_glass_blur"), ValueError, "did you mean 'imagenet_c/glass_blur'"),
    (lambda: corruptions.evaluate(None, IMAGES, [0, 1], corruptions="imagenetc"), ValueError, "did you mean 'imagenet_c'"),
    (lambda: corruptions.evaluate(None, IMAGES, [0, 1], corruptions=["imagenet_c/fog", "noc/hue"], severity=3),
     ValueError, r"noc/hue: expected a severity in \[0, 1\]"),
    (lambda: border(IMAGES, severity=np.ma.masked), ValueError, "found masked ones"),
    (lambda: contrast(IMAGES, severity=np.ma.array([3, 4], mask=[False, True])), ValueError, "found masked ones"),
    *((call, ValueError, "found masked ones") for call in (
        lambda: border(HIDDEN), lambda: border(HIDDEN / np.float32(255)), lambda: one_image(HIDDEN[0], "noc/border"),
        lambda: list(each(HIDDEN, "noc/border")), lambda: border(IMAGES, index=np.ma.array([0, 1], mask=[0, 1])),
        lambda: border(IMAGES, where=np.ma.array(MASK, mask=HIDDEN.mask[..., 0])),
        lambda: corruptions.evaluate(None, HIDDEN, [0, 1]), lambda: corruptions.evaluate(None, [(HIDDEN, [0, 1])]),
        lambda: corruptions.evaluate(None, IMAGES, np.ma.array([0, 1], mask=[0, 1])),
        lambda: corruptions.evaluate(lambda _: np.ma.array(np.eye(2), mask=[[0, 1], [0, 0]]), IMAGES, [0, 1], batch_size=2),
        lambda: corruptions.write_dataset("unused", (HIDDEN, [0, 1])))),
    (lambda: border(IMAGES, index={0, 1}), TypeError, "expected an index of integers, one for each image"),
    (lambda: corruptions.evaluate(None, IMAGES, [0, 1], options=["fog"]), TypeError, "expected options as .* found list"),
    (lambda: one_image(PHOTO, "contrast", seed=KEY), TypeError, r"expected an integer seed, found Array\("),
    (lambda: corruptions.read_image(Image.fromarray(FLOATS[0, ..., 0])), ValueError, "multiply them by 255"),
    (lambda: corruptions.read_image(PHOTO), TypeError, "expected a path, .* found ndarray"),
    (lambda: Levels("5"), ValueError, "number of levels of at least 1, found '5'"),
    (lambda: corruptions.names("imagenetc"), ValueError, "did you mean 'imagenet_c'"),
    (lambda: corruptions.severities("imagenet_c/fog", "cifar10_c_bar"),
     ValueError, "expected a member of cifar10_c_bar, found imagenet_c/fog"),
    (lambda: corruptions.severities("camera/iso_noise", "robobev"), ValueError, "expected a member of robobev"),
    (lambda: corruptions.register_benchmark("other", ("cbar/ripple",), options={"tabel": "cifar"}),
     ValueError, "benchmark 'other' has no option 'tabel'; did you mean 'table'"),
    (lambda: corruptions.register_benchmark("imagenet_c", ("noc/border",)),
     ValueError, "benchmark 'imagenet_c' is registered already; replace=True replaces it"),
    (lambda: corruptions.register_benchmark("other", ("cbar/ripple",), levels={"cbar/ripple": (1, 99)}),
     ValueError, r"whole numbers in 1\.\.\d+, found \(1, 99\)"),
    (lambda: corruptions.register_benchmark("other", ("cbar/ripple",), levels={}),
     ValueError, "expected levels of each member, which has levels, found None of cbar/ripple"),
    (lambda: corruptions.register_benchmark("other", ("noc/border",), levels={"noc/border": (1,)}),
     ValueError, r"which has levels, found \(1,\) of noc/border"),
    (lambda: choose("imagenetc"), ValueError, "did you mean 'imagenet_c'"),
    (lambda: choose([]), ValueError, "at least one corruption, found none"),
    (lambda: corrupt(IMAGES, corruptions.compose("imagenet_c/fog", "noc/border", "noc/hue"), 3), ValueError,
     r"in \[0, 1\], .*imagenet_c/fog 1..5, noc/border in \[0, 1\]\), found 3"),
    (lambda: corruptions.compose(), ValueError, "at least one corruption, found none"),
    (lambda: choose(SOME, (1, 2)), ValueError, "a weight for each of 3 members, found 2"),
    (lambda: choose(SOME, (1, 2, -1)), ValueError, "not negative"),
    (lambda: choose(SOME, (0, 0, 0)), ValueError, "one of them positive"),
    (lambda: corruptions.compose("noc/border", probability=2), ValueError, r"a probability in \[0, 1\], found 2"),
    (lambda: corruptions.compose("noc/border", name="mine"), ValueError, "expected name='PREFIX/NAME', found 'mine'"),
]  # fmt: skip
OF_SCHEMES = [
    (lambda: augment(PHOTO, "augmix"), ValueError, "expected a batch of shape"),
    (lambda: augment(IMAGES.astype(np.float32), "augmix"), ValueError, r"float32 values in \[0, 1\]"),
    (lambda: augment(IMAGES.astype(np.int32), "augmix"), TypeError, "expected uint8 images or float32"),
    (lambda: augment(IMAGES, "augmix", dtype=np.int32),
     TypeError, "expected dtype uint8, float32 or None, found int32"),
    (lambda: augment(IMAGES, "augmix", index=np.arange(3)), ValueError, r"index of shape \(2,\), found \(3,\)"),
    (lambda: augment(IMAGES, "augmix", widht=2), ValueError, "no option 'widht'; did you mean 'width'"),
    (lambda: augment(IMAGES[:, :12], "augmix"), ValueError, "at least 16x16"),
    (lambda: augment(IMAGES, "augmix", severity=0.05), ValueError, r"severity above 0\.1 and up to 10, found 0\.05"),
    (lambda: augment(IMAGES, "augmix", width=0), ValueError, "width and a depth of at least 1, found 0 and 3"),
    (lambda: augment(IMAGES, "augmix", sevrity=2),
     ValueError, "augmix has no option 'sevrity'; did you mean 'severity'"),
    (lambda: augment(IMAGES, "autoaugment_cifar", table="svhn"),
     ValueError, "table among cifar, imagenet, found 'svhn'"),
    (lambda: augment(IMAGES, "patch_gaussian", table="svhn"), ValueError, "table among cifar, imagenet, found 'svhn'"),
    (lambda: augment(IMAGES, "patch_gaussian", sigma=-1.0), ValueError, r"positive sigma, found -1\.0"),
    (lambda: augment(IMAGES, "patch_gaussian", width=NAN), ValueError, "expected a finite, positive width, found nan"),
    (lambda: augment(IMAGES, "patch_gaussian", width=float("inf")), ValueError, "finite, positive width, found inf"),
    (lambda: schemes.get("augmx"), ValueError, "unknown augmentation scheme 'augmx'; did you mean 'augmix'"),
    (lambda: schemes.get("fog"), ValueError, "unknown augmentation scheme 'fog'"),
    (lambda: schemes.get("op"), ValueError, "unknown augmentation scheme 'op'"),
    (lambda: schemes.get("autoaugment_cifar=rotate"),
     ValueError, "unknown augmentation scheme 'autoaugment_cifar=rotate'"),
    (lambda: schemes.get("augmix=rotat"),
     ValueError, "unknown operation 'rotat' in 'augmix=rotat'; did you mean 'rotate'"),
    (lambda: schemes.get("augmix=rotate+"), ValueError, r"unknown operation '' in 'augmix=rotate\+'"),
    (lambda: schemes.get("augmix=rotate+rotate"), ValueError, "expected every operation once"),
    (lambda: schemes.get("op=brightness"), ValueError, "unknown operation 'brightness'"),
    (lambda: schemes.get("op="), ValueError, "expected one operation after op="),
    (lambda: schemes.get("op=rotate+equalize"), ValueError, "expected one operation after op="),
    (lambda: schemes.get(3), ValueError, "expected the name of an augmentation scheme, found 3"),
    (lambda: schemes.get(f"stored=some@{'0' * 12}"), ValueError, "expected stored=FILE"),
    (lambda: schemes.coinciding("augmix", ["fgo"]), ValueError, "unknown corruption 'fgo'"),
    (lambda: enhance.check("clahe:clipp=4"), ValueError, "clahe has no option 'clipp'; did you mean 'clip'"),
    (lambda: enhance.check("clahe:grid=4"), ValueError, "expected grid=ROWSxCOLUMNS of clahe, found 'grid=4'"),
    (lambda: enhance.check("clahe:clip=high"), ValueError, "expected clip=a number from 0 of clahe, found 'clip=high'"),
    (lambda: enhance.check("nlm:h=nan"), ValueError, "expected h=a number from 0 of nlm, found 'h=nan'"),
    (lambda: enhance.check("nlm:patch=2.5"),
     ValueError, "expected patch=a whole number from 1 of nlm, found 'patch=2.5'"),
    (lambda: enhance.check("clahe:grid=0x4"), ValueError, "found 'grid=0x4'"),
    (lambda: enhance.check("nlm:patch=4"), ValueError, "expected an odd patch of nlm, 3 or more, found 4"),
    (lambda: enhance.check("nlm:patch=1"), ValueError, "expected an odd patch of nlm, 3 or more, found 1"),
    (lambda: enhance.check("nlm:sigma=-1"), ValueError, "found 'sigma=-1'"),
    (lambda: enhance.check("ten_crop:crops=5"), ValueError, "ten_crop has no option 'crops'"),
    (lambda: enhance.enhance(IMAGES, "clahee"),
     ValueError, r"expected an enhancement out of clahe, .*found 'clahee'; did you mean"),
    (lambda: enhance.averaged(len, "ten_crops"), ValueError, "did you mean 'ten_crop'"),
    (lambda: enhance.enhance(IMAGES, "ten_crop"), ValueError, r"expected an enhancement of images, .*found 'ten_crop'"),
    (lambda: enhance.enhance(IMAGES.astype(np.int32), "clahe"),
     TypeError, "expected uint8 images or float32 .*found dtype int32"),
]  # fmt: skip
TABLES = {name[3:].lower(): table for name, table in list(globals().items()) if name.startswith("OF_")}
CASES = [pytest.param(*row, id=f"{of}-{number}") for of, rows in TABLES.items() for number, row in enumerate(rows)]


@pytest.mark.parametrize("call, error, message", CASES)
def test_it_is_refused_in_one_line(call, error, message):
    with pytest.raises(error, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)
