"""AlexNet (Krizhevsky 2014, arXiv:1404.5997, the one-column network) as in torchvision.

`convs` are torchvision's `features` 0, 3, 6, 8, 10; `hidden` and `head` its `classifier` 1, 4 and
6. Maps are flattened channels first, as there, so that the kernel of a linear layer is the
transpose of torchvision's.
"""

from functools import partial

from flax import nnx

from models.layers import Conv, Dropout, Linear, Normalize, adaptive_mean_pool, max_pool

HIDDEN = 4096


class AlexNet(nnx.Module):
    """Five convolutions with ReLU, three 3x3 max-poolings / 2, two hidden layers of 4096, linear.

    Args:
      dropout: probability of dropping an input of a hidden layer in training, in [0, 1).
      init: `he` (here PyTorch's own rule for all layers, as torchvision), `xavier` or `goyal` (He
        fan-out, linear N(0, 0.01^2)); see layers.py.
    """

    def __init__(self, num_classes, *, rng, dtype, dropout=0.5, mean=None, std=None, init="he", conv="auto"):
        rule = "pytorch" if init == "he" else init
        make_conv = partial(Conv, bias=True, rng=rng, init=rule, dtype=dtype, conv=conv)
        self.normalize = Normalize(mean, std, "imagenet")
        self.convs = nnx.List(
            [
                make_conv(3, 64, 11, stride=4, padding=2),
                make_conv(64, 192, 5),
                make_conv(192, 384, 3),
                make_conv(384, 256, 3),
                make_conv(256, 256, 3),
            ]
        )
        linear = partial(Linear, rng=rng, init=rule)
        self.hidden = nnx.List([linear(256 * 36, HIDDEN, dtype=dtype), linear(HIDDEN, HIDDEN, dtype=dtype)])
        self.dropouts = nnx.List([Dropout(dropout, i) for i in range(2)])
        self.head = linear(HIDDEN, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage3` [N, h, w, C] after the
        poolings and `penultimate` float32 [N, 4096].
        """
        x, features = self.normalize(images), {}
        for i, conv in enumerate(self.convs):
            x = nnx.relu(conv(x))
            if i in (0, 1, 4):
                x = max_pool(x, 3, 2)
                features[f"stage{len(features) + 1}"] = x
        x = adaptive_mean_pool(x, 6).transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
        for linear, dropout in zip(self.hidden, self.dropouts):
            x = nnx.relu(linear(dropout(x, train, key)))
        features["penultimate"] = x
        return self.head(x), features


FAMILY = {"alexnet": AlexNet}
SMALLEST = {"alexnet": 63}
