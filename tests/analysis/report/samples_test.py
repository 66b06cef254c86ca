"""Pictures of the corruptions of a study."""

import io

import numpy as np
from PIL import Image


def test_samples_follow_the_range_of_the_study():
    from analysis.report import samples

    config = {
        "dataset": {"image_size": 32},
        "train": {"corruption_options": {"imagenet_c/contrast": {"range": [1.5, 4.0]}}},
    }
    found = samples.draw(("noc/border", "imagenet_c/contrast", "x/unknown"), config)
    assert set(found.images) == {"noc/border", "imagenet_c/contrast"}
    assert found.columns["noc/border"] == ("0", "0.25", "0.5", "0.75", "1")
    for pictures in found.pictures.values():
        change = np.abs(pictures.astype(int) - pictures[0]).mean((1, 2, 3))
        assert len(pictures) == 6 and np.all(np.diff(change) > 0)
    published = samples.draw(("imagenet_c/contrast",), {})
    assert published.columns["imagenet_c/contrast"] == ("1", "2", "3", "4", "5")
    spread = [p.std() for p in (published.pictures["imagenet_c/contrast"], found.pictures["imagenet_c/contrast"])]
    assert spread[0] != spread[1]
    np.testing.assert_allclose(  # level 4 is the severe end of the calibrated range
        found.pictures["imagenet_c/contrast"][5].astype(int), published.pictures["imagenet_c/contrast"][4], atol=1
    )
    assert all(Image.open(io.BytesIO(png)).size == (6 * 64 + 5 * 2, 64) for png in found.images.values())
