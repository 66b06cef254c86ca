"""Images whose colours are the positions of their pixels, which show where a corruption looks."""

import jax
import numpy as np

import corruptions

SHAPE = (24, 33, 3)


def own_positions(height, width):
    return np.stack(np.mgrid[:height, :width], axis=-1).astype(np.float32)


def assert_looks_where_its_map_says(corruption):
    """Positions shown as colours, corrupted, are the map, but for what is mixed with the black outside
    (the third channel says which).
    """
    own, last = own_positions(*SHAPE[:2]), np.array(SHAPE[:2], np.float32) - 1
    image = np.concatenate([own / last, np.ones((*SHAPE[:2], 1), np.float32)], axis=-1)
    params = corruption.sample(jax.random.key(3), SHAPE, corruptions.severities(corruption)[-1])
    params = {**params, "light": np.float32(0)} if "light" in params else params
    found, where = (np.asarray(x) for x in (corruption.apply(image, params), corruption.coordinates(SHAPE, params)))
    assert where.shape == (*SHAPE[:2], 2) and where.dtype == np.float32
    inside = ((where >= 1) & (where <= last - 1)).all(-1) & (found[..., 2] > 1 - 1e-5)
    assert inside.mean() > 0.2 and np.abs(where - own)[inside].max() > 0.3
    np.testing.assert_allclose((found[..., :2] * last)[inside], where[inside], atol=1e-3)
