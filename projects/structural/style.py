"""Registers `structural/style_transfer`, which redraws images in other styles by a network (`adain`).

Commands take --imports=projects.structural.style and a file of weights, --config.style=FILE (of `corruptions.write`
--style=FILE); Python takes `weights.use(FILE)`.
"""

import jax
import jax.numpy as jnp

import corruptions
from corruptions.assets import FROM_FILES, FromFile
from corruptions.core.severity import lookup
from projects.structural import adain, weights

ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)  # not published


def _sample(key, shape, severity, *, style=None, alphas=ALPHAS):
    """Draws a style, each with equal probability, whatever the severity.

    `alphas` are the shares of the style at the five severities; the draft publishes none. `style` is the digest that
    `weights.use` returned; other weights are refused.
    """
    del shape
    used = weights.in_use(style)
    number = jax.random.randint(key, (), 0, len(used.mean))
    moments = {"mean": jnp.asarray(used.mean)[number], "deviation": jnp.asarray(used.deviation)[number]}
    return {"alpha": lookup(alphas, severity)} | moments


_UNITS = {
    "alpha": corruptions.Parameter("alpha", "share of the style", "severities of this project: none are published"),
    "mean": "means of the channels of relu4_1 for a style",
    "deviation": "deviations of the channels of relu4_1 for a style",
}
register = corruptions.registrar(
    "structural", corruptions.Levels(5), "nearest", "weights of the file in use (projects.structural.weights)"
)


@register("style", _sample, _UNITS, mixes="redraws the image by a network of red, green and blue")
def style_transfer(image, params):
    """Redraws the image in a style: clip(G(a AdaIN(E(x), s) + (1 - a) E(x)), 0, 1).

    E and G are encoder and decoder, a is `alpha` (see `adain`). With a = 0 it is a softened
    image, not the image itself. Source: the draft "Benchmarking the Corruption and Structural
    Robustness of Neural Networks" (2018), by the method of Huang and Belongie (2017).
    """
    used = weights.in_use()
    mean, deviation = (params[name].reshape(1, 1, 1, -1) for name in ("mean", "deviation"))
    network = adain.from_arrays(used.network)
    return jnp.clip(network(image[None], mean, deviation, params["alpha"], used.correction)[0], 0, 1)


FROM_FILES.setdefault(
    "style", FromFile((weights.NAME,), "style", weights.use, "weights of style transfer, a file of train_style_decoder")
)
