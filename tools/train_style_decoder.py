"""Makes the weights of style transfer (AdaIN): imports the public ones, or trains a decoder.

    python -m tools.train_style_decoder --config=configs/style_decoder.py:public --workdir=runs/style \
        --config.adain.encoder=vgg_normalised.pth --config.adain.decoder=decoder.pth --config.adain.styles=PAINTINGS
    python -m tools.train_style_decoder --config=configs/style_decoder.py:smoke --workdir=runs/style_smoke

Writes WORKDIR/style.npz, the network with the statistics of every picture of a style, which
--config.style=WORKDIR/style.npz of commands and --style of tools.stylize take; and metrics.jsonl
with the losses. Contents are the training images of config.dataset. Without config.adain.encoder
the encoder has random values: what comes out is labelled so, and is no style transfer of the paper.
Stopped anywhere, the same command continues; with files of other contents it is refused.
"""

from runtime import command  # isort: skip

import pathlib

from ml_collections import ConfigDict

from runtime import workdirs
from runtime.log import log
from training import cli, study
from training.style import decoder, pictures


def run(config: ConfigDict, workdir: pathlib.Path) -> pathlib.Path:
    """Makes the weights that `config` asks for; returns their file."""
    asked, bound = config.adain, config.to_dict()
    network, made_from = decoder.build(asked, config.seed)
    styles, described = pictures.styles(asked.styles, asked.drawn, config.dataset.image_size, config.seed)
    made_from |= {"styles": described, "steps": asked.steps, "style_weight": asked.style_weight}
    if asked.steps:
        dataset = study.load_dataset(config)
        made_from["contents"] = {"dataset": dataset.name, "sha256": dataset.provenance["train"].get("sha256")}
    bound["adain"]["made_from"] = made_from  # files of other contents are another run
    with workdirs.open_workdir(workdir, bound, free=study.FREE) as path:
        if asked.steps:
            network = decoder.train(asked, config.seed, network, dataset.train.images, styles, path)
        decoder.write(path / decoder.FILE, network, styles, asked.reading, made_from)
        return path / decoder.FILE


def main(argv):
    config, workdir = cli.start(argv)
    log.info("Weights of style transfer are in %s.", run(config, workdir))


if __name__ == "__main__":
    cli.define_flags("configs/style_decoder.py")
    command.run(main, cli.parse)
