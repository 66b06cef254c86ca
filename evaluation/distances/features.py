"""Features of transforms: the mean features of a fixed set of images under a transform t.

    f_g(t) = sum_i w_gi phi(t(x_i)),   phi: the feature `penultimate` in eval mode, not normalised

The same drawn parameters t are applied to every image x_i (E. Mintun, A. Kirillov, S. Xie 2021, section 4). Weights w
[G, N] give several averages at once, e.g. over all images and over halves of them
(`analysis.distances.msd_mmd.half_weights`).

A call processes `chunk` transforms x N images, spread over the devices of a mesh. It needs about

    chunk N (12 H W + T + A) bytes over all devices

with 12 H W bytes of an image in float32, T the temporaries of the transform and A the network's activations, both for
one image; on a CPU T counts for N images at a time only, as the transforms of a device follow one another there.
"""

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import PartitionSpec

import corruptions
from corruptions import augment
from corruptions.core.batch import from_float, to_float
from corruptions.core.registry import with_levels
from corruptions.scoring.conditions import RANDOM, list_conditions
from evaluation.correctness import refuse_not_finite
from runtime.log import bar
from training.augmentation import STANDARD, SUBSETS
from training.states import TrainState


@dataclasses.dataclass(frozen=True, eq=False)
class Transform:
    """A distribution of transforms; those with the same two functions share compiled programs."""

    name: str  # for people and files
    sample: Callable[..., Any]  # `(key, shape, argument) -> params`
    apply: Callable[..., jax.Array]  # `(image, params) -> image`; float32 [H, W, 3] in [0, 1]
    argument: Any = None  # pytree of arrays, or None
    random: bool = True  # False when all samples are the same
    corruption: str = ""  # its qualified name, if it is one


IDENTITY = Transform(STANDARD, lambda key, shape, argument: jnp.zeros(()), lambda image, params: image, random=False)


def of_corruption(
    name: str, severity: int | float | None = None, options: Mapping[str, Any] | None = None
) -> Transform:
    """Makes the distribution of a corruption, its results brought to 8 bits as stored images are.

    The severity, a level or a fraction, is not checked; None draws one for each transform. ValueError: an unknown name.
    """
    corruption = corruptions.get(name)
    halves = _corruption_halves(corruption, tuple(sorted((options or {}).items())))
    severity = None if severity is None else jnp.asarray(severity, jnp.float32)
    return Transform(corruption.qualified_name, *halves, severity, corruption=corruption.qualified_name)


def of_scheme(name: str) -> Transform:
    """Makes the distribution of a scheme; values between 8-bit levels stay, as in training. ValueError: unknown."""
    scheme = augment.get(name)
    sample = _scheme_sample(scheme.sampler, tuple(sorted(scheme.defaults.items())))
    return Transform(scheme.name, sample, scheme.applier, scheme.choices, random=bool(scheme.operations))


def find(names: Iterable[str], options: Mapping[str, Mapping[str, Any]] | None = None) -> list[Transform]:
    """Finds the distributions called `names`, each once.

    Args:
      names: `standard` (unchanged images), schemes, `augmix=*`, corruptions and benchmarks (their members);
        corruptions at severities drawn for each transform.
      options: corruption -> its static options.

    Raises:
      ValueError: an unknown name, or none.
    """
    by_name = {}
    for name in names:
        if name == STANDARD:
            by_name[name] = IDENTITY
        elif name == SUBSETS:
            by_name |= {subset: of_scheme(subset) for subset in augment.subsets()}
        elif augment.known(name):
            scheme = of_scheme(name)
            by_name[scheme.name] = scheme
        else:
            by_name |= _corruptions_called(name, options or {})
    if not by_name:
        raise ValueError("expected at least one scheme, found none")
    return list(by_name.values())


def _corruptions_called(name: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Transform]:
    """{name: distribution} of a corruption, or of a benchmark's members, at random severities.

    Levels that the benchmark selects follow the name.
    """
    try:
        conditions = list_conditions((name,), RANDOM)[1:]
    except ValueError as error:
        raise ValueError(f"{error}; schemes: {', '.join(augment.names())}, augmix=..., op=...") from None
    found = {}
    for condition in conditions:
        given = with_levels(options.get(condition.corruption, {}), condition.levels)
        name = "-".join(map(str, (condition.corruption, *(condition.levels or ()))))
        found[name] = dataclasses.replace(of_corruption(condition.corruption, options=given), name=name)
    return found


@functools.cache
def _corruption_halves(corruption: corruptions.Corruption, options: tuple[tuple[str, Any], ...]) -> tuple:
    options = dict(options)

    def sample(key, shape, severity):
        # Levels are traced here, so they count as real numbers.
        traced = {"interpolate": True} if severity is not None and "interpolate" in corruption.options else {}
        return corruption.sample(key, shape, severity, **(options | traced))

    def apply(image, params):
        return to_float(from_float(corruption.apply(image, params), jnp.uint8, corruption.rounding))

    return sample, apply


@functools.cache
def _scheme_sample(sampler: Callable[..., Any], options: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return functools.partial(sampler, **dict(options))


FEATURE = "penultimate"
_CPU_VALUES = 2**22  # values of the transformed images in one call, 16 MiB
_VALUES = 2**26


@dataclasses.dataclass(frozen=True, eq=False)
class Extractor:
    """A network, a set of images and weights over them."""

    mesh: jax.sharding.Mesh  # device mesh with axes ('model', 'data'); transforms are spread over 'data'
    # graphdef, state: a model as `training.loop.read_back` returns it
    graphdef: nnx.GraphDef
    state: TrainState
    images: jax.Array | np.ndarray  # uint8 [N, H, W, 3]
    weights: jax.Array | np.ndarray  # float32 [G, N]
    chunk: int = 0  # transforms in one call; 0 fits them to the device. Rounded up to a multiple of the devices.

    def __post_init__(self):
        images, weights = self.images, self.weights
        if images.ndim != 4 or images.shape[-1] != 3 or images.dtype != np.uint8 or not len(images):
            raise ValueError(f"expected images uint8 [N, H, W, 3], found {images.dtype} {images.shape}")
        if weights.ndim != 2 or weights.shape[1] != len(images):
            raise ValueError(f"expected weights [G, {len(images)}], found shape {weights.shape}")
        if self.chunk < 0:
            raise ValueError(f"expected a chunk of at least 1 transform, or 0, found {self.chunk}")
        chunk = self.chunk or fitting(math.prod(images.shape))
        object.__setattr__(self, "chunk", chunk + -chunk % self.mesh.shape["data"])

    def __call__(self, apply: Callable[..., jax.Array], params: Any) -> jax.Array:
        """Computes the features [K, G, D] of K transforms; compiled once for each `apply` and K.

        Args:
          apply: `(image, params) -> image`, the same object in all calls.
          params: pytree of arrays, their first axis the transforms; K is a multiple of the devices.
        """
        transformed = _transformed(apply, self.mesh, params, self.images)
        state = self.state
        return mean_features(self.graphdef, self.mesh, state.params, state.statistics, transformed, self.weights)

    def first(self, transform: Transform, key: jax.Array, number: int, places: np.ndarray) -> np.ndarray:
        """Shows images at some places under the first transforms, in the program of `stream`.

        Returns uint8 [max(number, places), H, W, 3]: the images in turn, under the transforms in turn.
        """
        shape, found = tuple(self.images.shape[1:]), []
        for start in range(0, number, self.chunk):
            params = drawn(transform, key, start + jnp.arange(self.chunk), shape)
            found.append(np.asarray(_transformed(transform.apply, self.mesh, params, self.images)[:, places]))
        turn = np.arange(max(number, len(places)))
        shown = np.concatenate(found)[turn % number, turn % len(places)]
        return np.asarray(from_float(shown, jnp.uint8, "nearest"))

    def stream(
        self, transform: Transform, key: jax.Array, number: int, *, first: int = 0, description: str = ""
    ) -> Iterator[np.ndarray]:
        """Yields the features of `number` transforms in turn, float32 [k, G, D], k <= chunk.

        Transform i is drawn with `fold_in(key, i)`: results depend neither on the chunk nor on the devices.

        Args:
          transform: distribution of the transforms.
          key: typed key of the draws.
          number, first: number of transforms, and the number i of the first one.
          description: text beside the progress bar.

        Raises:
          ValueError: features that are not finite.
        """
        shape, images = tuple(self.images.shape[1:]), len(self.images)
        waiting = collections.deque()
        with bar("image", total=number * images, desc=description, unit_scale=True, leave=False) as progress:
            for start in range(0, number, self.chunk):
                params = drawn(transform, key, first + start + jnp.arange(self.chunk), shape)
                waiting.append((start, self(transform.apply, params)))
                # The device computes a chunk while the caller has the chunk before.
                while len(waiting) > 1 or (waiting and start + self.chunk >= number):
                    begin, features = waiting.popleft()
                    features = np.asarray(features)[: number - begin]
                    refuse_not_finite(features, transform.name)
                    progress.update(len(features) * images)
                    yield features


def fitting(values: int) -> int:
    """Computes how many arrays of `values` values the device processes at once."""
    return max(1, (_CPU_VALUES if jax.default_backend() == "cpu" else _VALUES) // values)


def drawn(transform: Transform, key: jax.Array, index: jax.Array | np.ndarray, shape: tuple[int, ...]) -> Any:
    """Draws the parameters of the transforms `index` [K]: a pytree with K as first axis."""
    return _drawn(transform.sample, key, index, shape, transform.argument)


@functools.partial(jax.jit, static_argnames=("sample", "shape"))
def _drawn(sample, key, index, shape, argument):
    return jax.vmap(lambda i: sample(jax.random.fold_in(key, i), shape, argument))(index)


@functools.partial(jax.jit, static_argnames=("apply", "mesh"))
def _transformed(apply, mesh, params, images):
    """Applies every transform to every image, float32 [K, N, H, W, 3]; in a separate program from the network."""

    def local(params, images):
        images = to_float(images)

        def transform_all(params):
            return jax.vmap(lambda image: apply(image, params))(images)

        # In a loop over transforms only the drawn branch of a scheme is carried out, and what it
        # needs fits the caches of a CPU; all at once keeps an accelerator busy.
        on_cpu = mesh.devices.flat[0].platform == "cpu"
        return jax.lax.map(transform_all, params) if on_cpu else jax.vmap(transform_all)(params)

    split, whole = PartitionSpec("data"), PartitionSpec()
    return jax.shard_map(local, mesh=mesh, in_specs=(split, whole), out_specs=split, check_vma=False)(params, images)


@functools.partial(jax.jit, static_argnames=("graphdef", "mesh"))
def mean_features(graphdef, mesh, params, statistics, transformed, weights):
    """Takes the means, with weights float32 [G, N], of the features of images float32 [K, N, H, W, 3]: float32 [K, G, D].

    The K transforms are spread over the mesh's 'data' axis.
    """
    chex.assert_shape(transformed, (None, weights.shape[1], None, None, 3))

    def local(params, statistics, transformed, weights):
        model = nnx.merge(graphdef, params, statistics, copy=True)
        number, images = transformed.shape[:2]
        _, named = model(transformed.reshape(number * images, *transformed.shape[2:]), train=False)
        features = named[FEATURE].reshape(number, images, -1)
        return jnp.einsum("gn,knd->kgd", weights, features, precision=jax.lax.Precision.HIGHEST)

    split, whole = PartitionSpec("data"), PartitionSpec()
    specs = (whole, whole, split, whole)
    compute = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)
    return compute(params, statistics, transformed, weights)
