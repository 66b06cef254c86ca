"""The project's own log. absl's, which Orbax fills with every step of a save, stays at warnings."""

import logging

log = logging.getLogger("jax_corruptions")


def configure():
    """Messages of this project to standard error, as plain lines."""
    import absl.logging

    absl.logging.set_verbosity(absl.logging.WARNING)
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
