"""Running distances of a scheme, saved every minute: stopped, it continues where it was."""

import pathlib
import time
from collections.abc import Mapping, Sequence

import numpy as np

from analysis.distances.msd_mmd import Stream
from runtime import artifacts

_SAVE_SECONDS = 60.0
_TARGETS = "targets"


class Running:
    """A `Stream` to centres, of a known number of transforms, and the file that keeps its state.

    Continued with the same chunks it ends in the same bits as one that was never stopped.

    Args:
      path: of the file, which is there while the scheme is unfinished.
      kept: what the file holds, empty where there is none to continue.
      made_from: digests that are written to it.
      centres: {name: [G, D]}.
      members: bool [G, number], which transforms count in which weighting.

    Attributes:
      start: how many transforms were added.
    """

    def __init__(
        self,
        path: pathlib.Path,
        kept: Mapping[str, np.ndarray],
        made_from: Mapping[str, str],
        centres: Mapping[str, np.ndarray],
        members: np.ndarray,
    ):
        self._path, self._made_from, self._members = path, made_from, members
        self._names = list(centres)
        self._stream = Stream(np.stack(list(centres.values()), axis=1))
        self._saved = time.monotonic()
        self.start = 0
        if kept and kept[_TARGETS].tolist() == self._names:
            self._stream.resume({name: array for name, array in kept.items() if name != _TARGETS})
            self.start = int(self._stream.number[0])  # the first weighting takes all transforms

    def add(self, features: Sequence[np.ndarray] | np.ndarray) -> None:
        """Adds the features [K, G, D] of the next transforms."""
        end = self.start + len(features)
        self._stream.add(features, self._members[:, self.start : end])
        self.start = end
        if end < self._members.shape[1] and time.monotonic() - self._saved >= _SAVE_SECONDS:
            state = self._stream.state() | {_TARGETS: np.array(self._names)}
            artifacts.write(self._path, state, self._made_from)
            self._saved = time.monotonic()

    def distances(self) -> dict[str, np.ndarray]:
        """Gives {name: MSD and MMD [2, G]}."""
        both = np.stack([self._stream.msd, self._stream.mmd])
        return {name: both[:, :, k] for k, name in enumerate(self._names)}

    def remove(self) -> None:
        """Removes the file, once the distances are elsewhere."""
        self._path.unlink(missing_ok=True)
