"""Shows streams of corrupted images to networks that adapt while they predict; draws their error over time.

    python -m tools.streams --workdir=runs/wrn --streams=continual,mixed --methods=source,bn1,tent
    python -m tools.streams --workdir=runs/wrn --streams=correlated --delta=0 --reset=shift
    python -m tools.streams --workdir=runs/wrn --streams=continual --batch=1 --window=64 --methods=bn1,tent
    python -m tools.streams --workdir=runs/wrn --streams=continual --methods=tent --eta=1
    python -m tools.streams --workdir=runs/wrn --streams=ccc --target=40 --speed=1000 --walks=10
    python -m tools.streams --from=efficientnet-lite0 --workdir=runs/lite0 --methods=source,bn1,tent \\
        --config.dataset.name=photographs --config.dataset.data_dir=DIR

The workdir is one of train.py or overlap.py, or of eval.py with imported weights; with --from it is made of the weights of an
installed package (`evaluation.packaged`). A stream shows the test images under
--corruptions (`evaluation.streams.orders`). Methods have their published settings for the size of the images
(`evaluation.streams.methods`). Writes to WORKDIR/streams

    streams.csv, streams.md     error of each model, stream and method, with all its settings
    segments.csv                the same for each condition
    STREAM.png, STREAM.pdf      error over time

and the predicted classes of each finished stream. Stopped anywhere, the same command continues with the first unfinished
stream and gives the same numbers. --eta counts time: a method that takes C times as long as the plain network adapts to every
ceil(eta C)-th batch only. C is measured once and kept in costs.json, or given by --cost. The network as last adapted
answers the other batches, or chance does (--between=random).
"""

from runtime import command  # isort: skip

import functools
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from absl import flags
from ml_collections import ConfigDict

from analysis import figures, frames, streams
from analysis.answers import Key
from analysis.frames import with_error
from corruptions.core import checks, origin
from corruptions.core.keys import prng
from corruptions.core.origin import Probe
from corruptions.scoring.conditions import expand
from data import balanced_prefix
from data.dataset import cut
from evaluation import bound, packaged, trained_models
from evaluation.correctness import of_model
from evaluation.evaluate import digests
from evaluation.shown import Shown
from evaluation.streams import methods, orders, run, shown, walks
from evaluation.streams.networks import Weights
from evaluation.streams.tent import Start
from models import vit
from runtime import artifacts, meshes
from runtime.artifacts import provenance, summary
from runtime.log import bar, log
from runtime.workdirs import Workdir
from training import cli, study

COLUMNS = (
    *("model", "seed", "stream", "method", "prediction", "settings", "batch", "reset", "adapts_to_every", "eta"),
    *("between", "corruptions", "order", "order_seed", "severity", "images_per_condition", "images"),
    *("same_class_as_before", "error", "error_se", "fewest_classes"),
)
CCC = "ccc"
_CALIBRATION = 2000  # images for an accuracy of a walk
_CLEAN = 2000  # images for EATA's penalty
_SHORT = ("model", "stream", "method", "prediction", "settings", "batch", "reset", "error", "fewest_classes")


def define_flags():
    """Defines the flags of the tool."""
    flags.DEFINE_enum(
        "from", None, list(packaged.NETWORKS), "An installed package of weights, of which WORKDIR is made."
    )
    flags.DEFINE_list("streams", ["continual"], f"Kinds of streams: {', '.join((*orders.KINDS, CCC))}.")
    flags.DEFINE_list("methods", list(methods.names()), "How the networks adapt.")
    flags.DEFINE_list("corruptions", ["imagenet_c"], "Corruptions and benchmarks, in the order of the stream.")
    flags.DEFINE_float("severity", 5, "Severity of all conditions; the gradual ones take 1 to 5.")
    flags.DEFINE_integer("batch", 0, "Images in a batch; 0 is 200 below 64 pixels, else 64.", lower_bound=0)
    flags.DEFINE_integer("window", 0, "With --batch=1: images that a method sees at once; 0 is none.", lower_bound=0)
    flags.DEFINE_string("reset", "never", "When a method is reset: never, shift, batch, or every N batches.")
    flags.DEFINE_integer("order", -1, "One of the ten published orders, 0 to 9; -1 is the order given.", -1, 9)
    flags.DEFINE_integer("seed", 1, "Seed of the order of the images.", lower_bound=0)
    plain = f"{', '.join(orders.PLAIN)}: images in the order of the dataset."
    flags.DEFINE_bool("stored_order", False, plain)
    delta = "Correlated streams: 0 sorts by class, in slots it is .1; more is a Dirichlet draw."
    flags.DEFINE_float("delta", 0.0, delta, lower_bound=0)
    flags.DEFINE_float("ratio", 500_000, "label_shift: how much more frequent the class of a block is.", lower_bound=1)
    flags.DEFINE_integer("images", 0, "Test images of each condition, balanced over classes; 0 is all.", lower_bound=0)
    flags.DEFINE_float("target", 40.0, "ccc: mean accuracy of the unadapted network along a walk, in percent.")
    flags.DEFINE_integer("speed", 1000, "ccc: images at each node of a walk.", lower_bound=1)
    flags.DEFINE_integer("walks", 3, "ccc: walks from one corruption to another.", lower_bound=1)
    flags.DEFINE_float(
        "eta", 0.0, "Speed of the stream, 0 to 1; 0 waits for the method.", lower_bound=0.0, upper_bound=1.0
    )
    flags.DEFINE_float("cost", 0.0, "C of every method instead of measuring it; 0 measures.", lower_bound=0)
    between = "Answers to batches that a method has no time for: by the network as last adapted, or by chance."
    flags.DEFINE_enum("between", "adapted", ["adapted", "random"], between)


def make(kind: str, labels: np.ndarray, given: Any) -> orders.Stream:
    """Makes a stream as the flags say.

    Raises:
      ValueError: an unknown kind or corruption, more images than there are, or an order of other corruptions.
    """
    if kind not in orders.KINDS:
        checks.one_of("streams", "--streams", kind, (*orders.KINDS, CCC))
    names = listed(given.corruptions)
    if given.order >= 0:
        if len(names) != len(orders.STANDARD):
            raise ValueError(f"expected {len(orders.STANDARD)} corruptions with --order, found {len(names)}")
        names = [names[number] for number in orders.ORDERS[given.order]]
    settings: dict[str, Any] = {"seed": None if kind in orders.PLAIN and given.stored_order else given.seed}
    if not kind.startswith("gradual"):
        settings["severity"] = given.severity
    if "correlated" in kind:
        settings["delta"] = given.delta
    if kind == "label_shift":
        settings["ratio"] = given.ratio
    rows = chosen(labels, given.images)
    return orders.KINDS[kind](labels[rows], tuple(names), **settings).of(rows)


def chosen(labels: np.ndarray, number: int) -> np.ndarray:
    """Chooses so many images, 0 for all, with the classes as equal as possible: positions in stored order.

    Raises:
      ValueError: there are fewer.
    """
    if number > len(labels):
        raise ValueError(f"expected --images up to the {len(labels)} test images, found {number}")
    return np.sort(balanced_prefix(labels, number or None))


def listed(asked: list[str]) -> list[str]:
    """Lists the corruptions of names and benchmarks, in order."""
    return [name for one in asked for name in expand([one])]


class Asked(NamedTuple):
    """The common settings of all streams of a command."""

    given: Any  # flags
    batch: int
    shown: Shown  # test images, with digests, seed and options of their corruptions
    folder: Workdir
    network: str
    digests: dict[Key, str]
    start: Start
    probe: Callable[[str, float, Probe | None], Probe]  # of the images under a corruption and severity, as a stored one

    def images(self) -> dict[str, Any]:
        """Records the test images and the seed of their corruptions."""
        return {"digests": dict(self.shown.digests), "seed": self.shown.seed, "prng": prng()}

    def kept(
        self,
        made_from: dict[str, Any],
        show: Callable[[], np.ndarray],
        segments: Iterable[orders.Segment],
        *about: object,
    ) -> np.ndarray:
        """Reads the answers with this origin from a file named by `about`, or shows the segments and writes them."""
        stem = "-".join(str(part).replace("/", ".") for part in about)
        path = self.folder / f"{stem}-{artifacts.digest(made_from)[:10]}.npz"
        under = sorted({part for segment in segments for part in segment.parts})
        imports = self.shown.about.get("imports", ())
        made = {name: origin.make(corruption=name, imports=imports) for name, _ in under}
        parts = {
            f"{name} {at:g}": bound.Part(made[name], functools.partial(self.probe, name, at)) for name, at in under
        }
        return bound.kept(path, made_from, lambda: {"predictions": show()}, run.REMEDY, parts)["predictions"]


def _once(probe):
    """Calls `probe(name, severity, stored)` once for each corruption, severity and kind of stored probe."""
    known = {}

    def probed(name, severity, stored):
        at = (name, severity, stored is not None and "places" not in stored)
        if at not in known:
            known[at] = probe(name, severity, stored)
        return known[at]

    return probed


def measure(config: ConfigDict, workdir: pathlib.Path, given: Any) -> str:
    """Shows every stream to every model and method; returns the table that it prints."""
    trained_models.refuse_eval_only(config, "images")
    if getattr(given, "from"):
        packaged.configure(config, getattr(given, "from"))
    if not given.eta and (given.cost or given.between != "adapted"):
        raise ValueError("expected --eta with --cost or --between, which say what a stream does that does not wait")
    mesh = meshes.data_mesh(1)
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.apply_eval(trained, config)
        dataset, _, split = study.load_data(trained, mesh, placed=("test",), listed=config.eval.images)
        side, labels = dataset.image_shape[0], np.asarray(split.labels)
        batch = given.batch or (200 if side < 64 else 64)
        if CCC in given.streams and given.speed > (number := len(chosen(labels, given.images))):
            raise ValueError(f"expected --speed up to the {number} test images of a walk, found {given.speed}")
        run.plan(1, np.zeros(0, int), batch, given.reset)  # refuses an unknown policy
        made = {kind: make(kind, labels, given) for kind in given.streams if kind != CCC}
        longest = max((len(stream.image) for stream in made.values()), default=len(split))
        if batch > longest and batch * side**2 * 12 > 2**30:  # bytes of a batch that is mostly filling
            raise ValueError(f"expected --batch up to {longest}, the images of the longest stream, found {batch}")
        known = (batch, side, dataset.num_classes, given.window, trained.model.name in vit.FAMILY)
        ways = {name: methods.make(name, *known) for name in given.methods}
        for stream in made.values():
            shown.check(stream, split)
        models = trained_models.read_models(workdir, dataset, mesh)
        for graphdef, state in models.values():
            for method in ways.values():
                method.check(graphdef, Weights.of(state))
        folder = Workdir(workdir).folder("streams")
        start = Start(dataset.num_classes, (batch, *dataset.image_shape), None)
        if any(method.needs_source for method in ways.values()):
            start = start._replace(source=_clean(dataset.train, given.window or batch, side))
        source = Shown.of(trained, split, mesh, dataset)
        drawn = {"seed": source.seed, "mesh": source.mesh, "options": source.options}
        probe = _once(functools.partial(shown.probe, split, **drawn))
        asked = Asked(given, batch, source, folder, trained.model.name, digests(models), start, probe)
        if CCC in given.streams:
            made[CCC] = _continuous(asked, models)
        log.info("Streams show %s (--corruptions).", ", ".join(given.corruptions))
        rows, segments = [], []
        for kind, stream in made.items():
            truth, wrong = labels[stream.image], {}
            todo = [(key, *way) for key in models for way in ways.items()]
            for key, name, method in bar("method", todo, desc=kind):
                found, every = _answers(asked, kind, stream, key, models[key], name, method)
                of_method = found != truth
                wrong[name if len(models) == 1 else f"{key[0]}, {key[1]}: {name}"] = of_method
                scores = *streams.error(of_method, stream.image), streams.fewest_classes(found, batch)
                rows.append((*key, *_row(asked, kind, stream, truth, method, every), *scores))
                of_segment = streams.by_segment(of_method, stream.segment, len(stream.segments))
                for number, (segment, value) in enumerate(zip(stream.segments, of_segment, strict=True)):
                    segments.append((*key, _name(stream, given), name, number, segment.label, float(value)))
            if len(wrong) <= len(streams.COLOURS):
                note = f"{dataset.name}, batch {batch}, reset {given.reset}, {summary(provenance())}"
                picture = streams.picture(wrong, stream.shifts, f"Error over time, {kind}", note)
                figures.save(picture, folder / kind)
            else:
                figures.remove(folder.path, [kind])
                log.info("No picture of %s: %d curves are more than %d.", kind, len(wrong), len(streams.COLOURS))
        frame = frames.of_rows(rows, COLUMNS)
        cells = frame.assign(error=[with_error(e, s) for e, s in zip(frame.error, frame.error_se, strict=True)])
        text = frames.markdown(cells[list(_SHORT)].astype(str))
        comment = f"{dataset.name}, {summary(provenance())}"
        frames.write(folder / "streams.csv", frame, comment)
        columns = ("model", "seed", "stream", "method", "number", "condition", "error")
        frames.write(folder / "segments.csv", frames.of_rows(segments, columns), comment)
        folder.write_text("streams.md", text + "\n")
    return text


def _continuous(asked, models):
    """Makes the stream of walks from the accuracies of the only model; stores and prints these accuracies."""
    if len(models) != 1:
        raise ValueError(f"expected one model for {CCC}, by whose accuracies walks are found, found {len(models)}")
    ((key, model),), given, source = models.items(), asked.given, asked.shown
    split = source.split
    in_stream = chosen(np.asarray(split.labels), given.images)
    rows = balanced_prefix(np.asarray(split.labels), min(_CALIBRATION, len(split)))
    labels, index = np.asarray(split.labels)[rows], np.asarray(split.index)[rows]

    def measure(first, second):
        options = {name: dict(source.options.get(name, {})) for name in (first, second)}
        made_from = {"model": asked.digests[key], "first": first, "second": second, "grid": list(walks.GRID)}
        made_from |= {"images": asked.images(), "number": len(rows), "options": options}

        def accuracies():
            found = np.zeros([len(walks.GRID)] * 2, np.float32)
            pixels = jnp.asarray(split.images[rows])
            for node in bar("node", list(np.ndindex(found.shape)), desc=f"{first} to {second}"):
                condition = walks.segment(first, second, node)
                images = shown.corrupted(pixels, index, condition, source.seed, source.mesh, source.options)
                found[node] = 100 * of_model(model, images, jnp.asarray(labels), asked.batch, source.mesh).mean()
            return found

        every = [walks.segment(first, second, node) for node in np.ndindex(len(walks.GRID), len(walks.GRID))]
        return asked.kept(made_from, accuracies, every, CCC, *key, first, second)

    found = walks.walks(listed(given.corruptions), given.walks, given.target, measure, given.seed)
    for walk in found:
        mean, spread = np.mean(walk.accuracy), np.std(walk.accuracy)
        text = "%s to %s: %d nodes, accuracy of the unadapted network %.1f %% on average, standard deviation %.1f."
        log.info(text, walk.first, walk.second, len(walk.path), mean, spread)
    return walks.stream(found, len(in_stream), given.speed, given.seed).of(in_stream)


def _clean(split, batch, side):
    """Batches [M, B, H, W, 3] of up to 2,000 training images, balanced over classes and cut to the test images' side."""
    number = min(_CLEAN, len(split)) // batch
    if not number:
        raise ValueError(
            f"expected {batch} training images or more, a batch, for methods that begin with them, found {len(split)}"
        )
    images = cut(split, balanced_prefix(np.asarray(split.labels), number * batch), side)
    return images.reshape(number, batch, *images.shape[1:])


def _answers(asked, kind, stream, key, model, name, method):
    """Gives (predicted classes, number of batches for each adaptation); reads stored classes."""
    graphdef, weights, source = model[0], Weights.of(model[1]), asked.shown
    every = _every(asked, name, method, graphdef, weights)
    plan = run.plan(len(stream), stream.shifts, asked.batch, asked.given.reset, every)
    corrupting = sorted({part for segment in stream.segments for part, _ in segment.parts})
    made_from = {
        **{"model": asked.digests[key], "stream": stream.name, "method": name, "settings": method.settings},
        **{"batch": asked.batch, "reset": asked.given.reset, "every": every},
        "order": artifacts.digest([stream.image.tolist(), stream.segment.tolist()]),
        "segments": [list(map(list, segment.parts)) for segment in stream.segments],
        "images": asked.images(),
        "options": {part: dict(source.options[part]) for part in corrupting if part in source.options},
    }

    def images(number):
        return shown.pieces(source.split, stream, number, source.seed, source.mesh, source.options)

    def show():
        return run.predictions(graphdef, weights, method, images, plan, asked.start)

    answers = asked.kept(made_from, show, stream.segments, *key, kind, name)
    if asked.given.between == "random":
        chance = np.random.default_rng([asked.given.seed, 3]).integers(0, asked.start.classes, len(answers))
        answers = np.where(np.repeat(plan.adapts, asked.batch)[: len(answers)], answers, chance)
    return answers, every


def _name(stream, given):
    """Names a stream with its settings."""
    return f"{CCC}:{given.target:g}:{given.speed}:{given.walks}" if stream.name == CCC else stream.name


def _row(asked, kind, stream, truth, method, every):
    given, conditions = asked.given, len(stream) // len(stream.segments)
    severity = "" if kind == CCC else "1-5" if kind.startswith("gradual") else given.severity
    seed = "" if kind in orders.PLAIN and given.stored_order else given.seed
    order = given.order if given.order >= 0 and kind != CCC else ""
    return (
        *(_name(stream, given), method.name, method.prediction, method.settings, asked.batch, given.reset, every),
        *(given.eta, given.between if every > 1 else "", " ".join(given.corruptions), order, seed, severity),
        *(conditions, len(stream), orders.neighbours(truth)),
    )


def _every(asked, name, method, graphdef, weights):
    """Computes the number of batches for each adaptation, from the stored cost of the method on this device."""
    given, path = asked.given, asked.folder / "costs.json"
    if not given.eta or given.cost:
        return run.skipping(given.cost or 1, given.eta)
    costs = artifacts.read_record(path, "remove it to measure again") if path.exists() else {}
    key = f"{asked.network}, {name}, {method.settings}, batch {asked.batch}, {provenance()['device']}"
    if key not in costs:
        images = np.asarray(asked.shown.split.images[: asked.batch])
        costs[key] = round(run.cost(graphdef, weights, method, images, asked.start), 3)
        artifacts.write_record(path, costs)
    return run.skipping(costs[key], given.eta)


if __name__ == "__main__":
    cli.define_flags()
    define_flags()
    work = functools.partial(measure, given=flags.FLAGS)
    command.run(cli.main(work, "Results are in {workdir}/streams."), cli.parse)
