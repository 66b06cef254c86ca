"""Makes the weights of style transfer (AdaIN): imports the public ones, or trains a decoder.

    python -m projects.structural.train_style_decoder --config=projects/structural/configs/style_decoder.py:public \
        --workdir=runs/style --config.adain.encoder=vgg_normalised.pth --config.adain.decoder=decoder.pth \
        --config.adain.styles=PAINTINGS
    python -m projects.structural.train_style_decoder --config=projects/structural/configs/style_decoder.py:smoke \
        --workdir=runs/style_smoke

Writes WORKDIR/style.npz, the network with the statistics of every picture of a style, for --config.style of commands
and --style of corruptions.write; and metrics.jsonl with the losses. Contents are the training images of
config.dataset. Without config.adain.encoder the encoder has random values; the file is then labelled so, and is not the
paper's style transfer. Stopped anywhere, the same command continues; files of other contents are refused.

The encoder stays, the decoder learns to invert it. For contents c and styles s the loss is Huang and Belongie (2017),
equations 11 to 13: |E(g) - t|^2 + w (style), g = G(t), t = AdaIN(E(c), E(s)); style compares the moments of relu1_1 to
relu4_1 of g and of s. Adam, whose rate falls as 1 / (1 + 5e-5 step).
"""

from corruptions.files import digest_of_file

from runtime import command  # isort: skip

import contextlib
import functools
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from ml_collections import ConfigDict

from projects.structural import adain, pictures, weights
from projects.structural.adain import READINGS, Reading
from runtime import distributed, workdirs
from runtime.artifacts import provenance
from runtime.log import bar
from training import cli, states, study
from training.checkpoints import Checkpoints
from training.run import MetricsLog, NonFiniteLossError
from training.states import TrainState

FILE = "style.npz"
_DECAY = 5e-5
_EVERY = 100  # steps from one checkpoint to the next
_PIECE = 8  # styles at a time


def run(config: ConfigDict, workdir: pathlib.Path) -> pathlib.Path:
    """Makes the weights of `config`; returns their file."""
    asked, bound = config.adain, config.to_dict()
    network, made_from = build(asked, config.seed)
    turn = config.dataset.get("turn", False)
    styles, described = pictures.styles(asked.styles, asked.drawn, config.dataset.image_size, config.seed, turn)
    made_from |= {"styles": described, "steps": asked.steps, "style_weight": asked.style_weight}
    if asked.steps:
        dataset = study.load_dataset(config)
        made_from["contents"] = {"dataset": dataset.name, "sha256": dataset.provenance["train"].get("sha256")}
    bound["adain"]["made_from"] = made_from  # files with other content make another run
    with workdirs.open_workdir(workdir, bound, free=workdirs.PLACES) as path:
        if asked.steps:
            network = train(asked, config.seed, network, dataset.train.images, styles, path)
        write(path / FILE, network, styles, asked.reading, made_from)
        return path / FILE


def build(asked: ConfigDict, seed: int) -> tuple[adain.StyleTransfer, dict[str, str]]:
    """Makes the network of config.adain; returns it with the origin of its weights. Raises as `adain.load_port`."""
    network, source = adain.StyleTransfer(tuple(asked.widths), rng=np.random.default_rng(seed)), {}
    for part in ("encoder", "decoder"):
        source[part] = f"random values, seed {seed}"
        if path := asked[part]:
            adain.load_port(network, part, path)
            source[part] = f"{pathlib.Path(path).name}, sha256 {digest_of_file(path)}"
    return network, source


def losses(
    network: adain.StyleTransfer, contents: jax.Array, styles: jax.Array, reading: Reading
) -> tuple[jax.Array, jax.Array]:
    """Computes (content, style) of images float[N, H, W, 3] in [0, 1], both sides multiples of 8."""
    wanted = _moments(network, styles, reading)
    target = adain.adain(network.encoder(contents)[-1], *wanted[-1], correction=reading.correction)
    drawn = network.decoder(jax.lax.stop_gradient(target))
    content = jnp.square(network.encoder(drawn)[-1] - target).mean()
    return content, style_loss(_moments(network, drawn, reading), wanted, reading)


def style_loss(drawn: list, wanted: list, reading: Reading) -> jax.Array:
    """Sums squared differences of `adain.moments` over layers, means over images; a mean or (`summed`) sum over channels."""
    over = jnp.sum if reading.summed else jnp.mean
    pairs = zip(jax.tree.leaves(drawn), jax.tree.leaves(wanted), strict=True)
    return sum(over(jnp.square(a - b), -1).mean() for a, b in pairs)


def _moments(network, images, reading):
    return [adain.moments(maps, reading.correction, reading.style_epsilon) for maps in network.encoder(images)]


@functools.partial(jax.jit, static_argnames=("graphdef", "optimizer", "reading"))
def _step(graphdef, optimizer, reading, style_weight, state, contents, styles):
    """One step on uint8 images; returns (state, (content, style))."""
    contents, styles = (images.astype(jnp.float32) / 255 for images in (contents, styles))

    def total(params):
        content, style = losses(nnx.merge(graphdef, params, state.statistics), contents, styles, reading)
        return content + style_weight * style, (content, style)

    gradient, parts = jax.grad(total, has_aux=True)(state.params)
    with jax.numpy_dtype_promotion("standard"):  # optax itself raises a float to a whole number
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(state.step + 1, params, state.statistics, optimizer_state), parts


def train(
    asked: ConfigDict, seed: int, network: adain.StyleTransfer, contents: Any, styles: np.ndarray, workdir: pathlib.Path
) -> adain.StyleTransfer:
    """Trains for config.adain.steps steps, or continues; the result depends only on config and images.

    `contents` is uint8 [N, H, W, 3], anything indexed by an integer array, `styles` uint8 [S, H, W, 3]; `seed` chooses the
    images of each step. The folder `workdir` gets checkpoints and metrics.jsonl.

    Raises ValueError where sides of contents are not multiples of 8; NonFiniteLossError where training diverged (the
    last checkpoint stays); SystemExit after SIGTERM, with the state after the current step saved.
    """
    if any(side % 8 for side in contents.shape[1:3]):
        raise ValueError(f"expected contents with sides that are multiples of 8, found {contents.shape[1:3]}")
    most, image = max(len(contents), len(styles)), 12 * np.prod(contents.shape[1:3])
    if asked.batch_size > most and asked.batch_size * image > 2**30:  # bytes of images that are mostly repeated
        raise ValueError(
            f"expected config.adain.batch_size up to {most}, the number of images, found {asked.batch_size}"
        )
    optimizer = _optimizer(asked.learning_rate)
    graphdef, params, rest = nnx.split(network, lambda path, _: path[0] == "decoder", ...)
    state = states.initial_state(params, rest, optimizer)
    kept = contextlib.closing(Checkpoints(workdir / "checkpoints"))
    with kept as checkpoints, distributed.watch_signals() as preempted:
        state = checkpoints.restore(state) or state
        begin = int(state.step)
        with contextlib.closing(MetricsLog(workdir / "metrics.jsonl", begin)) as metrics:
            seen = []
            for step in bar("step", range(begin, asked.steps)):
                rng = np.random.default_rng((seed, step))
                batches = (_rows(rng, images, asked.batch_size) for images in (contents, styles))
                style_weight = jnp.float32(asked.style_weight)
                state, parts = _step(graphdef, optimizer, READINGS[asked.reading], style_weight, state, *batches)
                seen.append(parts)
                stop = preempted()
                if stop or (step + 1) % _EVERY == 0 or step + 1 == asked.steps:
                    _report(metrics, step + 1, seen)
                    seen = []
                    checkpoints.save(state)
                if stop:
                    preempted.leave()
    return nnx.merge(graphdef, state.params, state.statistics)


@functools.cache  # equal rates give one object, and one compile
def _optimizer(rate):
    return optax.adam(lambda step: rate / (1 + _DECAY * jnp.asarray(step, jnp.float32)))


def _rows(rng, images, number):
    return images[np.sort(rng.integers(len(images), size=number))]


def _report(metrics, step, seen):
    content, style = np.mean(jax.device_get(seen), axis=0).tolist()
    if not np.isfinite(content + style):
        raise NonFiniteLossError(
            f"the loss of step {step} is not finite; a smaller config.adain.learning_rate may help"
        )
    metrics.write(step, content_loss=content, style_loss=style)


def write(
    path: pathlib.Path, network: adain.StyleTransfer, styles: np.ndarray, reading: str, made_from: Mapping[str, Any]
) -> None:
    """Writes the weights and the statistics of styles uint8 [S, H, W, 3] (`weights.write`)."""
    graphdef, state = nnx.split(network)

    @jax.jit
    def moments(state, images):
        formulas = READINGS[reading]
        maps = nnx.merge(graphdef, state).encoder(images.astype(jnp.float32) / 255)[-1]
        return jnp.stack(adain.moments(maps, formulas.correction, formulas.style_epsilon))[:, :, 0, 0]

    pieces = []
    for start in bar("piece", range(0, len(styles), _PIECE)):
        rows = np.minimum(np.arange(start, start + _PIECE), len(styles) - 1)  # one shape, one compile
        pieces.append(np.asarray(moments(state, styles[rows])))
    mean, deviation = np.concatenate(pieces, axis=1)[:, : len(styles)]
    record = {**made_from, "reading": reading, "provenance": provenance()}
    weights.write(path, network, mean, deviation, READINGS[reading].correction, record)


if __name__ == "__main__":
    cli.define_flags("projects/structural/configs/style_decoder.py")
    command.run(cli.main(run, f"Weights of style transfer are in {{workdir}}/{FILE}."), cli.parse)
