"""Networks of other publishers as trees of PyTorch's modules: what their arrays are called.

A list is a Sequential or ModuleList, whose members are named by number, a dict a module with named
members (its own arrays under ""), None what has no arrays. Written from the published modules, apart from ours.
"""

import itertools

ReLU = Pool = Identity = View = Sum = None


def conv(c_in, c_out, size, groups=1, bias=False):
    shapes = {"weight": (c_out, c_in // groups, size, size)}
    return ("arrays", shapes | ({"bias": (c_out,)} if bias else {}))


def norm(channels):
    return ("arrays", dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (channels,)))


def linear(c_in, c_out):
    return ("arrays", {"weight": (c_out, c_in), "bias": (c_out,)})


def index(number):
    return ("arrays", {"index": (number,)})


def named(module, before=""):
    """{name: shape} of all arrays of a tree."""
    if module is None:
        return {}
    if isinstance(module, tuple):
        return {before + name: shape for name, shape in module[1].items()}
    members = module.items() if isinstance(module, dict) else enumerate(module)
    return {
        name: shape
        for key, one in members
        for name, shape in named(one, f"{before}{key}." if key != "" else before).items()
    }


def resnext(sizes, groups, width):
    """The Lua networks, translated: everything in Sequentials."""
    network, c_in = [conv(3, 64, 7), norm(64), ReLU, Pool], 64
    for stage, size in enumerate(sizes):
        inner, c_out, blocks = width * 2**stage, 256 * 2**stage, []
        for _ in range(size):
            first = [conv(c_in, inner, 1), norm(inner), ReLU, conv(inner, inner, 3, groups), norm(inner), ReLU]
            branch = [first, conv(inner, c_out, 1), norm(c_out)]
            shortcut = Identity if c_in == c_out else [conv(c_in, c_out, 1), norm(c_out)]
            blocks.append([[branch, shortcut], Sum, ReLU])
            c_in = c_out
        network.append(blocks)
    return [*network, Pool, View, [View, linear(c_in, 1000)]]


def densenet(sizes, growth):
    channels = 2 * growth
    network = [conv(3, channels, 7), norm(channels), ReLU, Pool]
    for block, size in enumerate(sizes):
        if block:
            network += [norm(channels), ReLU, conv(channels, channels // 2, 1), Pool]
            channels //= 2
        for _ in range(size):
            layer = [norm(channels), ReLU, conv(channels, 4 * growth, 1), norm(4 * growth), ReLU]
            network.append([Identity, [*layer, conv(4 * growth, growth, 3)]])
            channels += growth
    return [*network, norm(channels), ReLU, Pool, View, [View, linear(channels, 1000)]]


def _basic(c_in, c_out, size):
    return {"net": [conv(c_in, c_out, size), norm(c_out), ReLU]}


def _bottleneck(c_in, c_out, width):
    inner = min(c_in, width * c_out)
    return {"net": [conv(c_in, inner, 1), norm(inner), ReLU, conv(inner, c_out, 3), norm(c_out), ReLU]}


def msdnet(layers_before, factors=(1, 2, 4, 4)):
    """`layers_before` each exit, from the exit before."""
    quarter, layer, n = -(-sum(layers_before) // 4), 0, 32
    stem = [conv(3, 32, 7, bias=True), norm(32), ReLU, Pool]
    downs = [_basic(32 * a, 32 * b, 3) for a, b in itertools.pairwise(factors)]
    blocks, classifiers = [], []
    for block, number in enumerate(layers_before):
        modules = [] if block else [{"layers": [stem, *downs]}]
        for _ in range(number):
            layer += 1
            first, before = (max(0, layer - behind) // quarter for behind in (1, 2))
            grown = []
            for s in range(first, 4):
                c_out, f = 16 * factors[s], factors
                if s > before:
                    halves = {
                        "conv_down": _bottleneck(n * f[s - 1], c_out // 2, f[s - 1]),
                        "conv_normal": _bottleneck(n * f[s], c_out // 2, f[s]),
                    }
                    grown.append(halves)
                else:
                    grown.append({"conv_normal": _bottleneck(n * f[s], c_out, f[s])})
            modules.append({"layers": grown})
            n += 16
            if first > before:
                modules.append({"m": [_basic(n * f, n // 2 * f, 1) for f in factors[first:]]})
                n //= 2
        blocks.append(modules)
        c = n * factors[-1]
        classifiers.append({"m": [_basic(c, c, 3), _basic(c, c, 3), Pool], "linear": linear(c, 1000)})
    return {"blocks": blocks, "classifier": classifiers}


def condensenet(groups):
    """The converted form."""
    channels, features = 16, {"init_conv": conv(3, 16, 3)}
    for number, (size, growth) in enumerate(((4, 8), (6, 16), (8, 32), (10, 64), (8, 128)), 1):
        block = {}
        for layer in range(1, size + 1):
            inner = 4 * growth
            first = {"norm": norm(channels), "conv": conv(channels, inner, 1, groups), "": index(channels)}
            second = {"norm": norm(inner), "conv": conv(inner, growth, 3, groups)}
            block[f"denselayer_{layer}"] = {"conv_1": first, "conv_2": second}
            channels += growth
        features[f"denseblock_{number}"] = block
    head = {"linear": linear(channels // 2, 1000), "": index(channels // 2)}
    return {"features": features | {"norm_last": norm(channels)}, "classifier": head}
