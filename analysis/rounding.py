"""Numbers as text, with as many digits as their standard errors leave meaning in."""

import math

_MOST = 4  # decimals
_WITHOUT_ERROR = 3
_MINUS, _SPACE = "\N{MINUS SIGN}", "\N{NO-BREAK SPACE}"


def decimals(se: float | None) -> int:
    """Counts the decimals of a value: up to the first digit of its standard error, or the second one where the first is
    1; 3 where no error is known, 4 at most.
    """
    if se is None or not math.isfinite(se) or se <= 0:
        return _WITHOUT_ERROR
    first_digit = -math.floor(math.log10(se))
    return min(max(first_digit + (round(se * 10**first_digit, 1) < 2), 0), _MOST)


def fixed(value: float | None, places: int, sign: bool = False) -> str:
    """Writes a number with `places` decimals and a proper minus, never a negative zero; an undefined number is a dash."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    text = f"{round(value, places) + 0.0:{'+' if sign and round(value, places) else ''}.{places}f}"
    return text.replace("-", _MINUS)


def with_error(value: float | None, se: float | None, sign: bool = False) -> str:
    """Writes `0.85 ± 0.06`: value and standard error, rounded alike, with spaces that do not break."""
    if value is None or not math.isfinite(value):
        return "undefined"
    places = decimals(se)
    text = fixed(value, places, sign)
    return text if se is None or not math.isfinite(se) else f"{text}{_SPACE}±{_SPACE}{fixed(se, places)}"


def compact(value: float | None, se: float | None) -> tuple[str, str]:
    """Writes (`.85`, `±.06`) for the cell of a matrix: at most two decimals and no zero before the point."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}", ""
    places = min(decimals(se), 2)
    error = "" if se is None or not math.isfinite(se) or se == 0 else "±" + _bare(fixed(se, places))
    text = fixed(value, places)
    return (text.split(".")[0] if float(text.replace(_MINUS, "-")) in (0, 1) else _bare(text)), error


def percent(fraction: float) -> str:
    """Writes a fraction of resamples as a percentage: whole, with one decimal below 1 % and above 99 %."""
    value = 100 * fraction
    return f"{value:.{int(0 < value < 1 or 99 < value < 100)}f}{_SPACE}%"


def _bare(text):
    sign, digits = (text[0], text[1:]) if text[0] == _MINUS else ("", text)
    return sign + (digits[1:] if digits.startswith("0.") else digits)
