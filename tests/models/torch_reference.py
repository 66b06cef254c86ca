"""torchvision's networks in NumPy, in PyTorch's layouts (NCHW, OIHW, [out, in]) and with torchvision's names.

Written from the papers and the published state_dict names. A forward pass draws each array the first time it is used,
so `arrays` afterwards is a state_dict with exactly the names the network has.
"""

import numpy as np

from tests.models.reference import adaptive_mean_pool, grouped_conv, relu
from tests.models.reference import max_pool as max_pool_last

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
# Least and largest values of a BatchNorm's arrays. The arrays are drawn in this order.
BOUNDS = {"weight": (0.7, 1.3), "bias": (-0.2, 0.2), "running_mean": (-0.2, 0.2), "running_var": (0.7, 1.3)}


def last(x):
    """NCHW -> NHWC."""
    return np.moveaxis(x, 1, -1)


def first(x):
    return np.moveaxis(x, -1, 1)


class Network:
    """Draws, keeps and applies the arrays of a network; float64 but for linear layers."""

    def __init__(self, seed=0):
        self.arrays, self.rng = {}, np.random.default_rng(seed)

    def draw(self, name, shape, low=None, high=None):
        if name not in self.arrays:
            if low is None:
                values = self.rng.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / np.prod(shape[1:])))
            else:
                values = self.rng.uniform(low, high, shape).astype(np.float32)
            self.arrays[name] = values
        return self.arrays[name]

    def conv(self, name, x, c_out, size, stride=1, padding=None, groups=1, bias=False):
        kernel = self.draw(f"{name}.weight", (c_out, x.shape[1] // groups, size, size))
        y = first(grouped_conv(last(x), kernel.transpose(2, 3, 1, 0), stride, groups, padding))
        return y + self.draw(f"{name}.bias", (c_out,), -0.2, 0.2)[:, None, None] if bias else y

    def norm(self, name, x):
        drawn = (self.draw(f"{name}.{key}", x.shape[1:2], *bounds) for key, bounds in BOUNDS.items())
        gamma, beta, mean, var = (values[:, None, None] for values in drawn)
        self.arrays[f"{name}.num_batches_tracked"] = np.array(7, np.int64)
        return (x - mean) / np.sqrt(var + 1e-5) * gamma + beta

    def linear(self, name, x, c_out):
        bias = self.draw(f"{name}.bias", (c_out,), -0.2, 0.2)
        return x.astype(np.float32) @ self.draw(f"{name}.weight", (c_out, x.shape[1])).T + bias


def max_pool(x, size, stride, padding=0, ceil=False):
    """Maxima of non-negative maps, so that a rim of zeros is neutral."""
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    return first(max_pool_last(last(x), size, stride, ceil))


def adaptive_mean(x, side):
    return first(adaptive_mean_pool(last(x), side))


def resnet(net, images, classes, sizes, bottleneck, groups=1, width=64):
    """`width` of the 3x3 convolutions in the first stage (wide and grouped networks)."""
    x = relu(net.norm("bn1", net.conv("conv1", normalized(images), 64, 7, 2)))
    x = max_pool(x, 3, 2, 1)
    for i, size in enumerate(sizes, 1):
        for j in range(size):
            at, stride = f"layer{i}.{j}", 2 if i > 1 and j == 0 else 1
            inner, out = width * 2 ** (i - 1), 64 * 2 ** (i - 1) * (4 if bottleneck else 1)
            if bottleneck:
                y = relu(net.norm(f"{at}.bn1", net.conv(f"{at}.conv1", x, inner, 1)))
                y = relu(net.norm(f"{at}.bn2", net.conv(f"{at}.conv2", y, inner, 3, stride, groups=groups)))
                y = net.norm(f"{at}.bn3", net.conv(f"{at}.conv3", y, out, 1))
            else:
                y = relu(net.norm(f"{at}.bn1", net.conv(f"{at}.conv1", x, inner, 3, stride)))
                y = net.norm(f"{at}.bn2", net.conv(f"{at}.conv2", y, inner, 3))
            if stride > 1 or x.shape[1] != out:
                x = net.norm(f"{at}.downsample.1", net.conv(f"{at}.downsample.0", x, out, 1, stride))
            x = relu(x + y)
    return net.linear("fc", x.mean((2, 3)), classes)


def densenet(net, images, classes, sizes, growth):
    x = relu(net.norm("features.norm0", net.conv("features.conv0", normalized(images), 2 * growth, 7, 2)))
    x = max_pool(x, 3, 2, 1)
    for i, size in enumerate(sizes, 1):
        for j in range(1, size + 1):
            at = f"features.denseblock{i}.denselayer{j}"
            y = net.conv(f"{at}.conv1", relu(net.norm(f"{at}.norm1", x)), 4 * growth, 1)
            x = np.concatenate([x, net.conv(f"{at}.conv2", relu(net.norm(f"{at}.norm2", y)), growth, 3)], 1)
        if i < len(sizes):
            at = f"features.transition{i}"
            x = net.conv(f"{at}.conv", relu(net.norm(f"{at}.norm", x)), x.shape[1] // 2, 1)
            n, c, h, w = x.shape
            x = x[:, :, : h // 2 * 2, : w // 2 * 2].reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))
    return net.linear("classifier", relu(net.norm("features.norm5", x)).mean((2, 3)), classes)


def vgg(net, images, classes, layers, batch_norm):
    """`layers`: channels of each convolution, and M for a pooling, as in the paper's table."""
    x, place = normalized(images), 0
    for width in layers:
        if width == "M":
            x, place = max_pool(x, 2, 2), place + 1
            continue
        x = net.conv(f"features.{place}", x, width, 3, bias=True)
        x = relu(net.norm(f"features.{place + 1}", x) if batch_norm else x)
        place += 3 if batch_norm else 2
    x = adaptive_mean(x, 7).reshape(len(x), -1)
    x = relu(net.linear("classifier.0", x, 4096))
    return net.linear("classifier.6", relu(net.linear("classifier.3", x, 4096)), classes)


def alexnet(net, images, classes):
    x = relu(net.conv("features.0", normalized(images), 64, 11, 4, 2, bias=True))
    x = relu(net.conv("features.3", max_pool(x, 3, 2), 192, 5, bias=True))
    x = relu(net.conv("features.6", max_pool(x, 3, 2), 384, 3, bias=True))
    x = relu(net.conv("features.8", x, 256, 3, bias=True))
    x = relu(net.conv("features.10", x, 256, 3, bias=True))
    x = adaptive_mean(max_pool(x, 3, 2), 6).reshape(len(x), -1)
    x = relu(net.linear("classifier.1", x, 4096))
    return net.linear("classifier.6", relu(net.linear("classifier.4", x, 4096)), classes)


def squeezenet(net, images, classes, stem, size, layers):
    """`layers`: M for a pooling, squeezed channels of a Fire module otherwise (expanded: four times as many, twice)."""
    x = relu(net.conv("features.0", normalized(images), stem, size, 2, 0, bias=True))
    for place, squeezed in enumerate(layers, 2):
        if squeezed == "M":
            x = max_pool(x, 3, 2, ceil=True)
            continue
        at = f"features.{place}"
        x = relu(net.conv(f"{at}.squeeze", x, squeezed, 1, bias=True))
        expanded = (net.conv(f"{at}.expand{s}x{s}", x, 4 * squeezed, s, bias=True) for s in (1, 3))
        x = relu(np.concatenate(list(expanded), 1))
    return relu(net.conv("classifier.1", x, classes, 1, bias=True)).mean((2, 3))


def normalized(images):
    """[N, H, W, 3] in [0, 1] -> normalised [N, 3, H, W]."""
    return ((images - MEAN) / STD).transpose(0, 3, 1, 2)
