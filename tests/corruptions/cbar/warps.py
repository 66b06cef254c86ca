"""The candidates that move pixels."""

from corruptions.cbar import displacement, lenses, projection, refraction

CORRUPTIONS = {
    "caustic_refraction": refraction.caustic_refraction,
    "pinch_and_twirl": lenses.pinch_and_twirl,
    "fish_eye": lenses.fish_eye,
    "water_drop": lenses.water_drop,
    "ripple": displacement.ripple,
    "scatter": displacement.scatter,
    "perspective_no_bars": projection.perspective_no_bars,
    "quadrilateral_no_bars": projection.quadrilateral_no_bars,
}
