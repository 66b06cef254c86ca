"""Corruptions that need files: photographs of frost, banks of images, weights of a network.

A flag of `corruptions.write` and a setting of the studies' commands name the files; results name them by a digest.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from corruptions.core import registry
from corruptions.core.corruption import Corruption
from corruptions.imagenet_c import frost, use_photographs
from corruptions.imagenet_c.frost import ORIGINAL
from corruptions.laion_c import use_bank


class FromFile(NamedTuple):
    """Corruptions that need files.

    Attributes:
      registered: their names, without the copies that benchmarks make of them.
      option: the option of the corruptions that holds the digest of the files.
      read: path -> digest; the process uses these files from then on. Images take `turn=True`, too.
      what: the files, in words.
      images: the path is a folder of images.
    """

    registered: tuple[str, ...]
    option: str
    read: Callable[..., str]
    what: str
    images: bool = False

    def use(self, path: str, turn: bool) -> str:
        """Reads the files; returns their digest. `turn` turns images of a folder by the orientation in their EXIF data."""
        return self.read(path, turn=True) if turn and self.images and path != ORIGINAL else self.read(path)

    @property
    def corruptions(self) -> tuple[str, ...]:
        """Lists the names of all corruptions that take these files, copies such as robodepth/frost too."""
        return tuple(name for one in self.registered for name in registry.with_copies(one))


FROM_FILES = {
    "frost": FromFile(
        (frost.qualified_name,),
        "photographs",
        use_photographs,
        "folder of frost photographs, such as ImageNet-C's five; default: procedural textures",
        images=True,
    ),
    "bank": FromFile(
        ("laion_c/mosaic", "laion_c/stickers"),
        "bank",
        use_bank,
        "folder of images that laion_c/mosaic and laion_c/stickers are made of",
        images=True,
    ),
}
"""{name of the flag or setting: FromFile}. A module that registers a corruption may add another, for `style`."""


def with_files(name: str | Corruption, options: Mapping[str, Any]) -> dict[str, Any]:
    """Adds to the options of a corruption the digest of the files that it takes by default, so that records hold it.

    Raises ValueError for a corruption made of one that takes such files: its own record could not name them.
    """
    corruption = registry.get(name)
    if taking := [member for member in corruption.members if with_files(member, {})]:
        raise ValueError(
            f"expected corruptions whose records name their files, found {corruption.qualified_name}, made of "
            f"{taking[0].qualified_name}: ask for its members one by one"
        )
    fixed = corruption.fixed
    defaults = {known.option: fixed[known.option] for known in FROM_FILES.values() if known.option in fixed}
    found = {option: value(()) if callable(value) else value for option, value in defaults.items()}
    return {option: digest for option, digest in found.items() if digest is not None} | dict(options)
