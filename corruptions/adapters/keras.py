"""A Keras layer that corrupts while a network trains, on Keras' JAX backend.

`import corruptions` leaves this module out: it needs the package keras.
"""

from collections.abc import Mapping
from typing import Any

import jax
from jax.typing import ArrayLike

from corruptions.core import batch, checks, dispatch, registry
from corruptions.core.corruption import Corruption

try:
    import keras  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError as error:
    raise ImportError(
        f"expected the package keras, which corruptions.adapters.keras needs, found none that can be imported ({error}); "
        "pip install keras"
    ) from error


@keras.saving.register_keras_serializable("corruptions")
class Corrupt(keras.layers.Layer):  # type: ignore[misc, unused-ignore]
    """Corrupts images while training, inside of the step that Keras compiles, and returns them as they are otherwise.

    Each call draws anew; image i of a batch has draws of its own, and its frames or cameras share them.

    Args:
      corruption: a name (see `corruptions.names`), or a registered corruption: a model's file stores the name.
      severity: a level, a fraction, or `None` to draw one for each image.
      value_range: (low, high) of float images; uint8 images have their own.
      seed: of all draws; None takes the one of `keras.utils.set_random_seed`.
      options: static options of the corruption (`get(name).options`).
      **kwargs: as every Keras layer has them: name, dtype, trainable.

    Raises:
      ValueError, TypeError: at once a wrong name, severity or option; with the images a wrong shape or dtype.
      RuntimeError: Keras has another backend than JAX.
    """

    def __init__(
        self,
        corruption: str | Corruption,
        severity: ArrayLike | None = None,
        *,
        value_range: tuple[float, float] = (0, 255),
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        if keras.backend.backend() != "jax":
            raise RuntimeError(
                f"expected Keras on its JAX backend, found {keras.backend.backend()}; set KERAS_BACKEND=jax in the "
                "environment before keras is imported"
            )
        super().__init__(**kwargs)
        found, self.options = registry.registered(corruption), dict(options or {})
        checks.options(found.qualified_name, found.options, self.options)
        if severity is not None:
            found.check_severity(severity, self.options)
        self.corruption, self.severity = found.qualified_name, severity
        low, high = value_range
        self.value_range, self.seed = (low, high), seed
        self._seeds = keras.random.SeedGenerator(seed)

    def __call__(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer, see `call`, with the pixels that images of NumPy have now: Keras hands their memory to JAX."""
        return super().__call__(dispatch.held(images), *args, **kwargs)

    def call(self, images: jax.Array, training: bool = False) -> jax.Array:
        """Corrupts images [H, W, C], [N, H, W, C] or [N, ..., H, W, C] while training."""
        if not training:
            return images
        if images.ndim == 3:
            return self.call(images[None], training)[0]
        frames = images.reshape(len(images), -1, *images.shape[-3:])
        corrupted = batch.corrupt(
            jax.random.wrap_key_data(self._seeds.next()),
            frames,
            self.corruption,
            self.severity,
            axis="time",
            value_range=None if images.dtype == "uint8" else self.value_range,
            **self.options,
        )
        return corrupted.reshape(images.shape)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Returns the shape of the images, which stays."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Lists the arguments, as a model's file stores them."""
        names = ("corruption", "severity", "value_range", "seed", "options")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
