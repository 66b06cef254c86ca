"""Networks of `models/` in PyTorch with a timed block of steps: peer of benchmarks/training.py.

    PYTHON benchmarks/peers/networks.py --threads=2

Answers {"model", "batch", "steps", "channels_last"} with the seconds, [by the clock, CPU of all threads], of that many training
steps (forward, backward, SGD with momentum and weight decay) on random images.
"""

import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class BasicBlock(nn.Module):
    def __init__(self, c_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, width, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.shortcut = nn.Identity()
        if stride != 1 or c_in != width:
            self.shortcut = nn.Sequential(nn.Conv2d(c_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.shortcut(x) + self.norm2(self.conv2(y)))


class WideBlock(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(c_in), nn.BatchNorm2d(c_out)
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(c_in, c_out, 1, stride, bias=False) if c_in != c_out else None

    def forward(self, x):
        active = functional.relu(self.norm1(x))
        y = self.conv2(functional.relu(self.norm2(self.conv1(active))))
        return (x if self.shortcut is None else self.shortcut(active)) + y


def cifar_resnet18():
    layers, c_in = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for i in range(4):
        for j in range(2):
            layers.append(BasicBlock(c_in, 64 * 2**i, 2 if i and not j else 1))
            c_in = 64 * 2**i
    return _with_head(layers, c_in)


def wrn_40_2():
    layers, c_in = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
    for i in range(3):
        for j in range(6):
            layers.append(WideBlock(c_in, 32 * 2**i, 2 if i and not j else 1))
            c_in = 32 * 2**i
    return _with_head([*layers, nn.BatchNorm2d(c_in), nn.ReLU()], c_in)


def small_resnet():
    layers, c_in = [nn.PixelUnshuffle(2), nn.Conv2d(12, 24, 3, 1, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU()], 24
    for width in (48, 96):
        layers += [nn.AvgPool2d(2), BasicBlock(c_in, width, 1)]
        c_in = width
    return _with_head(layers, c_in)


def _with_head(layers, c_in):
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c_in, 10))


NETWORKS = {"small_resnet": small_resnet, "cifar_resnet18": cifar_resnet18, "wrn_40_2": wrn_40_2}


class Trainer:
    """One network with its optimiser and a batch of random uint8 images, [N, 3, H, W]."""

    def __init__(self, name, batch, channels_last):
        self.layout = torch.channels_last if channels_last else torch.contiguous_format
        self.model = NETWORKS[name]().to(memory_format=self.layout)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
        self.images = torch.randint(0, 256, (batch, 3, 32, 32), dtype=torch.uint8)
        self.labels = torch.randint(0, 10, (batch,))
        self.mean, self.std = torch.full((1, 3, 1, 1), 0.48), torch.full((1, 3, 1, 1), 0.25)

    def train(self, steps):
        for _ in range(steps):
            x = ((self.images.float() / 255 - self.mean) / self.std).contiguous(memory_format=self.layout)
            self.optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(self.model(x), self.labels).backward()
            self.optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    print(json.dumps({"version": f"torch {torch.__version__}"}), flush=True)
    trainers = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = request["model"], request["batch"], request["channels_last"]
        if key not in trainers:
            trainers = {k: v for k, v in trainers.items() if k[0] == key[0]}  # memory for one network at a time
            trainers[key] = Trainer(*key)
            trainers[key].train(1)
        wall, cpu = time.perf_counter(), time.process_time()
        trainers[key].train(request["steps"])
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


if __name__ == "__main__":
    main()
