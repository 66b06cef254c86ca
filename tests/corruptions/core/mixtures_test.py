"""Corruptions made of others: each image goes through what it drew, and through nothing else."""

import jax
import jax.numpy as jnp
import numpy as np

import corruptions
from corruptions.core import batch, mixtures
from evaluation.distances import features as transforms
from tests.corruptions.comparing import refused
from tests.pages import example_of
from tests.reference.photographs import photographs
from tests.refusing import refuses

KEY = jax.random.key(7)
IMAGES = photographs(9, 32, 32).astype(np.float32) / np.float32(255)
MEMBERS = ("noc/border", "noc/brightness", "imagenet_c/contrast")
CLOSE = {"rtol": 0, "atol": 1e-3 / 255}


def drawn_for(corruption, number):
    """Lists the member that each image of a batch draws."""
    return [corruption.sample(batch.image_key(KEY, jnp.int32(i)), (32, 32, 3)) for i in range(number)]


def alone(params, names, image):
    """A drawn member, applied by itself; fractions are levels where it has levels."""
    if params["which"] == len(names):
        return image
    member, severity = corruptions.get(names[int(params["which"])]), params["severity"]
    if isinstance(member.scale, corruptions.Levels):
        severity = min(int(np.floor(severity * 5)) + 1, 5)
    return member.apply(image, member.sample(params["key"], image.shape, severity))


def test_each_image_of_a_batch_goes_through_the_member_it_drew():
    choice = corruptions.random_choice(MEMBERS, probability=0.6)
    params = drawn_for(choice, len(IMAGES))
    assert {int(p["which"]) for p in params} == {0, 1, 2, 3}
    found = corruptions.corrupt(KEY, IMAGES, choice)
    for image, own, corrupted in zip(IMAGES, params, found, strict=True):
        np.testing.assert_allclose(corrupted, alone(own, MEMBERS, image), **CLOSE)
    assert corruptions.random_choice(list(MEMBERS), probability=0.6) is choice
    assert corruptions.corrupt(KEY, IMAGES[:0], choice).shape == (0, 32, 32, 3)


def test_a_batch_computes_no_member_that_it_did_not_draw():
    choice = corruptions.random_choice(("noc/border", "noc/brightness", "noc/hue"))  # without forms for platforms
    text = jax.jit(lambda x: corruptions.corrupt(KEY, x, choice)).lower(IMAGES[:5]).as_text()
    assert text.count("stablehlo.case") == 1
    every = jax.jit(jax.vmap(lambda w: jax.lax.switch(w, [jnp.sin, jnp.cos], 1.0))).lower(jnp.arange(2)).as_text()
    assert "stablehlo.case" not in every  # a switch becomes a select under vmap


def test_shares_follow_weights_and_probability():
    choice = corruptions.random_choice(MEMBERS, weights=(3, 0, 1), probability=0.8)
    many = jax.random.split(KEY, 4000)
    which = np.asarray(jax.vmap(lambda key: choice.sample(key, (32, 32, 3))["which"])(many))
    shares = np.bincount(which, minlength=4) / len(which)
    np.testing.assert_allclose(shares, (0.6, 0, 0.2, 0.2), atol=5 * np.sqrt(0.25 / len(which)))
    assert shares[1] == 0
    certain = corruptions.random_choice(MEMBERS, weights=(0, 1, 0))
    assert set(np.asarray(jax.vmap(lambda key: certain.sample(key, (32, 32, 3))["which"])(many))) == {1}


def test_small_probabilities_are_drawn_as_often_as_they_say():
    # Of these keys the first 23 bits of the draw are 0: all lie below a probability of 2^-23, few below a part of it.
    seeds = (10113833, 14121552, 18448216, 19544962, 23452958, 30055874, 30092478, 32312613, 32467979)
    keys = [jax.random.key(seed) for seed in seeds]

    def corrupted(probability):
        choice = corruptions.random_choice(("noc/border",), probability=probability)
        return [int(choice.sample(key, (32, 32, 3))["which"]) == 0 for key in keys]

    assert corrupted(2.0**-23) == [True] * 9
    assert corrupted(2.0**-23 * 1e-4) == [False] * 9
    assert 0 < sum(corrupted(2.0**-24)) < 9


def test_severities_are_those_of_the_members_or_fractions():
    assert corruptions.random_choice("imagenet_noc").scale == corruptions.Fraction()
    assert corruptions.random_choice("imagenet_c").scale == corruptions.Levels(5)
    assert corruptions.random_choice(MEMBERS).scale == corruptions.Fraction()
    selecting = corruptions.random_choice("cifar10_c_bar")
    assert selecting.scale == corruptions.Levels(5)
    one = corruptions.random_choice(("cbar/lines", "cbar/sparkles"), weights=(0, 1))
    assert one.scale == corruptions.Levels(10)


def test_a_benchmark_that_selects_levels_is_drawn_at_those(monkeypatch):
    monkeypatch.setitem(corruptions.core.registry._BENCHMARKS, "one", {"cbar/color_dither": (1, 5, 8)})
    choice, image = corruptions.random_choice("one"), IMAGES[0]
    expected = corruptions.cbar.color_dither(KEY, image, 8)
    np.testing.assert_allclose(choice(KEY, image, 3), expected, **CLOSE)
    with refused("severity", 4):
        choice(KEY, image, 4)


def test_parts_follow_one_another_without_rounding():
    both = corruptions.compose("noc/brightness", "imagenet_c/contrast")
    assert both.rounding == "nearest"
    for image, params, corrupted in zip(
        IMAGES[:2], drawn_for(both, 2), corruptions.corrupt(KEY, IMAGES[:2], both), strict=True
    ):
        first, second = jax.random.split(params["key"])
        level = min(int(np.floor(params["severity"] * 5)) + 1, 5)
        expected = corruptions.noc.brightness(first, image, params["severity"])
        np.testing.assert_allclose(corrupted, corruptions.imagenet_c.contrast(second, expected, level), **CLOSE)
    assert "sort[" not in str(jax.make_jaxpr(lambda x: corruptions.corrupt(KEY, x, both))(IMAGES[:2]))
    never = corruptions.compose("noc/brightness", probability=0)
    np.testing.assert_array_equal(corruptions.corrupt(KEY, IMAGES[:2], never), IMAGES[:2])


def test_the_example_of_the_how_to(own_registry):
    found = {"corruptions": corruptions, "key": KEY, "images": IMAGES[:2]}
    exec(example_of("docs/howto/corrupt.md", "Draw one of several corruptions, or apply several"), found)
    assert len(found["anything"].parameters[0].source.split(", ")) == 15
    assert corruptions.get("mine/both") is found["both"]
    np.testing.assert_array_equal(corruptions.corrupt(KEY, IMAGES[:2], "mine/both"), found["corrupted"])


def test_one_transform_of_a_choice_for_many_images_as_distances_have_it(own_registry):
    choice = corruptions.register(corruptions.random_choice(MEMBERS, name="mine/any"))
    (transform,) = transforms.find(["mine/any"])
    params = transform.sample(KEY, (32, 32, 3), transform.argument)
    found = jax.vmap(transform.apply, (0, None))(IMAGES, params)
    for image, corrupted in zip(IMAGES, found, strict=True):
        np.testing.assert_allclose(corrupted, alone(params, MEMBERS, image), atol=1 / 255)
    assert choice.qualified_name == transform.name


def test_a_symbolic_number_of_images():
    (number,) = jax.export.symbolic_shape("n")
    images = jax.ShapeDtypeStruct((number, *IMAGES.shape[1:]), np.uint8)
    choice = corruptions.random_choice(MEMBERS)
    artifact = jax.export.export(jax.jit(lambda x: corruptions.corrupt(KEY, x, choice)))(images)
    levels = photographs(9, 32, 32)
    np.testing.assert_array_equal(artifact.call(levels), corruptions.corrupt(KEY, levels, choice))


def test_gradients_pass_through_a_batch():
    choice = corruptions.random_choice(MEMBERS[:2])
    gradient = jax.grad(lambda x: corruptions.corrupt(KEY, x, choice, 0.2).sum())(jnp.asarray(IMAGES))
    assert (np.abs(gradient) > 0).any((1, 2, 3)).all()


def test_gradients_of_one_image():
    image = jnp.asarray(IMAGES[0])
    twice = corruptions.compose("noc/border", "noc/border")
    gradient = jax.jit(jax.grad(lambda x: twice(KEY, x, 0.2).sum()))(image)
    np.testing.assert_array_equal(np.unique(gradient), [0, 1])  # below the border, and beside it
    drawn = corruptions.random_choice(MEMBERS[:2])
    assert "of batches only" in drawn.__doc__
    refuses(lambda: jax.grad(lambda x: drawn(KEY, x, 0.2).sum())(image), "reverse-mode")


NUMBER = 37
BRANCHES = (lambda key, severity, image: image + severity, lambda key, severity, image: severity * image[::-1])


def branch_arguments():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 3, NUMBER)
    severity, images = rng.uniform(1, 2, NUMBER), rng.uniform(0, 1, (NUMBER, 4, 3, 1))
    return which, jax.random.split(jax.random.key(0), NUMBER), severity.astype(np.float32), images.astype(np.float32)


def branched(which, key, severity, images):
    del key
    each = zip(which, severity, images, strict=True)
    return np.stack([x + s if w == 0 else s * x[::-1] if w == 1 else x for w, s, x in each])


def test_a_tpu_takes_eight_images_at_once():
    dealt = jax.jit(jax.vmap(mixtures.chosen(BRANCHES)))
    np.testing.assert_allclose(dealt(*branch_arguments()), branched(*branch_arguments()), rtol=1e-6)
    traced = dealt.trace(*branch_arguments())
    cpu, tpu = (traced.lower(lowering_platforms=(platform,)).as_text() for platform in ("cpu", "tpu"))
    assert "tensor<4x4x3x1xf32>" in cpu and "tensor<8x4x3x1xf32>" not in cpu
    assert "tensor<8x4x3x1xf32>" in tpu and "tensor<4x4x3x1xf32>" not in tpu
