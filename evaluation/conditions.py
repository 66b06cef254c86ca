"""What models are shown: clean images, and corruptions at severities, each a condition."""

import collections
import dataclasses

import corruptions
from corruptions import cbar
from runtime.log import log
from training import augmentation

CLEAN = "clean"
RANDOM = "random"


@dataclasses.dataclass(frozen=True)
class Condition:
    """A corruption at a severity: a level, a fraction, or `random`.

    `random` is drawn per image from the corruption's distribution, or from the `levels` that a benchmark selects.
    """

    corruption: str
    severity: str
    levels: tuple[int, ...] | None = None

    @property
    def value(self):
        """The severity as `corruptions.corrupt` takes it."""
        if self.severity == RANDOM:
            return None
        return int(self.severity) if self.severity.isdigit() else float(self.severity)

    @property
    def label(self):
        """The severity as tables hold it: `random`, a level or a fraction (0 for clean)."""
        return RANDOM if self.severity == RANDOM else self.value

    @property
    def file_name(self):
        parts = (self.corruption.replace("/", "."), self.severity, *(self.levels or ()))
        return "-".join(map(str, parts))


def list_conditions(names, severities):
    """Clean and every corruption of `names` (corruptions or benchmarks) at every severity.

    Args:
      names: names of corruptions or of benchmarks.
      severities: `random` or `levels`: drawn from, or each of, `corruptions.severities` (those a benchmark has
        selected, else every level; for a range any fraction, or 0, 1/4 .. 1); or numbers separated by commas, levels or
        fractions of the corruption.

    Returns:
      A list of `Condition`, none twice: what two benchmarks share is evaluated once.

    Raises:
      ValueError: an unknown name or severity; a corruption at random severities of two different selections, which
        tables of results could not tell apart.
    """
    found = [Condition(CLEAN, "0")]
    for name in names:
        benchmark = name if name in corruptions.benchmarks() else None
        for member in expand([name]):
            levels = corruptions.selected_levels(member, benchmark) if benchmark and severities == RANDOM else None
            found += [
                Condition(member, str(severity), levels) for severity in _severities(member, benchmark, severities)
            ]
    found = list(dict.fromkeys(found))
    drawn = collections.Counter(condition.corruption for condition in found if condition.severity == RANDOM)
    if twice := [name for name, count in drawn.items() if count > 1]:
        raise ValueError(
            f"expected one selection of the random severities of {twice[0]}, found those of two benchmarks among "
            f"{', '.join(names)}; use a workdir for each, or severity=levels"
        )
    return found


def _severities(name, benchmark, text):
    if text == RANDOM:
        return [RANDOM]
    if text == "levels":
        return corruptions.severities(name, benchmark)
    scale = corruptions.get(name).scale
    chosen = _numbers(text, isinstance(scale, corruptions.Levels))
    for severity in chosen:
        scale.check(severity, {})
    return chosen


def _numbers(text, whole):
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"expected config.eval.severity random, levels, or numbers like 1,3,5, found {text!r}"
        ) from None
    return [int(value) if whole and value.is_integer() else value for value in values]


def warn_of_tables(names, shape):
    """Warns of C-bar benchmarks among `names` whose levels were selected from ranges made for another image size.

    For scripts that use those levels. A study's own corruptions and a calibration take all levels, of the ranges for
    their images; `corruptions.write` takes a benchmark's ranges together with its levels.
    """
    for name in names:
        made, used = cbar.BENCHMARK_TABLE.get(name), cbar.table_for(shape)
        if made and made != used:
            log.warning(
                "%s was selected from the ranges %r; images of %dx%d use the ranges %r.", name, made, *shape[:2], used
            )


def expand(names):
    """Corruption names, with benchmarks replaced by their members, qualified, without repetition, in order."""
    qualified = []
    for name in names:
        several = corruptions.names(name) if name in corruptions.benchmarks() else (name,)
        qualified += [corruptions.get(one).qualified_name for one in several]
    return tuple(dict.fromkeys(qualified))


def warn_of_coincidence(recipe, names):
    """Says which corruptions the models have met in training, as operations of their augmentation scheme."""
    if not recipe.get("scheme"):
        return
    try:
        scheme = augmentation.scheme_of(recipe)
    except (ValueError, FileNotFoundError) as error:  # stored transforms that are gone by now
        log.warning("Whether %s holds some of the corruptions cannot be told: %s", recipe.scheme, error)
        return
    for operation, corruption in augmentation.schemes.coinciding(scheme, names):
        log.warning(
            "%s is close to the operation %s of %s, which these models were trained with.",
            corruption,
            operation,
            scheme.name,
        )
