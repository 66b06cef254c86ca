"""The consistency loss of AugMix: cross-entropy of clean images, agreement of three views."""

import jax
import jax.numpy as jnp
import optax


def jsd_loss(
    logits_clean: jax.Array, logits_one: jax.Array, logits_two: jax.Array, labels: jax.Array, weight: float = 12.0
) -> jax.Array:
    """Computes cross-entropy of the clean view plus the Jensen-Shannon divergence of three views.

    With p_i the softmax of view i and M = clip((p_1 + p_2 + p_3) / 3, 1e-7, 1):
    CE(clean) + weight (1/3) sum_i KL(p_i || M), both means over the batch (AugMix, Hendrycks et
    al., ICLR 2020, section 3; the clip as trained by Mintun et al., 2021).

    Args:
      logits_clean, logits_one, logits_two: float [B, C], of the clean image and two augmented views
        of it. All three come from one forward pass of 3 B images: BatchNorm sees them together.
      labels: int [B].
      weight: of the divergence; 0 leaves the cross-entropy.

    Returns:
      float32 scalar.

    Raises:
      ValueError: logits of different shapes, or labels that do not belong to them.
    """
    shapes = [logits.shape for logits in (logits_clean, logits_one, logits_two)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2 or labels.shape != shapes[0][:1]:
        raise ValueError(f"expected three logits [B, C] and labels [B], found {shapes} and {labels.shape}")
    logits = jnp.stack([logits_clean, logits_one, logits_two]).astype(jnp.float32)
    entropy = optax.softmax_cross_entropy_with_integer_labels(logits[0], labels).mean()
    log_p = jax.nn.log_softmax(logits)
    p = jnp.exp(log_p)
    log_mixture = jnp.log(jnp.clip(p.mean(0, keepdims=True), 1e-7, 1.0))
    divergence = (p * (log_p - log_mixture)).sum(-1).mean()
    return entropy + weight * divergence
