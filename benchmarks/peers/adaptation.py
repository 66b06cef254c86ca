"""Adaptation on a stream in PyTorch with a timed block of batches: peer of benchmarks/adaptation.py.

    PYTHON benchmarks/peers/adaptation.py --threads=2

Answers {"model", "batch", "steps", "channels_last", "method"} with the seconds, [by the clock, CPU of all threads], of predicting
that many batches of random images: `source` by stored statistics, `bn1` by statistics of the batch, `tent` by them before a step
of Adam on the mean entropy, which moves scales and shifts of BatchNorm. Networks are those of networks.py.
"""

import argparse
import json
import sys
import time


def stepper(name, batch, channels_last, method):
    """Makes the function that predicts one batch, and adapts."""
    import torch
    from networks import Trainer

    given = Trainer(name, batch, channels_last)
    model, tent = given.model.requires_grad_(False).train(method != "source"), method == "tent"
    norms = [layer for layer in model.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    if method != "source":
        for layer in norms:
            layer.running_mean = layer.running_var = None
    parameters = [parameter.requires_grad_(tent) for layer in norms for parameter in layer.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-3) if tent else None

    def step():
        x = ((given.images.float() / 255 - given.mean) / given.std).contiguous(memory_format=given.layout)
        with torch.set_grad_enabled(tent):
            logits = model(x)
        logits.argmax(1)
        if tent:
            (-(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step


def main():
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    print(json.dumps({"version": f"torch {torch.__version__}"}), flush=True)
    steppers = {}
    for line in sys.stdin:
        request = json.loads(line)
        steps, key = request.pop("steps"), tuple(sorted(request.items()))
        if key not in steppers:
            name = request.pop("model")
            steppers[key] = stepper(name, **request)
            steppers[key]()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            steppers[key]()
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


if __name__ == "__main__":
    main()
