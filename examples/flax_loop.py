"""Corruptions inside a JAX training step of your own: corrupted, differentiated and updated in one compiled program.

    python -m examples.flax_loop

Half of every batch is corrupted, each image at its own severity. The key of an image comes from its index and the
step, so a run is repeatable whatever the number of devices.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

import corruptions
import data

CORRUPTION, BATCH, STEPS = "imagenet_c/gaussian_noise", 50, 40


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Conv(3, 16, (3, 3), strides=2, rngs=rngs)
        self.second = nnx.Conv(16, 32, (3, 3), strides=2, rngs=rngs)
        self.head = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, images):
        x = nnx.relu(self.second(nnx.relu(self.first(images - 0.5))))
        return self.head(x.max((1, 2)))


def main():
    train = data.load("shapes", train_limit=1000, test_limit=10).train
    graphdef, params = nnx.split(Network(nnx.Rngs(0)))
    optimizer = optax.adam(3e-3)
    key = jax.random.key(1)

    @jax.jit
    def step(params, moments, images, labels, index, number):
        corrupted = corruptions.corrupt(jax.random.fold_in(key, number), images, CORRUPTION, index=index)
        half = (jnp.arange(BATCH) % 2 == 0)[:, None, None, None]
        inputs = jnp.where(half, corrupted, images).astype(jnp.float32) / 255

        def loss(params):
            logits = nnx.merge(graphdef, params)(inputs)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, gradient = jax.value_and_grad(loss)(params)
        updates, moments = optimizer.update(gradient, moments)
        return optax.apply_updates(params, updates), moments, value

    moments, losses = optimizer.init(params), []
    for number in range(STEPS):
        chosen = jax.random.choice(jax.random.fold_in(jax.random.key(2), number), len(train), (BATCH,), replace=False)
        params, moments, loss = step(params, moments, train.images[chosen], train.labels[chosen], chosen, number)
        losses.append(float(loss))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {STEPS} steps, {step._cache_size()} compiled program")


if __name__ == "__main__":
    main()
