"""Downloads CIFAR-10 or CIFAR-100 and writes it as array_record, which is then read without TensorFlow.

    pip install "jax-corruptions[prepare]"
    python -m data.prepare --dataset=cifar10 --data_dir=~/tensorflow_datasets

170 MB are downloaded once; it takes a minute or two. TensorFlow is needed here and nowhere else.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

from data import tfds_source


def prepare(dataset: str, data_dir: str) -> Path:
    """Prepares `dataset` below `data_dir` and returns its folder; one that is already there is left as it is.

    Raises:
      ModuleNotFoundError: TensorFlow or TensorFlow Datasets is not installed.
      FileNotFoundError: the folder holds the data set in another file format.
    """
    parent = Path(data_dir).expanduser()
    if any((parent / dataset).glob("*/dataset_info.json")):
        return tfds_source.find(dataset, parent)
    missing = [name for name in ("tensorflow", "tensorflow_datasets") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"preparing {dataset} needs {' and '.join(missing)}, which is not installed (reading it later does not "
            'need TensorFlow). Install it with:\n  pip install "jax-corruptions[prepare]"'
        )
    import tensorflow_datasets as tfds

    builder = tfds.builder(dataset, data_dir=str(parent), file_format="array_record")
    builder.download_and_prepare()
    return tfds_source.find(dataset, parent)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m data.prepare", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", choices=sorted(tfds_source.CIFAR), required=True)
    parser.add_argument(
        "--data_dir", default="~/tensorflow_datasets", help="the folder to write <dataset>/<version> in"
    )
    flags = parser.parse_args(argv)
    try:
        print(prepare(flags.dataset, flags.data_dir))
    except (ModuleNotFoundError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
