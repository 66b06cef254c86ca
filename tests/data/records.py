"""Datasets that tfds itself writes, without TensorFlow."""

import io
import pathlib

import tensorflow_datasets as tfds
from PIL import Image


def builder_class(name, splits, version="1.0.0", configs=(), **features):
    """Makes a tfds builder of {split: records}, or of a function of the configuration that gives them.

    The image of a record is an array uint8 [H, W, 3]; tfds would need TensorFlow to encode it, so it is encoded here.
    """

    def info(self):
        known = tfds.features.FeaturesDict({"image": tfds.features.Image()} | features)
        return tfds.core.DatasetInfo(builder=self, description="Noise.", features=known, disable_shuffling=True)

    def examples(records):
        for number, record in enumerate(records):
            file = io.BytesIO()
            Image.fromarray(record["image"]).save(file, "PNG")
            file.seek(0)
            yield number, record | {"image": file}

    def generators(self, _):
        of_config = splits(self.builder_config.name) if callable(splits) else splits
        return {split: examples(records) for split, records in of_config.items()}

    body = {"VERSION": tfds.core.Version(version), "name": name, "pkg_dir_path": pathlib.Path(__file__).parent}
    body |= {"_info": info, "_split_generators": generators, "_generate_examples": examples}
    if configs:
        body["BUILDER_CONFIGS"] = [tfds.core.BuilderConfig(name=config, description=config) for config in configs]
    return type(name, (tfds.core.GeneratorBasedBuilder,), body, skip_registration=True)


def write(root, name, *arguments, config=None, **options):
    """Writes such a dataset below a folder, which it returns."""
    builder = builder_class(name, *arguments, **options)
    builder(data_dir=str(root), file_format="array_record", config=config).download_and_prepare()
    return root
