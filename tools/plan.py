"""Plans a study before it runs: programs, memory and speed on chips that are not there, hours.

    python -m tools.plan --config=configs/overlap_imagenet100.py:resnet18 --devices=v5e-8,h200-8

The config is one of train.py, overlap.py or tools.scheme_study, with its overrides; datasets but
CIFAR and ImageNet are read to be counted. --devices takes v5e-8 and v4-32 as clouds name slices,
and h200-1, h200-8. For each it prints what is compiled, the CPU seconds that takes, memory of a
chip, images and steps a second, size of the checkpoints, and hours for all of it. Several hosts
train one model at a time (docs/distributed.md).

With the chip's compiler installed (`pip install -e '.[study,compile_tpu]'`; for a GPU
`'jax[cuda12]'` in an environment of its own) the numbers are by that compiler's model; what it said
is kept, and asked once. Without it they are a rough estimate between two bounds, called so. Either
way nothing runs on a chip and nothing is measured. Mirroring, cropping, gathering and writing are
not counted.
"""

from runtime import command  # isort: skip

import jax
from absl import flags
from ml_collections import ConfigDict

from evaluation.planning import text
from evaluation.planning.plan import plan
from runtime.chips import machines
from training import cli


def run(config: ConfigDict, names: list[str]) -> None:
    """Prints the plan of a config on each of the machines named."""
    for machine in [machines.find(name) for name in names]:
        print(f"## {text.text(plan(config, machine))}\n", flush=True)


def main(argv):
    jax.config.update("jax_platforms", "cpu")  # a chip of this machine is not asked for
    config, _ = cli.read_flags(argv)
    run(config, flags.FLAGS.devices)


if __name__ == "__main__":
    cli.define_flags("configs/overlap_imagenet100.py")
    flags.DEFINE_list("devices", ["v5e-8"], "Machines, separated by commas: v5e-8, v4-32, h200-1, h200-8.")
    command.run(main, cli.parse)
