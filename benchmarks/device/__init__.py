"""Any device measures itself, in one command.

    python -m benchmarks.device --minutes=8 --out=runs/device --data_dir=TFDS     # the same command continues
    python -m benchmarks.device.page                    # docs/devices.md from benchmarks/results/devices/*.json
    python -m benchmarks.device.pixels                  # the CPU's pixels that devices are compared with
    python -m benchmarks.device.pack --tfds=TFDS        # a folder for a machine without network

contract.py  the pieces and their sizes, for each kind of device
works.py     how each piece is measured
pixels.py    200 cases of corruptions against the pixels of a CPU
__main__.py  the command: order, time left, one JSON for a machine
page.py      docs/devices.md
pack.py      wheels, CIFAR-10 and the checkout in a folder
"""
