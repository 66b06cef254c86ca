"""The device mesh, axes ('model', 'data'): here batches are split over 'data' and parameters are replicated."""

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec


def data_mesh(devices=None):
    """A mesh over all devices (or the given ones) along 'data'."""
    devices = jax.devices() if devices is None else devices
    return jax.sharding.Mesh(np.asarray(devices).reshape(1, -1), ("model", "data"))


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
