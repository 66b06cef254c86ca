"""Multiply-adds of networks: published ones, and those of a small network counted by hand."""

import pytest

from models import costs
from models.densenet import DENSENETS

# 10^9 multiply-adds at 224 pixels, four digits: counted from the papers' definitions.
PUBLISHED = {
    "condensenet74_8_converted": 0.262,
    "multigrid34": 5.760,
    "resnet50": 4.089,
    "resnext50": 4.230,
    "resnext101_32x4d": 7.970,
    "resnext101_64x4d": 15.46,
    "densenet121": 2.834,
    "densenet161": 7.728,
    "densenet264_k48": 12.85,
    "condensenet74_4_converted": 0.517,
}
EXITS = {  # 10^6, up to each exit
    "msdnet": (612.0, 1430.8, 2276.4, 2959.9, 3246.2),
    "msdnet_step4": (337.2, 681.7, 1003.7, 1249.6, 1355.6),
}


def saved_by_transitions(name):
    """DenseNets' transitions take the mean before the convolution, which leaves a quarter of it."""
    growth, sizes = DENSENETS[name]
    channels, side, saved = 2 * growth, 56, 0
    for layers in sizes[:-1]:
        channels += layers * growth
        saved += 3 / 4 * side**2 * channels * (channels // 2)
        channels, side = channels // 2, side // 2
    return saved


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_multiply_adds_are_the_published_ones(name):
    counted = costs.multiply_adds(name) + (saved_by_transitions(name) if name.startswith("densenet") else 0)
    assert float(f"{counted / 1e9:.4g}") == pytest.approx(PUBLISHED[name], abs=6e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXITS)
def test_multiply_adds_up_to_each_exit_are_the_published_ones(name):
    assert [round(cost / 1e6, 1) for cost in costs.at_exits(name)] == list(EXITS[name])


def test_products_are_those_of_the_layers():
    """Counts for a network with one linear layer at its end; its stem sees 2x2 pixels as 12 channels."""
    found = costs.products("small_resnet", 32, 7)
    assert [product.linear for product in found] == [False] * (len(found) - 1) + [True]
    assert found[0].multiply_adds == 16 * 16 * 9 * 12 * 24 and found[-1].multiply_adds == 96 * 7


def test_attention_counts_every_pair_of_tokens():
    """197 tokens of 192 channels in 12 blocks, three heads of 64: four linear layers, scores and sums of values."""
    linear, pairs = 192 * (576 + 192 + 2 * 768), 2 * 197**2 * 192
    assert costs.multiply_adds("deit_tiny") == 12 * (197 * linear + pairs) + 196 * 768 * 192 + 192 * 1000
