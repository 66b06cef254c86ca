"""Writes a copy of a dataset in other styles: Stylized-ImageNet, or style_transfer's severities beside other corruptions.

    python -m projects.structural.stylize --style=runs/style/style.npz --source=IMAGENET --preprocess=imagenet \
        --size=224 --out=SIN
    python -m projects.structural.stylize --style=runs/style/style.npz --source=IMAGENET/val --preprocess=imagenet \
        --size=224 --severities=1,2,3,4,5 --jpeg_quality=85 --corruptions=imagenet_c,style_transfer --out=ImageNet-C

From a folder that holds train/ and val/ the first command writes SIN/style_transfer/5/{train,val}/CLASS/NAME.png, the
layout of Stylized-ImageNet: severity 5, the full share of a style, drawn for each image. `python -m data.prepare
--source` and config.train.mix_in take that folder. `--seed` draws other styles: Stylized-ImageNet's authors made a copy for
each training. The second command writes all severities in the layout of ImageNet-C. Both go through `corruptions.write`: with a manifest, and after a kill the same command continues.
"""

from runtime import command  # isort: skip

from absl import flags

from corruptions.write import decoding, write_dataset
from corruptions.write.sources import open_source
from corruptions.write.writer import LAYOUTS
from projects.structural import weights


def define_flags():
    flags.DEFINE_string("style", None, "Weights, a file of projects.structural.train_style_decoder (required).")
    flags.DEFINE_string("source", None, "A folder of images, FILE.npz or tfds:NAME (required).")
    flags.DEFINE_string("out", None, "Folder to write (required).")
    flags.DEFINE_list("corruptions", [weights.NAME], "Corruptions and benchmarks.")
    flags.DEFINE_list("severities", ["5"], "1 to 5.")
    flags.DEFINE_enum("layout", "folders", sorted(LAYOUTS), "Layout of the copy.")
    flags.DEFINE_integer("jpeg_quality", None, "1 to 95, for all layouts but npy; by default PNG, without loss.")
    flags.DEFINE_string("split", "test", "For a tfds source.")
    flags.DEFINE_string("data_dir", None, "For a tfds source.")
    flags.DEFINE_enum("preprocess", "none", list(decoding.RECIPES), "For a folder or tfds source.")
    flags.DEFINE_integer("size", None, "Side of the images after --preprocess, in pixels.")
    flags.DEFINE_integer("limit", None, "Take only the first so many images.")
    flags.DEFINE_integer("batch_size", None, "Images on the device at a time.")
    flags.DEFINE_integer("seed", 0, "Seed of the styles.")
    flags.DEFINE_bool("verify", False, "Compare all files that are there with their sha256, not only changed ones.")


def stylize(given):
    """Writes the copy that the flags describe; returns the path of its manifest."""
    command.import_all(("projects.structural.style",))
    options = {weights.NAME: {"style": weights.use(given.style)}}
    opened = {name: getattr(given, name) for name in ("split", "data_dir", "preprocess", "size", "limit")}
    written = {name: getattr(given, name) for name in ("layout", "jpeg_quality", "seed", "batch_size", "verify")}
    severities = [int(severity) for severity in given.severities]
    source = open_source(given.source, **opened)
    return write_dataset(
        given.out, source, corruptions=given.corruptions, severities=severities, options=options, **written
    )


def main(argv):
    print(stylize(command.given(argv, {"style": "FILE", "source": "FOLDER", "out": "FOLDER"})))


if __name__ == "__main__":
    define_flags()
    command.run(main)
