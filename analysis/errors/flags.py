"""Flags of the commands that divide errors by a reference."""

from absl import flags

from analysis.errors.choice import LABEL, REFUSE

flags.disclaim_key_flags()  # what is defined here belongs to the command: --help lists it


def define_reference() -> None:
    """Defines --reference and --mismatch, what `analysis.errors.choice.choose` takes."""
    flags.DEFINE_string(
        "reference", "", "alexnet, a file or an evaluated workdir; '' is AlexNet's errors where they hold."
    )
    flags.DEFINE_enum("mismatch", REFUSE, [REFUSE, LABEL], "What to do with errors under other conditions.")
