"""The networks written a second time, in NumPy and SciPy, in double precision, from the papers."""

import numpy as np
from scipy.ndimage import maximum_filter


def conv(x, kernel, stride=1):
    """Cross-correlation with zero padding of size // 2, NHWC: windows times kernel."""
    size = kernel.shape[0]
    x = np.pad(x, ((0, 0), (size // 2,) * 2, (size // 2,) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::stride, ::stride]
    return np.tensordot(windows, kernel, ([4, 5, 3], [0, 1, 2]))


def relu(x):
    return np.maximum(x, 0)


class Reference:
    """Forward pass with the arrays of `pure` (nested dict of a model's state); `train` normalises by the batch."""

    def __init__(self, pure, train):
        self.pure, self.train = pure, train
        self.running = {}  # path of a BatchNorm -> (mean, var) after this forward pass

    def get(self, path):
        node = self.pure
        for part in path.split("/"):
            node = node[int(part)] if part.isdigit() else node[part]
        return np.asarray(node, np.float64)

    def conv(self, path, x, stride=1):
        return conv(x, self.get(path + "/kernel"), stride)

    def norm(self, path, x):
        mean, var = self.get(path + "/mean"), self.get(path + "/var")
        if self.train:
            rows = x.reshape(-1, x.shape[-1])
            old, (mean, var) = (mean, var), (rows.mean(0), rows.var(0))
            self.running[path] = 0.9 * old[0] + 0.1 * mean, 0.9 * old[1] + 0.1 * rows.var(0, ddof=1)
        return (x - mean) / np.sqrt(var + 1e-5) * self.get(path + "/scale") + self.get(path + "/bias")

    def normalize(self, images):
        return (images - self.get("normalize/mean")) / self.get("normalize/std")

    def linear(self, x):
        return x @ self.get("head/kernel") + self.get("head/bias")

    def shortcut(self, path, x, stride, projects):
        return self.norm(path + "/norm", self.conv(path + "/conv", x, stride)) if projects else x

    def basic_block(self, path, x, stride, projects):
        y = relu(self.norm(path + "/norm1", self.conv(path + "/conv1", x, stride)))
        y = self.norm(path + "/norm2", self.conv(path + "/conv2", y))
        return relu(y + self.shortcut(path + "/shortcut", x, stride, projects))

    def bottleneck(self, path, x, stride, projects):
        y = relu(self.norm(path + "/norm1", self.conv(path + "/conv1", x)))
        y = relu(self.norm(path + "/norm2", self.conv(path + "/conv2", y, stride)))
        y = self.norm(path + "/norm3", self.conv(path + "/conv3", y))
        return relu(y + self.shortcut(path + "/shortcut", x, stride, projects))

    def wide_block(self, path, x, stride, projects):
        active = relu(self.norm(path + "/norm1", x))
        y = self.conv(path + "/conv2", relu(self.norm(path + "/norm2", self.conv(path + "/conv1", active, stride))))
        return y + (self.conv(path + "/shortcut", active, stride) if projects else x)

    def resnet(self, images, sizes, bottleneck, imagenet):
        x = self.conv("stem", self.normalize(images), 2 if imagenet else 1)
        x = relu(self.norm("stem_norm", x))
        if imagenet:  # centred 3x3 maximum at every second pixel; ReLU output, so a rim of zeros is neutral
            x = maximum_filter(x, (1, 3, 3, 1), mode="constant")[:, ::2, ::2]
        block = self.bottleneck if bottleneck else self.basic_block
        for i, size in enumerate(sizes):
            for j in range(size):
                stride = 2 if i and not j else 1
                x = block(f"stages/{i}/{j}", x, stride, projects=not j and (i > 0 or bottleneck))
        pooled = x.mean((1, 2))
        return self.linear(pooled), pooled

    def wide_resnet(self, images, blocks):
        x = self.conv("stem", self.normalize(images))
        for i in range(3):
            for j in range(blocks):
                x = self.wide_block(f"stages/{i}/{j}", x, 2 if i and not j else 1, projects=not j)
        pooled = relu(self.norm("norm", x)).mean((1, 2))
        return self.linear(pooled), pooled

    def small_resnet(self, images):
        x = self.normalize(images)
        x = np.concatenate([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], -1)
        x = relu(self.norm("stem_norm", self.conv("stem", x)))
        for i in range(2):
            x = (x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2]) / 4
            x = self.basic_block(f"stages/{i}/0", x, 1, projects=True)
        pooled = x.mean((1, 2))
        return self.linear(pooled), pooled
