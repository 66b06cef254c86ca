"""How each piece is measured: functions of the piece's settings that return a JSON-ready record."""

import functools
import json
import pathlib
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import corruptions
import models
from benchmarks import timing
from benchmarks.device import pixels
from configs import default, fast_cifar10
from data.dataset import Split
from evaluation import correctness
from evaluation.distances import features as msd
from runtime import meshes
from tests.reference.photographs import photograph, photographs
from training import augmentation, states, steps, study
from training import loop as loops

SGD = optax.chain(optax.add_decayed_weights(5e-4), optax.sgd(0.1, momentum=0.9))
CALLS = 8  # calls of a corruption back to back on an accelerator
CLASSES = {224: 1000}  # side -> classes of a network; 10 at other sides
NO_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "Out of memory")


def run(piece: Mapping[str, Any], data_dir: str) -> dict[str, Any]:
    """Measures a piece of `contract.pieces`. A batch that does not fit the device is halved, and the record says so."""
    settings = {key: value for key, value in piece.items() if key != "work"}
    if piece["work"] == "cifar10":
        settings["data_dir"] = data_dir
    batch = settings.get("batch")
    while True:
        try:
            measured = WORKS[piece["work"]](**settings)
            break
        except jax.errors.JaxRuntimeError as error:
            if not any(text in str(error) for text in NO_MEMORY) or settings.get("batch", 1) <= 1:
                raise
            settings["batch"] //= 2
    halved = {"batch_of_contract": batch} if settings.get("batch") != batch else {}
    return {key: value for key, value in settings.items() if key != "data_dir"} | measured | halved


def levels(name: str, number: int) -> np.ndarray:
    """Mixes the severities of a corruption evenly over a batch: int32 levels, or float32 fractions of a range, [N]."""
    known = corruptions.severities(name)
    return np.resize(np.asarray(known, np.int32 if isinstance(known[0], int) else np.float32), number)


def batch_of(side: int, number: int, dtype: str = "uint8") -> jax.Array:
    """Repeats 16 procedural photographs, [N, side, side, 3]."""
    images = np.resize(_photographs(side), (number, side, side, 3))
    return jax.device_put(images if dtype == "uint8" else images.astype(dtype) / np.dtype(dtype).type(255))


@functools.cache
def _photographs(side):
    return photographs(16, side, side)


def corruption(name: str, side: int, batch: int, dtype: str) -> dict[str, Any]:
    """Corrupts a batch, severities mixed.

    On a CPU by `corruptions.corrupt` as it is called, in pieces over the cores. On an accelerator in a jit, as in other
    programs, and eight calls back to back count as one, so that their dispatch matters little.
    """
    images, severity = batch_of(side, batch, dtype), levels(name, batch)
    if jax.default_backend() == "cpu":
        call = functools.partial(corruptions.corrupt, images=images, name=name, severity=severity, validate=False)
        times = timing.measure({name: lambda turn: call(jax.random.key(turn))})[name]
        return times.record(batch) | {"memory_bytes": timing.process_memory(lambda: call(jax.random.key(0)))}
    program = jax.jit(lambda key, images, severity: corruptions.corrupt(key, images, name, severity, validate=False))
    keys, severity = jax.block_until_ready(list(jax.random.split(jax.random.key(0), CALLS))), jnp.asarray(severity)
    compiled, seconds = compile_timed(program, keys[0], images, severity)
    times = timing.measure({name: lambda turn: [compiled(key, images, severity) for key in keys]})[name]
    return times.record(CALLS * batch) | seconds | {"calls": CALLS}


def compile_timed(program: Any, *arguments: Any) -> tuple[jax.stages.Compiled, dict[str, Any]]:
    """Compiles a jitted function apart: (program, {seconds, and the bytes that it holds at most on each device})."""
    start, cpu = time.perf_counter(), time.process_time()
    compiled = program.lower(*arguments).compile()
    seconds = {"compile_seconds": time.perf_counter() - start, "compile_cpu_seconds": time.process_time() - cpu}
    return compiled, seconds | {"memory_bytes": timing.program_memory(compiled)}


def network_on(mesh: jax.sharding.Mesh, name: str, side: int, dtype: str, optimizer: Any) -> Any:
    """Draws a network with the state of its optimiser, on all devices of a mesh: (graphdef, TrainState)."""
    graphdef, params, rest = nnx.split(models.build(name, CLASSES.get(side, 10), dtype=dtype), nnx.Param, ...)
    return graphdef, meshes.place_tree(states.initial_state(params, rest, optimizer), meshes.replicated(mesh))


def random_batches(side: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Draws images uint8 [..., side, side, 3] and labels int32 [...]."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (*shape, side, side, 3), np.uint8)
    return images, rng.integers(0, CLASSES.get(side, 10), shape).astype(np.int32)


class Training:
    """A block of `number` training steps on random images, compiled; call it for the next block.

    `corruption` is applied to half of each batch before the block; "" is none. Attributes: `compiling`, seconds and bytes of the
    program (`compile_timed`); `devices`, over which each batch is split: the cores of a CPU, one accelerator.
    """

    def __init__(self, name, side, batch, number, dtype, corruption=""):
        mesh = _training_mesh(batch)
        graphdef, self._state = network_on(mesh, name, side, dtype, SGD)
        images, labels = random_batches(side, (number, batch))
        over = meshes.batch_sharding(mesh, axis=1)
        self._images, self._labels = (meshes.place_array(array, over) for array in (images, labels))
        self._corruption, self._mesh = corruption, mesh
        self._key, self.devices = jax.random.key(0), mesh.size
        program = jax.jit(steps.train_block, static_argnums=(0, 1), donate_argnums=2)
        arguments = self._state, self._images, self._labels, self._key
        self._compiled, self.compiling = compile_timed(program, graphdef, SGD, *arguments)

    def __call__(self, turn):
        images = self._images
        if self._corruption:
            half = images.shape[1] // 2
            flat, key = images[:, :half].reshape(-1, *images.shape[2:]), jax.random.key(turn)
            corrupted = augmentation.corrupt_or_mix(self._mesh, self._corruption, key, flat, jnp.arange(len(flat)))
            images = images.at[:, :half].set(corrupted.reshape(images[:, :half].shape))
            images = jax.device_put(images, self._images.sharding)
        self._state, metrics = self._compiled(self._state, images, self._labels, self._key)
        return metrics


def training(network: str, side: int, batch: int, steps: int, dtype: str, corruption: str) -> dict[str, Any]:
    """Trains on random images; one call is a block of steps."""
    block = Training(network, side, batch, steps, dtype, corruption)
    measured = timing.measure({"": block})[""].record(steps * batch)
    return measured | share_of_peak(measured["images_per_second"], network, side, block.devices) | block.compiling


def loop(network: str, side: int, batch: int, steps: int, dtype: str, streamed: bool = False) -> dict[str, Any]:
    """Trains on random images as `train.py` does: the steps, and gathering, mirroring and reports around them.

    Each epoch has `steps` steps; the first one, which compiles, is left out. `streamed` keeps the images on the host.
    """
    config = default.get_config()
    config.model.name, config.model.dtype = network, dtype
    config.train.update(batch_size=batch, epochs=6, checkpoint_epochs=6)
    mesh = _training_mesh(batch)
    images, labels = random_batches(side, (steps * batch,))
    split = Split(images, labels, np.arange(len(labels), dtype=np.int32))
    split = split if streamed else split.to_device(meshes.replicated(mesh))
    settings = study.model_config(config, "standard", 0, mesh.shape["data"])
    _, rates, _ = _trained(settings, split, CLASSES.get(side, 10), mesh)
    return {"images_per_second": float(np.median(rates[1:])), "repetitions": len(rates) - 1}


def _trained(settings, split, classes, mesh):
    """Trains in a folder that does not stay: (model, [images per second] of the blocks, seconds)."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        model = loops.train(settings, split, classes, pathlib.Path(folder), mesh=mesh)
        seconds = time.perf_counter() - start
        lines = (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()
    return model, [json.loads(line)["images_per_second"] for line in lines], seconds


def _training_mesh(batch):
    mesh = meshes.data_mesh(batch)
    return mesh if jax.default_backend() == "cpu" else jax.sharding.Mesh(mesh.devices[:, :1], mesh.axis_names)


def share_of_peak(rate: float, name: str, side: int, devices: int) -> dict[str, Any]:
    """Computes the share of the peak of the devices in use; only the operations if no peak is known."""
    flops = timing.training_flops(name, side, CLASSES.get(side, 10))
    found = {"flops_per_image": flops}
    try:
        bound, source = timing.peak_flops()
    except ValueError:
        return found
    return found | {"share_of_peak": flops * rate / (bound * devices / len(jax.devices())), "peak": source}


def several_models(network: str, side: int, batch: int, dtype: str) -> dict[str, Any]:
    """Trains several models at once, two steps a call: one on each device, or four in one program on a single device."""
    number = len(jax.devices()) if len(jax.devices()) > 1 else 4
    graphdef, state = network_on(_training_mesh(1), network, side, dtype, SGD)
    images, labels = random_batches(side, (number, 2, batch))
    stacked = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[None], number, 0), state)
    arguments = [stacked, images, labels, jax.random.split(jax.random.key(0), number)]
    if len(jax.devices()) > 1:
        mesh = jax.sharding.Mesh(np.asarray(jax.devices())[:, None], ("model", "data"))
        arguments[1:3] = (array.reshape(-1, *array.shape[2:]) for array in (images, labels))
        arguments = [meshes.place_tree(array, meshes.by_model(mesh)) for array in arguments]
        compiled, seconds = compile_timed(steps.train_models_block, mesh, graphdef, SGD, *arguments)
    else:
        program = jax.jit(jax.vmap(functools.partial(steps.train_block, graphdef, SGD)), donate_argnums=0)
        compiled, seconds = compile_timed(program, *jax.device_put(arguments))

    def work(turn):
        arguments[0], metrics = compiled(*arguments)
        return metrics

    measured = timing.measure({"": work})[""].record(2 * number * batch)
    share = share_of_peak(measured["images_per_second"], network, side, len(jax.devices()))
    return measured | share | seconds | {"models": number}


def answers(network: str, side: int, batch: int, dtype: str, corruption: str) -> dict[str, Any]:
    """Classifies four batches, corrupted or unchanged."""
    mesh, number = meshes.data_mesh(batch), 4 * batch
    model = network_on(mesh, network, side, dtype, optax.identity())
    images = meshes.place_array(np.asarray(batch_of(side, number)), meshes.replicated(mesh))
    labels, index = jnp.zeros(number, int), jnp.arange(number)

    def work(turn):
        key, shown = jax.random.key(turn), images
        if corruption:
            shown = augmentation.corrupt_on_mesh(mesh, key, images, corruption, None, index, {})
        return correctness.of_model(model, shown, labels, batch, mesh)

    return timing.measure({"": work})[""].record(number) | {"devices": mesh.size}


def features(network: str, side: int, images: int, batch: int, dtype: str) -> dict[str, Any]:
    """Computes MSD features: transforms of AugMix, each applied to all images."""
    mesh = meshes.data_mesh(batch)
    graphdef, state = network_on(mesh, network, side, dtype, optax.identity())
    shown, weights = photographs(images, side, side), np.full((1, images), 1 / images, np.float32)
    extractor = msd.Extractor(mesh, graphdef, state, shown, weights, batch)
    scheme = msd.of_scheme("augmix")

    def work(turn):
        drawn = msd.drawn(scheme, jax.random.key(turn), jnp.arange(extractor.chunk), shown.shape[1:])
        return extractor(scheme.apply, drawn)

    return timing.measure({"": work})[""].record(extractor.chunk * images) | {"devices": mesh.size}


def many_sizes(name: str, number: int) -> dict[str, Any]:
    """Corrupts images of as many sizes, sides 150 to 499, by `corrupt_each`, one after another."""
    rng = np.random.default_rng(0)
    images = [photograph(*shape) for shape in rng.integers(150, 500, (number, 2))]
    work = lambda turn: list(corruptions.corrupt_each(jax.random.key(turn), images, name, 3))  # noqa: E731
    return timing.measure({"": work})[""].record(number)


def cifar10(variant: str, seed: int, data_dir: str) -> dict[str, Any]:
    """Trains the network of configs/fast_cifar10.py and tests it.

    `seconds` is the whole training; `seconds_later` leaves out its first block, in which programs are compiled.
    """
    config, mesh, (dataset, train, test) = _cifar10_data(variant, data_dir)
    settings = study.model_config(config, "standard", seed, mesh.shape["data"])
    model, rates, seconds = _trained(settings, train, dataset.num_classes, mesh)
    correct = correctness.of_model(model, test.images, jnp.asarray(test.labels), 500, mesh)
    rate = float(np.median(rates[1:] or rates))
    later = {"seconds_later": config.train.epochs * len(train) / rate, "images_per_second": rate}
    return {"seconds": seconds} | later | {"accuracy": float(correct.mean()), "data": dataset.name}


@functools.cache
def _cifar10_data(variant, data_dir):
    """(config, mesh, (dataset, training images, test images)), read once for all seeds."""
    config = fast_cifar10.get_config(variant)
    config.dataset.data_dir = data_dir
    mesh = meshes.data_mesh(config.train.batch_size)
    return config, mesh, study.load_data(config, mesh)


_OWN = (corruption, training, loop, several_models, answers, features, many_sizes, cifar10)
WORKS = {function.__name__: function for function in _OWN} | {"pixels": pixels.compare}
