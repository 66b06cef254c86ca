"""Hostile inputs: image files, settings and arguments that nobody should give, of which each must be named."""

import pathlib
import shutil
import time

import jax
import numpy as np
from PIL import Image

import corruptions
from data.image_folder import load_image_folder
from tests.torture.commands import run
from tests.torture.outcomes import Outcome
from tests.torture.places import Place

_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16", "RGBX")
_SIZES = ((1, 1), (1, 7), (3, 1), (16, 16), (17, 400), (1000, 3), (300_000, 1), (1, 60_000), (4000, 4000))
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
_NAMES = ("a.png", "z z.png", "ä.jpg", "line\nbreak.png", "b.JPEG", "c.jpg", "-rf.png", "'; x.png", "d.PNG")


def images(rng: np.random.Generator, folder: pathlib.Path) -> Outcome:
    """A folder of good images with one that is hostile: the good ones come out alike, the other is decoded or named."""
    root = folder / "tree"
    shutil.rmtree(root, ignore_errors=True)
    for number in range(8):
        path = root / f"class{number % 2}" / f"m{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(number).integers(0, 256, (20, 24, 3), np.uint8)).save(path)
    good = _load(root, folder)
    name = str(rng.choice(_NAMES))
    path = root / "class1" / name
    what = _hostile_file(rng, path)
    began = time.process_time()  # CPU time, because the machine may be busy
    try:
        found = _load(root, folder)
    except (ValueError, OSError) as error:
        text = str(error)
        named = _is_named(name, text) or str(path.parent) in text
        return Outcome("refused" if named else "unclear", f"{what}: {error}")
    seconds = time.process_time() - began
    if seconds > 10:
        return Outcome("unclear", f"{what}: takes {seconds:.0f} s")
    expected = {image.tobytes() for split in (good.train, good.test) for image in np.asarray(split.images)}
    there = {image.tobytes() for split in (found.train, found.test) for image in np.asarray(split.images)}
    if not expected <= there:
        return Outcome("wrong", f"{what}: {len(expected - there)} good images changed")
    named = any(_is_named(name, str(found.provenance[split]["damaged"])) for split in ("train", "test"))
    return Outcome("refused" if named else "same", what)


def _is_named(name, text):
    return name in text or repr(name)[1:-1] in text or repr(repr(name)[1:-1])[1:-1] in text


def _load(root, folder):
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    return load_image_folder(data_dir=root, image_size=16, max_damaged=0.5, cache_dir=cache)


def _hostile_file(rng, path):
    """Writes a file; returns in words which."""
    way = str(rng.choice(["mode", "mode", "mode", "cut", "flip", "noise", "empty", "text", "folder", "link"]))
    if way == "folder":
        path.mkdir()
        return "a folder with an image's name"
    if way == "link":
        path.symlink_to("nowhere.png")
        return "a broken link"
    if way in ("empty", "text", "noise"):
        path.write_bytes({"empty": b"", "text": b"no image", "noise": rng.bytes(3000)}[way])
        return f"{way} as {path.name!r}"
    mode, size = str(rng.choice(_MODES)), _SIZES[rng.integers(len(_SIZES))]
    kind = str(rng.choice(_FORMATS))
    picture = Image.effect_noise((min(size[0], 4000), min(size[1], 4000)), 60).resize(size)
    try:
        if mode == "PA":
            picture = picture.convert("P").convert("PA")
        elif mode == "LAB":
            picture = Image.merge("LAB", [picture] * 3)
        elif mode == "I;16":
            picture = Image.fromarray(np.asarray(picture).astype(np.uint16) * 257)
        else:
            picture = (picture if mode in ("F", "I", "L", "1") else picture.convert("RGB")).convert(mode)
        picture.save(path, format=kind)
    except (OSError, ValueError, KeyError, OverflowError):  # a format without the mode, or the side
        picture.convert("RGB").resize((min(size[0], 16000), min(size[1], 16000))).save(path, format="PNG")
        mode, kind = "RGB", "PNG"
    content = bytearray(path.read_bytes())
    if way == "cut":
        content = content[: int(rng.integers(len(content)))]
    elif way == "flip":
        for _ in range(int(rng.integers(1, 8))):
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    return f"{kind} {mode} {size[0]}x{size[1]} ({way}) as {path.name!r}"


_SETTINGS = {  # setting -> values that make no sense
    "train.epochs": ("-1", "nan", "1.5", "x"),
    "train.batch_size": ("0", "-3", "1.5"),
    "train.learning_rate": ("inf", "nan", "-1.0", "x"),
    "train.momentum": ("5.0", "nan", "-1.0"),
    "train.weight_decay": ("-1.0", "nan", "inf"),
    "train.label_smoothing": ("2.0", "-0.5"),
    "train.corrupted_fraction": ("1.5", "-0.1", "nan"),
    "train.schedule": ("stepp", ""),
    "train.milestones": ("(-1,)", "('a',)"),
    "train.crop": ("-1", "1000"),
    "train.corruption": ("fgo", "noc/", "../x", "mixture=nothing"),
    "train.scheme": ("augmixx", "stored=", "stored=nowhere"),
    "train.reading": ("none",),
    "train.batch_norm": ("groups=0", "x"),
    "train.checkpoint_epochs": ("0", "-1"),
    "train.init_from": ("nowhere",),
    "train.unknown": ("1",),
    "model.name": ("resnet0", ""),
    "model.dtype": ("int8", "float1"),
    "dataset.name": ("shapess", "", "../x"),
    "dataset.image_size": ("0", "-4", "1"),
    "dataset.train_limit": ("-1",),
    "dataset.test_limit": ("-5",),
    "dataset.placement": ("nowhere",),
    "dataset.resize": ("stretch", ""),
    "dataset.seed": ("-1", str(2**70)),
    "eval.batch_size": ("0", "-1"),
    "seed": ("-1", str(2**70), "1.5"),
}


def settings(rng: np.random.Generator, place: Place) -> Outcome:
    """A setting that makes no sense is refused in one line, before anything is written."""
    place.begin("train")
    key = str(rng.choice(list(_SETTINGS)))
    value = str(rng.choice(_SETTINGS[key]))
    what = f"--config.{key}={value}"
    ending = run([*place.argv("train"), what])
    if not ending.status:
        return Outcome("wrong", f"{what} is accepted\n{ending.tail(300)}")
    if ending.hung or ending.traceback or ending.status not in (1, 2):
        return Outcome("unclear", f"{what}: status {ending.status}\n{ending.tail(1500)}")
    if key.split(".")[-1] not in ending.output and value not in ending.output:
        return Outcome("unclear", f"{what}: {ending.tail()}")
    written = [path.name for path in place.case.rglob("*") if path.name != ".lock"]
    if written:
        return Outcome("unclear", f"{what}: refused after {written[:4]} were written\n{ending.tail(300)}")
    return Outcome("refused", f"{what}: {ending.tail(300)}")


_GOOD = {"key": lambda: jax.random.key(0), "images": np.zeros((2, 16, 16, 3), np.uint8), "name": "noc/border"}
_BAD = {  # argument -> values that corrupt must refuse
    "key": (None, 3, "key", 1.5, np.zeros(3, np.uint32)),
    "images": (
        *(None, [], "images"),
        *(np.zeros(shape, np.uint8) for shape in ((16, 16, 3), (2, 8, 16, 3), (2, 16, 16, 0))),
        *(np.zeros((2, 16, 16, 3), dtype) for dtype in (np.int32, bool, complex, object)),
        *(np.full((2, 16, 16, 3), value, np.float32) for value in (np.nan, 255.0, -0.1)),
    ),
    "name": (None, 3, "", "fgo", "noc/", "/", "noc/border/", "NOC/BORDER ", "\0", "a" * 10_000, b"noc/border", ("x",)),
    "severity": (-1.0, 1.5, np.nan, np.inf, "3", [0.5], [0.1, 0.2, 0.3], True + 1.0, np.full((2, 1), 0.5), {}),
    "index": (
        *([0.5, 1.5], [True, False], [-1, 0], [0], [0, 1, 2], "01", [2**64, 0], [None, 1], {}, 3),
        *(np.zeros((2, 1), np.int32), np.array([0.0, 1.0])),
    ),
    "unknown": (1,),
    "range": ((3,), ("a", "b"), 7, (np.nan, 1), "ab", {}),
    "value_range": ((1, -1), (0, 0), (1,), (0, 1, 2), "ab", 1, (np.nan, 1), (-np.inf, 0), (0.5, 1), {}),
    "where": (
        *(np.ones(shape, bool) for shape in ((16, 16), (2, 16), (2, 16, 16, 1), (1, 16, 16), (2, 0, 16))),
        *(np.ones((2, 16, 16), dtype) for dtype in (np.uint8, np.float32)),
        *("mask", 3, [], {}),
    ),
    "axis": ("camera", "time", ("time", "camera"), ("camera", "time"), "x", 3, [], {}),
}
_RIG, _NONE = np.zeros((2, 3, 16, 16, 3), np.uint8), np.zeros((2, 0, 16, 16, 3), np.uint8)
_PICTURES = np.zeros((2, 16, 16, 3), np.uint8)


def _corrupted(name, severity=1, images=_PICTURES, **options):
    return lambda: corruptions.corrupt(jax.random.key(0), images, name, severity, **options)


_OTHERS = (  # calls of other functions, and of corruptions with levels, banks or lenses, that must be refused
    *(
        lambda bank=bank: corruptions.laion_c.use_bank(bank)
        for bank in (_PICTURES[:0], _PICTURES[0], _RIG, _PICTURES / 2)
    ),
    *(lambda size=size: corruptions.laion_c.use_bank(_PICTURES, **size) for size in ({"side": 0}, {"limit": 0})),
    *(_corrupted(f"laion_c/{name}", bank=bank) for name in ("mosaic", "stickers") for bank in ("0" * 64, "", 3)),
    _corrupted("laion_c/glitched", mode="fresh"),
    *(
        lambda row=row: corruptions.optics.lens("bad", [row])
        for row in ({37: 1.0}, {-1: 1.0}, {3.5: 1.0}, {"3": 1.0}, {3: np.nan}, {3: np.inf})
    ),
    *(
        lambda given=given: corruptions.optics.lens("bad", [{3: 1.0}], **given)
        for given in ({"q": 0.0}, {"q": np.nan}, {"size": 24}, {"size": 33}, {"size": -1}, {"q": (1.0, 2.0)})
    ),
    lambda: corruptions.optics.lens("bad", []),
    *(_corrupted("optics/coma", **given) for given in ({"kernel": 2}, {"kernel": "0"}, {"border": "black"})),
    *(_corrupted(f"camera/{name}", 6) for name in ("dark", "iso_noise", "color_quant")),  # of five levels
    *(_corrupted("robobev/snow_bgr", severity) for severity in (0, 6)),
    _corrupted("camera/libero_fog", 11),
    _corrupted("camera/dark", images=_NONE, axis="camera"),
    _corrupted("camera/dark", images=_NONE[None], axis=("time", "camera")),
    *(
        lambda function=function, rig=rig, severity=severity: function(jax.random.key(0), rig, severity)
        for function in (corruptions.camera.camera_crash, corruptions.camera.frame_lost)
        for rig, severity in ((_NONE, 2), (_PICTURES, 2), (_RIG, 0), (_RIG, 6), (_RIG, np.nan), (_RIG, "2"))
    ),
    lambda: corruptions.laion_c.superclass_scores(np.zeros((1, 1000)), "max"),
    lambda: corruptions.laion_c.superclass_scores(np.zeros((1, 100))),
)


def _bad_call(rng):
    """Draws a call of `corrupt` with a bad argument: (in words, the call)."""
    argument = str(rng.choice(list(_BAD)))
    position = int(rng.integers(len(_BAD[argument])))
    value = _BAD[argument][position]
    given = {key: made() if callable(made) else made for key, made in _GOOD.items()} | {argument: value}
    if argument == "value_range":
        given["images"] = np.zeros((2, 16, 16, 3), np.float32)
    positional = given.pop("key"), given.pop("images"), given.pop("name")
    return f"{argument}={str(value)[:60]!r} (number {position})", lambda: corruptions.corrupt(*positional, **given)


def calls(rng: np.random.Generator, folder: pathlib.Path | None = None) -> Outcome:
    """A hundred calls, most of `corrupt`, each with one bad argument: ValueError or TypeError, which say something."""
    del folder
    stories = []
    for _ in range(100):
        if rng.random() < 0.3:
            number = int(rng.integers(len(_OTHERS)))
            what, call = f"call {number} of _OTHERS", _OTHERS[number]
        else:
            what, call = _bad_call(rng)
        try:
            call()
        except (ValueError, TypeError) as error:
            if len(str(error)) < 15:
                return Outcome("unclear", f"{what}: {type(error).__name__}: {error}", 100)
        except Exception as error:  # noqa: BLE001 - any other kind is what we look for
            return Outcome("unclear", f"{what}: {type(error).__name__}: {str(error)[:300]}", 100)
        else:
            stories.append(what)
    if stories:
        return Outcome("wrong", f"accepted: {'; '.join(sorted(set(stories)))}", 100)
    return Outcome("refused", "a hundred bad arguments", 100)
