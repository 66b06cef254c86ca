"""What a run was trained on, in its workdir: data.json, of runs with a second dataset mixed in."""

from training import distributed
from training.workdir import WorkdirError, config_differences, read_json, write_json


def record(path, dataset):
    """Writes what a model is trained on to data.json; refuses to go on with other training images.

    Raises:
      WorkdirError: the run was started with other images.
    """
    found = {"name": dataset.name, **dataset.provenance}
    stored = path / "data.json"
    before = distributed.from_main(lambda: read_json(stored) if stored.exists() else None)
    if before and (different := config_differences(_digests(before), _digests(found))):
        raise WorkdirError(f"{path} was trained on other images:\n  " + "\n  ".join(different))
    write_json(stored, found)


def _digests(found):
    both = (("first", found), ("mixed_in", found["mixed_in"]))
    return {name: one.get("train", {}).get("sha256", {}) for name, one in both}
