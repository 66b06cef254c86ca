"""The candidates that move pixels."""

from corruptions import cbar

CORRUPTIONS = {
    name: getattr(cbar, name)
    for name in (
        *("caustic_refraction", "pinch_and_twirl", "fish_eye", "water_drop"),
        *("ripple", "scatter", "perspective_no_bars", "quadrilateral_no_bars"),
    )
}
