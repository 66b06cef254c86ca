"""Sample images of the corruptions of a study."""

import numpy as np

import data
from analysis.report import samples


def test_samples_follow_the_range_of_the_study():
    image = samples.test_image({"name": "shapes", "image_size": 32, "placement": "auto", "data_dir": ""})
    for name, options in (("noc/border", {}), ("imagenet_c/contrast", {"range": [1.5, 4.0]})):
        pictures = np.concatenate([image[None], samples.corrupted(name, image, options)]).astype(int)
        change = np.abs(pictures - image).mean((1, 2, 3))
        assert len(pictures) == 6 and np.all(np.diff(change) > 0)
    published = samples.corrupted("imagenet_c/contrast", image, {}).astype(int)
    assert published.std() != pictures[1:].std()
    np.testing.assert_allclose(pictures[5], published[3], atol=1)  # level 4 is the severe end of the range


def test_the_image_is_a_test_image_of_the_study():
    image = samples.test_image({"name": "shapes", "seed": 3, "test_limit": 50})
    images = data.load("shapes", seed=3, test_limit=50, train_limit=1).test.images
    assert any(np.array_equal(image, other) for other in np.asarray(images))


def test_a_corruption_that_is_not_known_has_no_row():
    config = {"dataset": {"name": "shapes"}}
    both, caption = samples.draw(("noc/border", "x/unknown"), config)
    alone, _ = samples.draw(("noc/border",), config)
    np.testing.assert_array_equal(np.asarray(both), np.asarray(alone))
    assert caption.startswith("a test image of shapes, 32\N{MULTIPLICATION SIGN}32 pixels")
