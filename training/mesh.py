"""The device mesh, axes ('model', 'data'): here batches are split over 'data' and parameters are replicated."""

import os

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from corruptions.batch import cpu_count
from data import dataset as data


def use_all_cores():
    """On a CPU, makes one JAX device of each core: XLA runs most of a small network's step on one core only.

    To be called before JAX starts; does nothing when the user chose a number of CPU devices.
    """
    chosen = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not chosen and jax.config.jax_num_cpu_devices < 1:
        jax.config.update("jax_num_cpu_devices", cpu_count())


def data_mesh(batch_size=None):
    """A mesh over all devices along 'data'; on a CPU over as many cores (of every process) as divide `batch_size`."""
    devices = np.asarray(jax.devices()).reshape(jax.process_count(), -1)
    if batch_size and devices[0, 0].platform == "cpu":
        counts = [d for d in range(1, devices.shape[1] + 1) if batch_size % (d * len(devices)) == 0]
        devices = devices[:, : max(counts, default=None)]
    return jax.sharding.Mesh(devices.reshape(1, -1), ("model", "data"))


def place(tree, sharding):
    """`jax.device_put` of arrays which every process holds as a whole, also onto a mesh over many processes."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)

    def one(leaf):  # device_put would compare the values of all processes, at the cost of a copy of each everywhere
        spans = isinstance(leaf, jax.Array) and not leaf.is_fully_addressable
        return jax.device_put(leaf, sharding) if spans else data.place(np.asarray(leaf), sharding)

    return jax.tree.map(one, tree)


def replicated(mesh):
    return NamedSharding(mesh, PartitionSpec())


def batch_sharding(mesh, axis=0):
    """Sharding of an array whose dimension `axis` is the batch."""
    return NamedSharding(mesh, PartitionSpec(*[None] * axis, "data"))


def check_batch_size(mesh, batch_size, name):
    """Raises ValueError unless `batch_size` splits evenly over the mesh."""
    devices = mesh.shape["data"]
    if batch_size <= 0 or batch_size % devices:
        raise ValueError(f"expected {name} to be a positive multiple of the {devices} devices, found {batch_size}")
