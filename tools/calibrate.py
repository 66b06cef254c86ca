"""Calibrates severity ranges: over each, the robustness R of a trained model falls from .95 to .50.

    python train.py     --config=configs/default.py --workdir=runs/standard
    python -m tools.calibrate --workdir=runs/standard --config.calibrate.corruptions="('noc_candidates',)"

The workdir is one of train.py, or of overlap.py (its standard model is used); only the `calibrate` and `eval` settings
of the config matter. Writes WORKDIR/ranges.json after each corruption; the same command continues. Training and
evaluation use it with --config.ranges=WORKDIR/ranges.json.
"""

from absl import app
from tqdm import tqdm

from analysis import calibration
from evaluation import trained_models
from evaluation.conditions import expand
from evaluation.robustness import Robustness
from runtime import command, compiles, meshes, settings, workdirs
from runtime.log import log
from runtime.provenance import provenance
from training import augmentation, cli, study


def run(config, workdir):
    """Calibrates config.calibrate.corruptions on the standard model of `workdir`; returns what ranges.json holds."""
    names = expand(config.calibrate.corruptions)
    mesh = meshes.data_mesh(config.eval.batch_size)
    with trained_models.open_workdir(workdir, config) as own:
        own.dataset.test_limit = config.calibrate.images
        own.ranges = ""
        dataset, _, split = study.load_data(own, mesh, placed=("test",))
        model, seed = _standard(
            trained_models.read_models(workdir, dataset.num_classes, split.images.shape[1], mesh), workdir
        )
        asked = {
            "dataset": dataset.name,
            "image_shape": list(dataset.image_shape),
            "images": len(split),
            "model": {"name": own.model.name, "epochs": own.train.epochs, "seed": seed},
            "targets": list(config.calibrate.targets),
            "seed": config.calibrate.seed,
        }
        path = workdir / "ranges.json"
        content = _read(path, asked) or asked | {"corruptions": {}}
        clean = None
        for name in tqdm(names, desc="corruptions", unit="corruption", dynamic_ncols=True):
            if name not in content["corruptions"]:
                robustness = Robustness(
                    mesh, model, split, name, seed=config.calibrate.seed, batch_size=config.eval.batch_size, clean=clean
                )
                clean = robustness.clean
                _check_model(clean, dataset.num_classes)
                content["corruptions"][name] = _entry(robustness, tuple(config.calibrate.targets))
                workdirs.write_json(path, content | {"provenance": provenance()})
    return content


def _entry(robustness, targets):
    """What ranges.json holds of one corruption."""
    noise = 2 * robustness.error(1.0)  # two standard errors of a difference hardly differ from this
    found = calibration.calibrate(
        robustness, robustness.domain, integer=robustness.integer, targets=targets, noise=noise
    )
    mean = robustness.over(found.range)
    return {
        "range": list(found.range),
        "unit": robustness.unit,
        "robustness": list(found.robustness),
        "robustness_se": [robustness.error(value) for value in found.robustness],
        "capped": list(found.capped),
        "monotone": found.monotone,
        "mean_robustness": mean,
        "mean_robustness_se": robustness.error(mean),
        "evaluations": [list(pair) for pair in found.evaluations],
    }


def _check_model(clean, num_classes):
    least = 1 / num_classes + 0.05
    if clean < least:
        raise ValueError(
            f"expected a standard model better than chance (clean accuracy at least {least:.3f} with {num_classes} "
            f"classes), found {clean:.3f}: its robustness means nothing"
        )


def _standard(models, workdir):
    """((graphdef, state), seed) of the standard model with the smallest seed."""
    seeds = sorted(seed for name, seed in models if name == augmentation.STANDARD)
    if not seeds:
        found = ", ".join(sorted({name for name, _ in models}))
        raise ValueError(f"expected a standard model in {workdir} (calibration is defined by it), found {found}")
    return models[augmentation.STANDARD, seeds[0]], seeds[0]


def _read(path, asked):
    """The stored ranges when they were made with the same settings; None when there are none."""
    if not path.exists():
        return None
    content = workdirs.read_json(path)
    stored = {key: content[key] for key in asked if key in content}
    settings.check_equal(stored, asked, f"{path} was made with other settings; move it away or use the same")
    return content


def show(content):
    """Prints the ranges and the robustness they reach."""
    width = max(map(len, content["corruptions"]))
    print(f"\n{'':{width}}        mild      severe     R mild         R severe       R mean  notes")
    for name, entry in content["corruptions"].items():
        mild, severe = entry["range"]
        ends = [f"{r:5.3f} +- {se:.3f}" for r, se in zip(entry["robustness"], entry["robustness_se"])]
        notes = [f"{end} target out of reach" for end, capped in zip(("mild", "severe"), entry["capped"]) if capped]
        notes += [
            f"{end} target not met: the parameter goes by steps"
            for end, r, se, target, capped in zip(
                ("mild", "severe"), entry["robustness"], entry["robustness_se"], content["targets"], entry["capped"]
            )
            if not capped and abs(r - target) > 2 * se
        ]
        notes += [] if entry["monotone"] else ["R does not fall monotonically: mildest crossing"]
        print(
            f"{name:{width}}  {mild:10.4g}  {severe:10.4g}  {ends[0]}  {ends[1]}  {entry['mean_robustness']:5.3f}"
            f"   {'; '.join(notes)}"
        )


def main(argv):
    with command.errors():
        config, workdir = cli.read_flags(argv)
        compiles.enable_compilation_cache()
        show(run(config, workdir))
    log.info("Ranges are in %s; use them with --config.ranges=%s.", workdir / "ranges.json", workdir / "ranges.json")


if __name__ == "__main__":
    cli.define_flags()
    app.run(main)
