"""Names of corruptions and of the benchmarks made of them."""

import dataclasses
import functools
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from corruptions.core import built_in, checks, one_image
from corruptions.core.corruption import Applier, Corruption, Parameter, Sampler, check_kind, straight_through_estimator
from corruptions.core.errors import Refused, RefusedType, UnknownCorruption
from corruptions.core.severity import Fraction, Levels, selected
from corruptions.primitives.padded import Padding

_Decorator = Callable[[Applier], Corruption]
# Every spelling of a corruption -> the corruption; None where several use the spelling. Replaced as a whole, so that other
# threads always find a name that is replaced.
NAMED: dict[str, Corruption | None] = {}
_registering = threading.Lock()
# Parts of names become parts of paths, of lists with commas, and of HTML and LaTeX.
_PART = re.compile(r"\w[\w.+-]{0,199}")
# Benchmark -> its members in published order -> the levels it selects, or None where it takes all severities.
_FIRST = "imagenet_c"  # the benchmark whose corruptions a short name means where others share it
_BENCHMARKS: dict[str, dict[str, tuple[int, ...] | None]] = {}
_COPIES: set[str] = set()  # names of members registered again with a benchmark's fixed options
_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def register(corruption: Corruption, *, replace: bool = False) -> Corruption:
    """Adds a corruption under its qualified name and returns it.

    Args:
      corruption: the record.
      replace: whether it takes the place of a corruption with its name, as in a notebook's cell that runs again.

    Raises:
      TypeError: no `Corruption`.
      ValueError: the name is taken, also by one of other capitals, or has other characters than letters, digits and `_.+-` beside its slash.
    """
    global NAMED
    if not isinstance(corruption, Corruption):
        kind = getattr(corruption, "__name__", type(corruption).__name__)
        made = f"registrar('mine', Levels(5), 'nearest', source)(family, sampler, units)({kind})"
        raise RefusedType("corruption", "a Corruption", kind, f"{made} makes and registers one")
    own = corruption.qualified_name
    for part in (corruption.benchmark, corruption.name, *corruption.aliases):
        _check_part(part, f"corruption {own!r}")
    built_in.load(checks.folded(corruption.benchmark))
    with _registering:
        before = NAMED.get(own)
        if own in NAMED and not replace:
            found = f"{own!r}, registered already"
            raise Refused("corruption", "a name that is free", found, "replace=True replaces it")
        checks.refuse_merged(own, {known.qualified_name for known in NAMED.values() if known is not None})
        named = {name: known for name, known in NAMED.items() if known is None or known is not before}
        named[own] = corruption
        for spelling in () if own in _COPIES else _spellings(corruption):
            first = named.get(f"{_FIRST}/{spelling}")
            other = first or named.get(spelling, corruption)
            shared = other is None or other.qualified_name != own or spelling in built_in.OF_OTHERS
            named[spelling] = first or (None if shared else corruption)
        NAMED = named
    return corruption


def _check_part(part: str, owner: str) -> None:
    if not _PART.fullmatch(part):
        expected = "names of letters, digits and _ . + -, that begin with a letter or digit"
        raise Refused("name", expected, repr(part), place=str(owner))


def _check_parameters(corruption: Corruption) -> None:
    """Requires the parameters that a corruption names to be some that its `sample` returns."""
    key, severity = jax.eval_shape(lambda: jax.random.key(0)), jax.ShapeDtypeStruct((), jnp.float32)
    try:
        shape_of = functools.partial(one_image.sample, corruption=corruption, shape=(64, 64, 3), options=())
        returned = set(jax.eval_shape(shape_of, key, severity))
    except Exception:  # noqa: BLE001 - it may need files that are read later; a call says what is wrong with it
        return
    for parameter in corruption.parameters:
        if parameter.name not in returned:
            expected = f"units of parameters that its sampler returns, {', '.join(sorted(returned)) or 'none'}"
            raise Refused("units", expected, repr(parameter.name), place=corruption.qualified_name)


def registrar(
    benchmark: str,
    scale: Levels | Fraction,
    rounding: str,
    source: str,
    padding: Padding | None = None,
    by_size: Callable[[str, Sequence[int], Mapping[str, Any]], Mapping[str, Any]] | None = None,
    severity_of: Callable[[str], Mapping[str, str]] | None = None,
    replace: bool = False,
) -> Callable[..., _Decorator]:
    """Makes the decorator by which the modules of a benchmark register their corruptions.

    `@register("weather", _sample, {"strength": "unit"})` above `def fog(image, params)` makes `fog` the registered
    corruption: the function is its applier and gives it its name.

    Args:
      benchmark: the prefix of the qualified names.
      scale, rounding: of all its corruptions, see `Corruption`.
      source: source of all parameters that name no other.
      padding: padding of the corruptions that name no other, see `Corruption`.
      by_size: `(name, shape, options) -> {option: value}`: the options that the image size decides, for
        `Corruption.describe`.
      severity_of: `name -> {severity parameter: unit}`, for corruptions that do not list them.
      replace: see `register`.

    Raises:
      TypeError, ValueError: at once another scale, rounding or prefix; when it decorates, units of a parameter that
        the sampler does not return.

    Returns:
      `(family, sampler, units, *, severity=None, name="", aliases=(), mixes="", padding=..., straight_through=None, moves="",
      mapper=None, reflects=None)`, see `Corruption`. `units` maps each parameter that the sampler returns to its unit, or to a `Parameter` with another source; `severity` maps each
      column of the severity table to its unit.
      `name` replaces the function's. `straight_through` is the applier without its roundings, where these take its
      gradient.
    """

    check_kind(scale, rounding)
    _check_part(benchmark, "registrar")

    def listed(units: Mapping[str, str | Parameter]) -> tuple[Parameter, ...]:
        return tuple(u if isinstance(u, Parameter) else Parameter(p, u, source) for p, u in units.items())

    def decorator(
        family: str,
        sampler: Sampler,
        units: Mapping[str, str | Parameter],
        *,
        severity: Mapping[str, str | Parameter] | None = None,
        name: str = "",
        straight_through: Applier | None = None,
        **known: Any,
    ) -> _Decorator:
        fields = {"padding": padding, **known}

        def registered(applier: Applier) -> Corruption:
            own_name = name or applier.__name__
            if straight_through is not None:
                fields["straight_through"] = straight_through_estimator(applier, straight_through)
            if by_size is not None and "by_size" not in known:
                fields["by_size"] = functools.partial(by_size, own_name)
            if severity is not None or severity_of is not None:
                fields["severity_parameters"] = listed(severity or (severity_of(own_name) if severity_of else {}))
            made = Corruption(own_name, benchmark, family, sampler, applier, scale, rounding, listed(units), **fields)
            if not sampler.__module__.startswith("corruptions."):
                _check_parameters(made)
            return register(made, replace=replace)

        return registered

    return decorator


def register_benchmark(
    name: str,
    members: Iterable[str] | Mapping[str, Sequence[int]],
    levels: Mapping[str, Sequence[int]] | None = None,
    options: Mapping[str, Any] | None = None,
    replace: bool = False,
) -> None:
    """Names an ordered list of corruptions.

    A benchmark that fixes options has its own members: each member with such an option is registered again as
    `NAME/MEMBER`, with the benchmark's option as its default.

    Args:
      name: name of the benchmark.
      members: qualified names of its corruptions, in published order; a mapping gives their `levels`, too.
      levels: for every member, which of its levels are the benchmark's severities 1, 2, ...; None where the benchmark
        has the severities of its members.
      options: static options that the benchmark fixes for the members that have them, such as `{"table": "cifar"}`: a
        value, or a function of the image's shape (H, W, C).
      replace: whether it takes the place of a benchmark with its name, and members with fixed options that of earlier
        ones, see `register`.

    Raises:
      ValueError: the name is taken, a member is not registered, an option that no member has, or levels that a member
        lacks.
    """
    _check_part(name, "benchmark")
    built_in.load(name)
    if name in _BENCHMARKS and not replace:
        raise Refused("name", "a name that is free", f"{name!r}, registered already", "replace=True replaces it")
    if isinstance(members, Mapping) and levels is None:
        levels = members
    members = tuple(members)
    missing = [m for m in members if (found := find(m)) is None or found.qualified_name != m]
    if missing:
        raise Refused("members", f"registered corruptions in the benchmark {name!r}", missing)
    known = {option for member in members for option in get(member).options}
    checks.options(f"benchmark {name!r}", known, options or ())
    selected = {member: None if levels is None else _checked_levels(member, levels.get(member)) for member in members}
    _BENCHMARKS[name] = {_with_options(member, name, options or {}, replace): own for member, own in selected.items()}


def _checked_levels(member: str, levels: Any) -> tuple[int, ...]:
    scale = get(member).scale
    if not isinstance(scale, Levels) or levels is None:
        raise Refused("levels", "levels of each member, which has levels", f"{levels} of {member}")
    return selected(tuple(levels), scale.count) or ()


def _with_options(member: str, benchmark: str, options: Mapping[str, Any], replace: bool) -> str:
    """Registers a member again with the options that a benchmark fixes; returns its qualified name."""
    corruption = get(member)
    own = {option: value for option, value in options.items() if option in corruption.options}
    if not own:
        return member
    fixed = {**corruption.fixed, **own}
    own_member = dataclasses.replace(corruption, benchmark=benchmark, aliases=(), fixed=fixed)
    _COPIES.add(own_member.qualified_name)
    return register(own_member, replace=replace).qualified_name


def with_copies(name: str) -> tuple[str, ...]:
    """Lists a corruption and the copies of it with options that benchmarks fix: imagenet_c/frost, robodepth/frost."""
    own = get(name)
    copies = (c.qualified_name for c in every() if c.qualified_name in _COPIES and c.applier is own.applier)
    return tuple(dict.fromkeys((own.qualified_name, *copies)))


def benchmarks() -> tuple[str, ...]:
    """Lists the names of all benchmarks: the library's own, then others in order of registration."""
    built_in.load_all()
    return tuple(sorted(_BENCHMARKS, key=built_in.rank))


def names(benchmark: str | None = None) -> tuple[str, ...]:
    """Lists the qualified names of all corruptions, or of a benchmark's members in published order.

    The list of all has no copies with the options that a benchmark fixes, such as `robodepth/fog`.

    Raises:
      ValueError: an unknown benchmark.
    """
    if benchmark is None:
        published = (member for benchmark in benchmarks() for member in _BENCHMARKS[benchmark])
        return tuple(n for n in dict.fromkeys((*published, *(c.qualified_name for c in every()))) if n not in _COPIES)
    return tuple(_members(benchmark))


def severities(name: str | Corruption, benchmark: str | None = None) -> tuple[int, ...] | tuple[float, ...]:
    """Lists the severities of a corruption that a table of results has, mildest first.

    Args:
      name: a corruption.
      benchmark: one that it is a member of.

    Returns:
      The levels that are the benchmark's severities 1, 2, ... where it selects some (`cifar10_c_bar` takes the levels
      1, 5, 8, 9 and 10 of `cbar/sparkles`); else every level of the corruption, or the fractions 0, 1/4, ..., 1 of its
      range.

    Raises:
      ValueError: an unknown name or benchmark, or a corruption that is no member of it.
    """
    corruption = get(name)
    if benchmark is not None and (selected := selected_levels(corruption, benchmark)) is not None:
        return selected
    scale = corruption.scale
    return tuple(range(1, scale.count + 1)) if isinstance(scale, Levels) else _FRACTIONS


def selected_levels(name: str | Corruption, benchmark: str) -> tuple[int, ...] | None:
    """Lists the levels of a member that a benchmark selects as severities 1, 2, ...; None for all.

    Raises ValueError for an unknown name or benchmark, or a corruption that is no member of it.
    """
    corruption, members = get(name), _members(benchmark)
    if corruption.qualified_name not in members:
        raise Refused("name", f"a member of {benchmark}", corruption.qualified_name)
    return members[corruption.qualified_name]


def with_levels(options: Mapping[str, Any], levels: Sequence[int] | None) -> Mapping[str, Any]:
    """Adds to a corruption's options the levels that its random severities come from; a range takes precedence."""
    return options if levels is None or options.get("range") else {"levels": levels, **options}


def qualified_options(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Checks {corruption: its options}; returns the options by qualified name. Those of `fog` and `imagenet_c/fog` join."""
    if not isinstance(options, Mapping):
        raise RefusedType("options", "options as {corruption: {option: value}}", type(options).__name__)
    found: dict[str, dict[str, Any]] = {}
    for name, given in options.items():
        corruption = get(name)
        if not isinstance(given, Mapping):
            raise Refused("options", "{option: value}", repr(given), place=str(name))
        checks.options(corruption.qualified_name, corruption.options, given)
        found.setdefault(corruption.qualified_name, {}).update(checks.static_options(given))
    return found


def _members(benchmark: str) -> dict[str, tuple[int, ...] | None]:
    built_in.load(benchmark)
    if benchmark not in _BENCHMARKS:
        checks.one_of("benchmark", "a benchmark", benchmark, benchmarks())
    return _BENCHMARKS[benchmark]


def get(name: str | Corruption, *, value_range: tuple[float, float] | None = None) -> Corruption:
    """Finds a corruption by name: qualified (`noc/hue`), or short. A short name means ImageNet-C's corruption where
    ImageNet-C has it (`fog`, `brightness`); any other must be unique.

    Aliases count as names; a benchmark that fixes options gives its members only qualified names.

    Args:
      name: a name; a `Corruption` is returned unchanged.
      value_range: (low, high) of the float images that the returned corruption takes and gives, inside a jit too, where
        nobody sees the values; by default [0, 1]. For `corrupt`, or a call on one image.

    Raises:
      TypeError: no name.
      UnknownCorruption: a ValueError, an unknown name (with suggestions).
      ValueError: a name that several benchmarks or packages use, or no range.
    """
    if value_range is not None:
        return get(name).with_value_range(value_range)
    if isinstance(name, Corruption):
        return name
    if not isinstance(name, str):
        kind = name if isinstance(name, int | float) else type(name).__name__
        hint = "the order is corrupt(key, images, name, severity), corrupt_image(image, name, severity)"
        raise RefusedType("name", "the name of a corruption", kind, hint)
    if (corruption := find(name)) is not None:
        return corruption
    known = every()
    if name in NAMED:
        sharing = [c.qualified_name for c in known if name in _spellings(c) and c.qualified_name not in _COPIES]
        users = "benchmarks or packages" if name in built_in.OF_OTHERS else "benchmarks"
        sharing += [built_in.OF_OTHERS[name]] if name in built_in.OF_OTHERS else []
        hint = f"say {' or '.join(map(repr, sharing))}"
        raise Refused("name", "the name of one corruption", f"{name!r}, which several {users} use", hint)
    if name in benchmarks():
        raise Refused("name", "a corruption", f"the benchmark {name!r}", f"its members are names({name!r})")
    spellings = [*(s for c in known for s in (c.qualified_name, c.name)), *benchmarks()]
    prefix, slash, _ = name.partition("/")
    prefix = prefix if slash and prefix not in {c.qualified_name.partition("/")[0] for c in known} else ""
    near = checks.suggest(name, spellings)
    meant = f"did you mean {built_in.OF_OTHERS[name]!r}?" if name in built_in.OF_OTHERS else near
    hints = (meant, "see corruptions.names()", prefix and f"if {prefix} is yours, import its module first")
    error = UnknownCorruption("name", "a registered corruption", repr(name), "; ".join(filter(None, hints)))
    error.unknown_prefix = prefix
    raise error


def find(name: str) -> Corruption | None:
    """Returns the corruption that a name means (`get`), None where there is no one, or several.

    A short name needs the packages of all corruptions, where it is not one of ImageNet-C's.
    """
    prefix, slash, _ = name.partition("/")
    built_in.load(prefix if slash else _FIRST)
    if not slash and f"{_FIRST}/{name}" not in NAMED:
        built_in.load_all()
    return NAMED.get(name)


def every() -> list[Corruption]:
    """Lists all registered corruptions, copies with a benchmark's options too: the library's own come first."""
    built_in.load_all()
    found = (corruption for corruption in NAMED.values() if corruption is not None)
    return sorted(dict.fromkeys(found), key=lambda corruption: built_in.rank(corruption.benchmark))


def registered(name: str | Corruption) -> Corruption:
    """Finds a corruption that its name finds again, as `get`; raises ValueError for a record that is not registered."""
    corruption = get(name)
    if NAMED.get(corruption.qualified_name) is not corruption:
        raise Refused(
            "name", "registered corruptions", f"{corruption!r}, which is not", "corruptions.register(it) first"
        )
    return corruption


def _spellings(corruption: Corruption) -> tuple[str, ...]:
    spellings = (corruption.name, *corruption.aliases)
    return spellings + tuple(f"{corruption.benchmark}/{s}" for s in spellings)
