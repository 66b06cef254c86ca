"""Parity through a real network: its errors on photographs that we corrupted, and that other libraries did.

    python -m benchmarks.real --images=DIR --peer_python=PEER --out=benchmarks/results/real_parity.md

DIR is laid out as for tools.real, PEER a Python with imagecorruptions-imaug or torch-uncertainty. Of each corruption of ImageNet-C the
table has the mean error over severities on our images, and by how much it is above that on theirs, with the 95 % interval over
photographs, which are the same. Draws are each library's own, so their noise is in the interval.
"""

from runtime import command  # isort: skip

import contextlib
import pathlib
import tempfile

import numpy as np
from absl import flags

import corruptions
import data
from benchmarks import timing
from corruptions.core.keys import named_key
from corruptions.scoring import intervals
from corruptions.scoring.conditions import expand
from data.decode import RESIZE
from evaluation import packaged
from runtime.files import write_atomically
from runtime.log import bar

PEERS = ("images.py", "tensors.py")


def errors(predict, images, labels, batch=50):
    """Finds which images are answered wrongly, bool [N]."""
    parts = [slice(start, start + batch) for start in range(0, len(labels), batch)]
    found = [np.asarray(predict(np.asarray(images[part], np.float32) / 255)).argmax(1) for part in parts]
    return np.concatenate(found) != labels


def difference(ours, theirs):
    """Writes by how many points the error `ours` is above `theirs`, both [N] on the same photographs, `mean [low, high]`."""
    apart = ours - theirs
    mean, half = apart.mean(), intervals.Z * intervals.of_mean(apart, paired=True)
    return f"{100 * mean:+.1f} [{100 * (mean - half):+.1f}, {100 * (mean + half):+.1f}]"


def row(name, images, labels, predict, peers, folder, severities):
    """Makes the cells after the name of a corruption."""
    ours = np.mean(
        [errors(predict, corruptions.corrupt(named_key(0, name), images, name, k), labels) for k in severities], 0
    )
    cells = [f"{100 * ours.mean():.1f}"]
    for place, peer in enumerate(peers):
        file = folder / f"{place}.npy"
        asked = {"name": name, "file": str(file), "severities": severities}
        if peer is None or peer.spend(**asked) is None or not file.exists():
            cells.append("-")
            continue
        theirs = np.mean([errors(predict, of_level, labels) for of_level in np.load(file)], 0)
        file.unlink()
        cells.append(difference(ours, theirs))
    return cells


def main(argv):
    given = command.given(argv, {"images": "DIR", "peer_python": "PYTHON"})
    severities = [int(one) for one in given.severities]
    predict, side, identity = packaged.predictor(given.network)
    shown = data.load("photographs", data_dir=given.images, image_size=side, resize=given.resize).test
    images, labels = np.asarray(shown.images), np.asarray(shown.labels)
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as ends:
        folder = pathlib.Path(place)
        np.save(folder / "shown.npy", images)
        stack = ends.enter_context
        found = [stack(timing.Peer(given.peer_python, script, str(folder / "shown.npy"))) for script in PEERS]
        names = [peer.hello["version"] for peer in found]
        peers = [peer if name and not name.startswith(",") else None for peer, name in zip(found, names)]
        rows = [
            (name, *row(name, images, labels, predict, peers, folder, severities))
            for name in bar("corruption", expand(given.corruptions), desc="parity")
        ]
    means = 100 * errors(predict, images, labels).mean()
    top = (
        f"# Parity through a real network\n\n{timing.title()}. {identity} on {len(labels)} photographs of {side} pixels, clean error {means:.1f} %. "
        f"Mean top-1 error over the severities {', '.join(given.severities)}, %, on our images, and ours less theirs with its paired 95 % interval. "
        f"Peers: {'; '.join(name or 'not installed' for name in names)}.\n\n"
    )
    text = top + timing.markdown(("corruption", "ours", "ours - imaug", "ours - torch-uncertainty"), rows)
    if given.out:
        write_atomically(given.out, text)
    print(text)


if __name__ == "__main__":
    flags.DEFINE_string("images", None, "Folder of photographs (required).")
    flags.DEFINE_string("peer_python", None, "Python with the other libraries (required).")
    flags.DEFINE_enum("network", "efficientnet-lite0", list(packaged.NETWORKS), "The network.")
    flags.DEFINE_list("corruptions", ["imagenet_c"], "Corruptions and benchmarks.")
    flags.DEFINE_list("severities", ["1", "2", "3", "4", "5"], "Severities, of which errors are means.")
    flags.DEFINE_enum("resize", "crop", RESIZE, "How photographs become square.")
    flags.DEFINE_string("out", "", "Markdown file to write.")
    command.run(main)
