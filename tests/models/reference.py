"""The networks written a second time, in NumPy and SciPy, in double precision, from the papers."""

from functools import partial

import numpy as np
from scipy.ndimage import maximum_filter
from scipy.special import erf


def conv(x, kernel, stride=1, padding=None):
    """Cross-correlation with zero padding of size // 2 if not told otherwise, NHWC: windows times kernel."""
    size = kernel.shape[0]
    padding = size // 2 if padding is None else padding
    x = np.pad(x, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::stride, ::stride]
    return np.tensordot(windows, kernel, ([4, 5, 3], [0, 1, 2]))


def grouped_conv(x, kernel, stride, groups, padding=None):
    """Each run of channels by its own kernels, side by side."""
    runs = zip(np.split(x, groups, -1), np.split(kernel, groups, -1), strict=True)
    return np.concatenate([conv(part, own, stride, padding) for part, own in runs], -1)


def max_pool(x, size, stride, ceil=False):
    """Windows that start inside the image, whole ones only unless `ceil`; cut off at the edge."""
    last = [full - 1 if ceil else full - size for full in x.shape[1:3]]
    # With `ceil` there is another window only if the window before does not reach the last pixels.
    starts = [
        [s for s in range(0, end + 1, stride) if not s or s - stride + size < f] for end, f in zip(last, x.shape[1:3])
    ]
    rows = [[x[:, i : i + size, j : j + size].max((1, 2)) for j in starts[1]] for i in starts[0]]
    return np.stack([np.stack(row, 1) for row in rows], 1)


def adaptive_mean_pool(x, size):
    """Window i: floor(i H / size) to ceil((i + 1) H / size), in exact integer arithmetic."""
    spans = [[(i * full // size, ((i + 1) * full + size - 1) // size) for i in range(size)] for full in x.shape[1:3]]
    rows = [[x[:, a:b, c:d].mean((1, 2)) for c, d in spans[1]] for a, b in spans[0]]
    return np.stack([np.stack(row, 1) for row in rows], 1)


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

    def layer_norm(self, path, x):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return x * self.get(path + "/scale") + self.get(path + "/bias")

    def normalize(self, images):
        return (images - self.get("normalize/mean")) / self.get("normalize/std")

    def linear(self, x, path="head"):
        return x @ self.get(path + "/kernel") + self.get(path + "/bias")

    def shortcut(self, path, x, stride, projects):
        return self.norm(path + "/norm", self.conv(path + "/conv", x, stride)) if projects else x

    def basic_block(self, path, x, stride, projects):
        y = relu(self.norm(path + "/norm1", self.conv(path + "/conv1", x, stride)))
        y = self.norm(path + "/norm2", self.conv(path + "/conv2", y))
        return relu(y + self.shortcut(path + "/shortcut", x, stride, projects))

    def bottleneck(self, path, x, stride, projects, groups=1):
        y = relu(self.norm(path + "/norm1", self.conv(path + "/conv1", x)))
        y = grouped_conv(y, self.get(path + "/conv2/kernel"), stride, groups)
        y = relu(self.norm(path + "/norm2", y))
        y = self.norm(path + "/norm3", self.conv(path + "/conv3", y))
        return relu(y + self.shortcut(path + "/shortcut", x, stride, projects))

    def wide_block(self, path, x, stride, projects):
        active = relu(self.norm(path + "/norm1", x))
        y = self.conv(path + "/conv2", relu(self.norm(path + "/norm2", self.conv(path + "/conv1", active, stride))))
        return y + (self.conv(path + "/shortcut", active, stride) if projects else x)

    def resnet(self, images, sizes, bottleneck, imagenet, groups=1):
        x = self.conv("stem", self.normalize(images), 2 if imagenet else 1)
        x = relu(self.norm("stem_norm", x))
        if imagenet:  # centred 3x3 maximum at every second pixel; ReLU output, so a rim of zeros is neutral
            x = maximum_filter(x, (1, 3, 3, 1), mode="constant")[:, ::2, ::2]
        block = partial(self.bottleneck, groups=groups) if bottleneck else self.basic_block
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

    def densenet(self, images, sizes, imagenet):
        x = self.conv("stem", self.normalize(images), 2 if imagenet else 1)
        x = relu(self.norm("stem_norm", x))
        if imagenet:
            x = maximum_filter(x, (1, 3, 3, 1), mode="constant")[:, ::2, ::2]
        for i, size in enumerate(sizes):
            if i:
                path = f"transitions/{i - 1}"
                x = self.conv(path + "/conv", relu(self.norm(path + "/norm", x)))
                rows, cols = (side // 2 * 2 for side in x.shape[1:3])
                x = sum(x[:, a:rows:2, b:cols:2] for a in (0, 1) for b in (0, 1)) / 4
            for j in range(size):
                path, y = f"blocks/{i}/{j}", x
                for part in "12":
                    y = self.conv(path + "/conv" + part, relu(self.norm(path + "/norm" + part, y)))
                x = np.concatenate([x, y], -1)
        pooled = relu(self.norm("norm", x)).mean((1, 2))
        return self.linear(pooled), pooled

    def vgg(self, images, sizes, batch_norm, imagenet):
        x = self.normalize(images)
        for i, size in enumerate(sizes):
            for j in range(size):
                path = f"stages/{i}/{j}/"
                x = self.conv(path + "conv", x) + self.get(path + "conv/bias")
                x = relu(self.norm(path + "norm", x) if batch_norm else x)
            x = max_pool(x, 2, 2)
        return (
            self.hidden_layers(adaptive_mean_pool(x, 7)) if imagenet else (self.linear(x.mean((1, 2))), x.mean((1, 2)))
        )

    def hidden_layers(self, x):
        """The classifier of VGG and AlexNet; rows of the first kernel are ordered by channel, row, column."""
        x = np.moveaxis(x, -1, 1).reshape(len(x), -1)
        for i in range(2):
            x = relu(self.linear(x, f"hidden/{i}"))
        return self.linear(x), x

    def conv_norm(self, path, x, stride=1, bias=False):
        y = self.conv(path + "/conv", x, stride) + (self.get(path + "/conv/bias") if bias else 0)
        return relu(self.norm(path + "/norm", y))

    def msdnet(self, images, layers_before):
        """`layers_before` each exit, from the exit before. Scales are 1, the finest, to 4."""
        total = sum(layers_before)
        interval, layer, n = -(-total // 4), 0, 32
        x = self.conv_norm("blocks/0/0/stem", self.normalize(images), 2, bias=True)
        maps = {1: maximum_filter(x, (1, 3, 3, 1), mode="constant")[:, ::2, ::2]}
        for scale in (2, 3, 4):
            maps[scale] = self.conv_norm(f"blocks/0/0/downs/{scale - 2}", maps[scale - 1], 2)
        for block, number in enumerate(layers_before):
            place = 0 if block else 1
            for _ in range(number):
                layer += 1
                scales_in, scales_out = (4 - max(0, layer - behind) // interval for behind in (2, 1))
                maps = {scale: x for scale, x in maps.items() if scale > 4 - scales_in}
                made = {}
                for i, scale in enumerate(range(5 - scales_out, 5)):
                    path, parts = f"blocks/{block}/{place}/scales/{i}", [maps[scale]]
                    for part, source, stride in (("down", scale - 1, 2), ("same", scale, 1)):
                        if source in maps:
                            y = self.conv_norm(f"{path}/{part}/reduce", maps[source])
                            parts.append(self.conv_norm(f"{path}/{part}/expand", y, stride))
                    made[scale] = np.concatenate(parts, -1)
                maps, n, place = made, n + 16, place + 1
                assert [x.shape[-1] for x in maps.values()] == [n * (1, 2, 4, 4)[s - 1] for s in maps]
                if scales_out < scales_in:
                    transition = f"blocks/{block}/{place}/scales/"
                    maps = {s: self.conv_norm(f"{transition}{i}", x) for i, (s, x) in enumerate(maps.items())}
                    n, place = n // 2, place + 1
            y = self.conv_norm(f"exits/{block}/first", maps[4], 2)
            pooled = self.conv_norm(f"exits/{block}/second", y, 2).mean((1, 2))
            logits = self.linear(pooled, f"exits/{block}/head")
        return logits, pooled

    def multigrid(self, images, stages):
        """`stages`: (blocks, channels of each grid); images whose side 32 divides."""
        x, grids = self.normalize(images), []
        for i in range(3):
            x = sum(x[:, a::2, b::2] for a in (0, 1) for b in (0, 1)) / 4 if i else x
            y = self.conv(f"stems/{i}", x, 2) + self.get(f"stems/{i}/bias")
            y = relu(self.norm(f"stem_norms/{i}", y))
            grids.append(maximum_filter(y, (1, 3, 3, 1), mode="constant")[:, ::2, ::2])
        for i, (blocks, channels) in enumerate(stages):
            if i:
                pooled = [max_pool(grid, 2, 2, ceil=True) for grid in grids]
                if len(channels) == len(grids):
                    grids = pooled
                else:
                    grids = [*pooled[:-2], np.concatenate([pooled[-2], grids[-1]], -1)]
            for j in range(blocks):
                grids = self.multigrid_block(f"stages/{i}/{j}", grids)
        return self.linear(grids[0].mean((1, 2))), grids[0].mean((1, 2))

    def multigrid_block(self, path, grids):
        shortcut = grids
        for name in ("first", "second"):
            read = []
            for i, grid in enumerate(grids):
                finer = [max_pool(grids[i - 1], 2, 2, ceil=True)] if i else []
                coarser = [g.repeat(2, 1).repeat(2, 2) for g in grids[i + 1 : i + 2]]
                read.append(np.concatenate([*finer, grid, *coarser], -1))
            new = []
            for i, x in enumerate(read):
                y = self.conv(f"{path}/{name}/convs/{i}", x) + self.get(f"{path}/{name}/convs/{i}/bias")
                new.append(self.norm(f"{path}/{name}/norms/{i}", y))
            grids = [relu(x) for x in new] if name == "first" else new
        for x, y in zip(shortcut, grids, strict=True):
            y[..., : x.shape[-1]] += x
        return [relu(y) for y in grids]

    def condensenet(self, images, sizes, groups):
        """The trained form before anything was dropped."""
        x = self.conv("stem", self.normalize(images), 2)
        for i, size in enumerate(sizes):
            if i:
                x = sum(x[:, a::2, b::2] for a in (0, 1) for b in (0, 1)) / 4
            for j in range(size):
                path = f"blocks/{i}/{j}"
                y = self.conv(path + "/conv1/conv", relu(self.norm(path + "/conv1/norm", x)))
                y = relu(self.norm(path + "/norm2", y))
                x = np.concatenate([x, grouped_conv(y, self.get(path + "/conv2/kernel"), 1, groups)], -1)
        pooled = relu(self.norm("norm", x)).mean((1, 2))
        return self.linear(pooled), pooled

    def vit(self, images, depth, heads, patch):
        """Token by token and head by head."""
        n, h, w, _ = images.shape
        cut = self.normalize(images).reshape(n, h // patch, patch, w // patch, patch, 3).transpose(0, 1, 3, 2, 4, 5)
        kernel = self.get("stem/kernel")
        x = cut.reshape(n, -1, patch * patch * 3) @ kernel.reshape(-1, kernel.shape[-1]) + self.get("stem/bias")
        x = np.concatenate([self.get("cls_token").repeat(n, 0), x], 1) + self.get("pos_embed")
        for i in range(depth):
            path = f"blocks/{i}"
            q, k, v = np.split(self.linear(self.layer_norm(path + "/norm1", x), path + "/qkv"), 3, -1)
            seen = []
            for one in np.split(np.arange(x.shape[-1]), heads):
                score = np.exp(q[..., one] @ k[..., one].transpose(0, 2, 1) / np.sqrt(len(one)))
                seen.append(score / score.sum(-1, keepdims=True) @ v[..., one])
            x = x + self.linear(np.concatenate(seen, -1), path + "/proj")
            y = self.linear(self.layer_norm(path + "/norm2", x), path + "/fc1")
            x = x + self.linear(y * (1 + erf(y / np.sqrt(2))) / 2, path + "/fc2")
        first = self.layer_norm("norm", x)[:, 0]
        return self.linear(first), first


class OfGroups(Reference):
    """GroupNorm with 32 groups where `Reference` has BatchNorm."""

    def norm(self, path, x):
        runs = np.stack(np.split(x, 32, -1), 3)  # [N, H, W, 32, channels of a group]
        runs = (runs - runs.mean((1, 2, 4), keepdims=True)) / np.sqrt(runs.var((1, 2, 4), keepdims=True) + 1e-5)
        return runs.reshape(x.shape) * self.get(path + "/scale") + self.get(path + "/bias")
