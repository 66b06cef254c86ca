"""Corruptions for PyTorch without a DataLoader: JAX corrupts on the device, DLPack hands the memory over uncopied.

    python -m examples.torch_dlpack                       # needs PyTorch; on a GPU, both with CUDA

The images of the whole training set stay on the device. What PyTorch trains on is the very memory JAX wrote.
"""

import jax
import jax.numpy as jnp
import torch
from torch.nn import functional

import corruptions
import data

BATCH, EPOCHS = 50, 3


@jax.jit
def corrupted_batch(images, labels, chosen, key):
    """Gather, corrupt and convert in one program: float32 [N, H, W, 3] in [0, 1], and labels."""
    batch = corruptions.corrupt(key, images[chosen], "imagenet_c/contrast", index=chosen)
    return batch / jnp.float32(255), labels[chosen]


def main():
    torch.manual_seed(0)
    train = data.load("shapes", train_limit=500, test_limit=10).train
    images, labels = jnp.asarray(train.images), jnp.asarray(train.labels)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, 2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, 2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveMaxPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 10),
    ).to("cuda" if images.device.platform == "gpu" else "cpu")
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    losses, copies = [], 0
    for epoch in range(EPOCHS):
        order = jax.random.permutation(jax.random.fold_in(jax.random.key(1), epoch), len(train))
        for start in range(0, len(train), BATCH):
            key = jax.random.fold_in(jax.random.key(2), epoch)
            batch, answers = corrupted_batch(images, labels, order[start : start + BATCH], key)
            x, y = torch.from_dlpack(batch), torch.from_dlpack(answers)
            copies += x.data_ptr() != batch.unsafe_buffer_pointer()
            # [N, H, W, 3] seen as [N, 3, H, W] is PyTorch's channels_last layout: again no copy.
            loss = functional.cross_entropy(network(x.permute(0, 3, 1, 2) - 0.5), y.long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {len(losses)} steps, {copies} batches copied")


if __name__ == "__main__":
    main()
