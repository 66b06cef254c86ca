"""The project's own log. absl's, which Orbax fills with every step of a save, stays at warnings."""

import logging

log = logging.getLogger("jax_corruptions")


def configure(process: int = 0) -> None:
    """Sends messages of this project to standard error; of many processes only the first says more
    than errors.
    """
    import absl.logging

    absl.logging.set_verbosity(absl.logging.WARNING)
    if not log.handlers:
        handler = logging.StreamHandler()
        log.addHandler(handler)
    log.handlers[0].setFormatter(logging.Formatter(f"process {process}: %(message)s" if process else "%(message)s"))
    log.setLevel(logging.ERROR if process else logging.INFO)
    log.propagate = False
