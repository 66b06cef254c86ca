"""The methods by name, with the hyper-parameters of their papers' code.

source    stored statistics, nothing adapted
bn1       BatchNorm by the batch (Nado et al. 2020; Schneider et al. 2020)
bn_alpha  BatchNorm by (1 - a) stored + a batch, unbiased variance (Schneider et al. 2020)
bn_ema    BatchNorm by stored statistics, after they moved by .1 towards the batch's
tent      one step on the mean entropy, only scales and shifts (Wang et al. 2021)
lame      answers smoothed over neighbours in a batch (Boudiaf et al. 2022)
eta       entropy of reliable and new samples (Niu et al. 2022)
eata      ETA with a penalty on changes of parameters that matter for clean images
sar       a sharpness-aware step on reliable samples, and resets (Niu et al. 2023)
rotta     a slow teacher, and a student on a memory of balanced classes (Yuan et al. 2023)
roid      weighted samples, consistency, source weights that pull back, prior correction (Marsden et al. 2024)
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from corruptions.core.checks import one_of
from evaluation.streams.eata import Eata, Eta, Sar
from evaluation.streams.lame import Lame
from evaluation.streams.roid import Roid
from evaluation.streams.rotta import Rotta
from evaluation.streams.tent import NONE, BatchStatistics, Descent, Method, MixedStatistics, MovingStatistics, Tent

_LARGE = 64  # images of at least this side in pixels take the settings for ImageNet-C


def names() -> tuple[str, ...]:
    """Lists the methods."""
    return tuple(_known(2, 32, 10))


def make(
    name: str, batch: int, side: int, classes: int, window: int = 0, transformer: bool = False
) -> "Method | Windowed":
    """Makes a method with its published hyper-parameters.

    Images with a side of at least 64 pixels take the settings for ImageNet-C, smaller ones those for CIFAR-10-C, or for
    CIFAR-100-C with 100 classes. A `window` (`Windowed`; 0 is none) takes the settings for batches of so many images. For
    ImageNet-C a vision transformer (`transformer`) takes SAR's rate of .001, and twice the rates for single images.

    Raises:
      ValueError: an unknown name, or a window over batches of more than one image.
    """
    if window and batch != 1:
        raise ValueError(f"expected batches of one image with a window, found {batch}; take --batch=1")
    known = _known(window or batch, side, classes, transformer)
    one_of("method", "a method", name, known)
    return Windowed(known[name](), window) if window else known[name]()


@dataclasses.dataclass(frozen=True)
class Windowed:
    """A method on single images: it sees the last `length` of them, answers the newest, and adapts once to every `length`.

    As in the benchmark of ROID's authors, except that its first windows are shorter; these repeat the first image.
    """

    inner: Method  # the method; its name, needs and check count for both
    length: int  # images of the window

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def settings(self) -> str:
        """Describes the hyper-parameters, for tables."""
        return ", ".join(filter(None, (self.inner.settings, f"window {self.length}")))

    def init(self, graphdef, weights, start):
        shape = (self.length, *start.shape[1:])
        inner = self.inner.init(graphdef, weights, start._replace(shape=shape))
        return {"inner": inner, "window": jnp.zeros(shape, start.dtype), "seen": jnp.zeros((), jnp.int32)}

    def step(self, graphdef, weights, state, images, key):
        window, place = self._shown(state, images)

        def adapt(inner):
            return self.inner.step(graphdef, weights, inner, window, key)

        def still(inner):
            return inner, self.inner.predict(graphdef, weights, inner, window)

        if self.inner.prediction == NONE:
            inner, logits = adapt(state["inner"])
        else:
            inner, logits = jax.lax.cond(place == self.length - 1, adapt, still, state["inner"])
        return {"inner": inner, "window": window, "seen": state["seen"] + 1}, logits[place][None]

    def predict(self, graphdef, weights, state, images):
        window, place = self._shown(state, images)
        return self.inner.predict(graphdef, weights, state["inner"], window)[place][None]

    def _shown(self, state, images):
        place = state["seen"] % self.length
        window = jnp.where(state["seen"] == 0, jnp.broadcast_to(images, state["window"].shape), state["window"])
        return window.at[place].set(images[0]), place


def _known(batch: int, side: int, classes: int, transformer: bool = False) -> dict[str, Callable[[], Method]]:
    large = side >= _LARGE
    factor = _rate_factor(batch, large, transformer)
    usual = Descent("nesterov", 0.00025 * factor) if large else Descent("adam", 0.001 * factor)
    rate = 0.00025 if large and (batch == 1 or not transformer) else 0.001
    of_sar = Descent("sgd", rate * factor * (2 if batch == 1 else 1))
    new = 0.05 if large else 0.1 if classes == 100 else 0.4
    return {
        "source": Method,
        "bn1": BatchStatistics,
        "bn_alpha": MixedStatistics,
        "bn_ema": MovingStatistics,
        "tent": lambda: Tent(usual),
        "lame": Lame,
        "eta": lambda: Eta(usual, similarity=new),
        "eata": lambda: Eata(usual, similarity=new, weight=2000.0 if large else 1.0),
        "sar": lambda: Sar(of_sar),
        "rotta": lambda: Rotta(Descent("adam", 0.001 * factor)),
        "roid": lambda: Roid(usual),
    }


def _rate_factor(batch: int, large: bool, transformer: bool) -> float:
    """Computes the factor on the published rates, which are for batches of 64 (ImageNet-C) and 200 (CIFAR).

    A single image of ImageNet-C takes 2 / 64 of them, in a vision transformer 4 / 64, and SAR twice as much. For CIFAR no
    rate for single images is published: 1 / 200.
    """
    if batch > 1:
        return 1.0
    return (4 if transformer else 2) / 64 if large else 1 / 200
