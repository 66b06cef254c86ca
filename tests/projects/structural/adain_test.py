"""AdaIN written a second time, in NumPy; the paper's counts; files of the PyTorch port."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import save_file

from models.layers import ShapesOnly
from projects.structural import adain
from tests.models.reference import conv, max_pool, relu

WIDTHS = (3, 4, 5, 6)
# Where the port's two nn.Sequential have their convolutions.
ENCODER, DECODER = (0, 2, 5, 9, 12, 16, 19, 22, 25, 29), (1, 5, 8, 11, 14, 18, 21, 25, 28)


def network():
    """A small network with biases that are not zero."""
    built = adain.StyleTransfer(WIDTHS, rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    arrays = {name: np.asarray(array) for name, array in adain.arrays_of(built).items()}
    drawn = {name: rng.standard_normal(a.shape, np.float32) for name, a in arrays.items() if name.endswith("conv/bias")}
    return adain.from_arrays(arrays | drawn)


def statistics(maps, correction, epsilon):
    return maps.mean((1, 2), keepdims=True), np.sqrt(maps.var((1, 2), ddof=correction, keepdims=True) + epsilon)


def stage(x, arrays, name, number, last=False):
    """`number` convolutions of mirrored maps; [maps after each]."""
    maps = []
    for layer in range(number):
        kernel, bias = (arrays[f"{name}/{layer}/conv/{leaf}"] for leaf in ("kernel", "bias"))
        x = conv(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect"), kernel, padding=0) + bias
        x = x if last and layer == number - 1 else relu(x)
        maps.append(x)
    return maps


def encoded(images, arrays):
    x = 255 * images[..., ::-1] - np.array([103.939, 116.779, 123.68])
    first = []
    for number, size in enumerate((2, 2, 4, 1)):
        maps = stage(max_pool(x, 2, 2, ceil=True) if number else x, arrays, f"encoder/stages/{number}", size)
        x = maps[-1]
        first.append(maps[0])
    return first


def decoded(x, arrays):
    for number, size in enumerate((1, 4, 2, 2)):
        x = np.repeat(np.repeat(x, 2, 1), 2, 2) if number else x
        x = stage(x, arrays, f"decoder/stages/{number}", size, last=number == 3)[-1]
    return x


def test_outputs_are_those_of_the_formula_for_sides_that_are_no_multiples_of_8():
    built, rng = network(), np.random.default_rng(2)
    arrays = {name: np.asarray(array, np.float64) for name, array in adain.arrays_of(built).items()}
    images = rng.random((2, 17, 18, 3), np.float32)
    mean, deviation = rng.normal(50, 20, (2, 1, 1, 6)), rng.uniform(5, 50, (2, 1, 1, 6))
    maps = encoded(images.astype(np.float64), arrays)
    assert [m.shape[1:] for m in maps] == [(17, 18, 3), (9, 9, 4), (5, 5, 5), (3, 3, 6)]
    own = statistics(maps[-1], 1, 1e-5)
    target = deviation * (maps[-1] - own[0]) / own[1] + mean
    expected = decoded(0.3 * target + 0.7 * maps[-1], arrays)[:, :17, :18]
    call = nnx.jit(lambda built, *given: (built.encoder(given[0]), built(*given, jnp.float32(0.3))))
    found, styled = call(built, *(jnp.asarray(x, jnp.float32) for x in (images, mean, deviation)))
    for one, other in zip([*found, styled], [*maps, expected], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("name", adain.READINGS)
def test_a_map_gets_the_statistics_of_the_style(name):
    reading, rng = adain.READINGS[name], np.random.default_rng(0)
    content, style = rng.random((2, 3, 4, 5), np.float32), rng.normal(2, 3, (2, 5, 3, 5)).astype(np.float32)

    @jax.jit
    def shown(content, style, alpha):
        wanted = adain.moments(style, reading.correction, reading.style_epsilon)
        same = adain.moments(content, reading.correction, adain.EPSILON)
        given = adain.adain(content, *wanted, alpha, reading.correction)
        return wanted, given, adain.adain(content, *same, jnp.float32(1), reading.correction)

    wanted, whole, same = shown(content, style, jnp.float32(1))
    np.testing.assert_allclose(wanted, statistics(style, reading.correction, reading.style_epsilon), rtol=1e-5)
    np.testing.assert_allclose(statistics(np.asarray(whole), reading.correction, 0), wanted, rtol=2e-3)
    np.testing.assert_allclose(same, content, atol=1e-5)
    none, part = (np.asarray(shown(content, style, jnp.float32(alpha))[1]) for alpha in (0, 0.25))
    np.testing.assert_array_equal(none, content)
    np.testing.assert_allclose(part, 0.25 * np.asarray(whole) + 0.75 * content, atol=1e-5)


def test_counts_are_those_of_the_published_network():
    arrays = adain.arrays_of(nnx.eval_shape(lambda: adain.StyleTransfer(rng=ShapesOnly())))
    for part, count in (("encoder", 3_505_740), ("decoder", 3_505_219)):
        assert sum(array.size for name, array in arrays.items() if name.startswith(part)) == count


def port_file(path, numbers, pairs, more=()):
    """A file as the port saves it: OIHW; `more` are layers that go on after those."""
    rng, arrays = np.random.default_rng(3), {}
    for number, (c_in, c_out) in zip([*numbers, *more], [*pairs, *[(6, 6)] * len(more)], strict=True):
        side = 1 if (c_in, c_out) == (3, 3) and number == 0 else 3
        arrays[f"{number}.weight"] = rng.standard_normal((c_out, c_in, side, side), np.float32)
        arrays[f"{number}.bias"] = rng.standard_normal(c_out, np.float32)
    save_file(arrays, path)
    return arrays


def test_files_of_the_port_are_taken_and_others_refused(tmp_path):
    down = [(3, 3), (3, 4), (4, 4), (4, 5), (5, 5), (5, 5), (5, 5), (5, 6)]
    encoder = port_file(tmp_path / "vgg.safetensors", ENCODER, [(3, 3), (3, 3), *down], more=(31, 34))
    decoder = port_file(tmp_path / "decoder.safetensors", DECODER, [pair[::-1] for pair in [(3, 3), *down][::-1]])
    built = network()
    adain.load_port(built, "encoder", tmp_path / "vgg.safetensors")
    adain.load_port(built, "decoder", tmp_path / "decoder.safetensors")
    taken = adain.arrays_of(built)
    names = ["encoder/colors", *(f"encoder/stages/{s}/{k}/conv" for s, n in enumerate((2, 2, 4, 1)) for k in range(n))]
    names += [f"decoder/stages/{s}/{k}/conv" for s, n in enumerate((1, 4, 2, 2)) for k in range(n)]
    given = [(encoder, number) for number in ENCODER] + [(decoder, number) for number in DECODER]
    for name, (arrays, number) in zip(names, given, strict=True):
        np.testing.assert_array_equal(taken[f"{name}/kernel"], arrays[f"{number}.weight"].transpose(2, 3, 1, 0))
        np.testing.assert_array_equal(taken[f"{name}/bias"], arrays[f"{number}.bias"])
    with pytest.raises(ValueError, match=r"AdaIN's encoder in PyTorch's port in .*decoder(.|\n)*missing \(16\)"):
        adain.load_port(built, "encoder", tmp_path / "decoder.safetensors")
    with pytest.raises(ValueError, match=r"decoder(.|\n)*wrong shape"):
        other = adain.StyleTransfer((3, 4, 5, 7), rng=np.random.default_rng(0))
        adain.load_port(other, "decoder", tmp_path / "decoder.safetensors")
