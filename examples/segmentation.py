"""Segmentation and detection under corruption: mPC, the mean performance, and rPC, its share of the clean performance.

    python -m examples.segmentation

After Michaelis et al., "Benchmarking Robustness in Object Detection" (2019). Generated scenes hold a disc; a pixel belongs to
what has the nearer mean colour. The disc's mask and box follow a corruption that has a map, else they stay.
"""

import jax
import numpy as np

import corruptions


def scenes(number, side, seed):
    """Draws images, uint8 [N, S, S, 3], and masks, bool [N, S, S]."""
    rng, (y, x) = np.random.default_rng(seed), np.mgrid[:side, :side]
    images, masks = rng.integers(0, 120, (number, side, side, 3)), np.zeros((number, side, side), bool)
    for image, mask in zip(images, masks):
        radius = rng.integers(side // 8, side // 4)
        dy, dx = (place - rng.integers(radius, side - radius) for place in (y, x))
        mask[:] = np.hypot(dy, dx) <= radius
        image[mask] = rng.integers((200, 40, 0), (256, 100, 60))
    return images.astype(np.uint8), masks


def boxes_of(masks):
    """Finds left, top, right and bottom edge, [N, 1, 4]; zeros where there is nothing."""
    seen = np.stack([masks.any(1), masks.any(2)], axis=1)
    edges = np.concatenate([seen.argmax(-1), seen.shape[-1] - seen[..., ::-1].argmax(-1)], axis=1)
    return (edges * seen.any((1, 2))[:, None])[:, None]


def performance(images, colours, masks, boxes):
    """IoU of disc and mask over all pixels, and the share of boxes found with an IoU of at least 1/2."""
    found = np.square(np.asarray(images)[..., None, :] - colours).sum(-1).argmin(-1) == 1
    own = boxes_of(found)
    shared = np.concatenate([np.maximum(own, boxes)[..., :2], np.minimum(own, boxes)[..., 2:]], axis=-1)
    first, second, inner = (np.maximum(b[..., 2:] - b[..., :2], 0).prod(-1) for b in (own, boxes, shared))
    return np.sum(found & masks) / np.sum(found | masks), np.mean(2 * inner >= first + second - inner)


def main(*names, number=32, side=64):
    key, (images, masks), (train, discs) = jax.random.key(0), scenes(number, side, 0), scenes(number, side, 1)
    colours = np.stack([train[~discs].mean(0), train[discs].mean(0)])
    table, clean = {name: [] for name in names}, performance(images, colours, masks, boxes_of(masks))
    for name, severity in [(each, severity) for each in names for severity in corruptions.severities(each)]:
        labels = masks, boxes_of(masks)
        if corruptions.get(name).mapper:
            where = corruptions.coordinates(key, images, name, severity, reflected=True)
            labels = corruptions.move_masks(labels[0], where), corruptions.move_boxes(labels[1], where)
        corrupted = corruptions.corrupt(key, images, name, severity)
        table[name].append(performance(corrupted, colours, *map(np.asarray, labels)))
    mpc = np.mean([np.mean(scores, axis=0) for scores in table.values()], axis=0)
    for what, *row in zip(("mask IoU", "boxes found"), clean, mpc, mpc / clean):
        print("{}: clean {:.3f}, mPC {:.3f}, rPC {:.3f}".format(what, *row))


if __name__ == "__main__":
    main(*corruptions.names("imagenet_c"), "noc/shear", "cbar/fish_eye")
