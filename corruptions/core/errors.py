"""Errors with fields: what a caller may add to, a command its flag for instance."""


class UnknownCorruption(ValueError):
    """No corruption has this name.

    Attributes:
      name: the name.
      unknown_prefix: the part before the slash, where no registered corruption has it; empty otherwise.
    """

    def __init__(self, message: str, name: str, unknown_prefix: str = "") -> None:
        super().__init__(message)
        self.name, self.unknown_prefix = name, unknown_prefix


class MissingAssets(ValueError):
    """A corruption needs pictures or weights that this process has not read.

    Attributes:
      asset: which: `frost`, `bank`, ...
    """

    def __init__(self, message: str, asset: str) -> None:
        super().__init__(message)
        self.asset = asset
