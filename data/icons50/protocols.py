"""Which icons of ICONS-50 are tested on; the others are trained on.

    microsoft, apple    the icons of a style
    subclass            the icons of 50 held-out subtypes

The released code looks for the name of a style or subtype anywhere in an icon's path, `match=path`.
`books` and `monkey` are names of classes too, so that it holds out every icon of both; longer
names that hold a shorter one go with it. `match=subtype_exact` holds out what the list says.
"""

import logging

import numpy as np

from data.icons50.release import Icons

STYLES = ("microsoft", "apple")
MATCHES = ("path", "subtype_exact")
_FAMILY = tuple(f"family_man_{children}" for children in ("boy", "girl", "boy_boy", "girl_boy", "girl_girl"))
HELD_OUT = {  # class: subtypes
    "airplane": ("small_airplane",),
    "arrow_directions": ("top_with_upwards_arrow_above",),
    "ball": ("soccer_ball",),
    "bird": ("duck", "hatching_chick"),
    "blade": ("crossed_swords",),
    "boat": ("passenger_ship",),
    "books": ("ledger", "books"),
    "building": ("derelict_house_building", "convenience_store"),
    "bunny_ears": ("rabbit_face",),
    "cartwheeling": ("cartwheel_type_6",),
    "clock": ("mantelpiece_clock", "watch"),
    "cloud": ("sun_behind_cloud_with_rain",),
    "drinks": ("wine_glass",),
    "emotion_face": ("face_throwing_a_kiss",),
    "envelope": ("e_mail_symbol",),
    "family": _FAMILY,
    "fast_train": ("monorail",),
    "feline": ("leopard",),
    "flag": ("chequered_flag",),
    "flower": ("tulip",),
    "footwear": ("womans_sandal",),
    "hand": ("victory_hand",),
    "hat": ("womans_hat",),
    "heart": ("broken_heart",),
    "japanese_ideograph": ("unified_ideograph_5408", "circled_ideograph_accept"),
    "lock": ("closed_lock_with_key",),
    "mailbox": ("open_mailbox_with_lowered_flag",),
    "marine_animals": ("shark",),
    "medal": ("military_medal",),
    "money": ("banknote_with_dollar_sign",),
    "monkey": ("monkey",),
    "moon": ("crescent_moon",),
    "mountain": ("mount_fuji",),
    "phone": ("mobile_phone_off",),
    "prohibit_sign": ("no_smoking_symbol",),
    "star": ("glowing_star",),
    "tree": ("evergreen_tree",),
    "umbrella": ("umbrella_with_rain_drops",),
    "vehicle": ("racing_car",),
    "worker": ("factory_worker",),
    "writing_utensil": ("pencil",),
}
SUBTYPES = tuple(name for names in HELD_OUT.values() for name in names)


def of_style(icons: Icons, style: str) -> np.ndarray:
    """Tells which icons are of a style, as the released code does: bool [N].

    Raises:
      ValueError: there is none, or nothing else.
    """
    return _checked(np.array([style in path for path in icons.paths]), f"style {style}")


def of_subclass(icons: Icons, match: str = "path") -> np.ndarray:
    """Tells which icons are of the held-out subtypes: bool [N].

    Args:
      icons: all.
      match: where their names are looked for, `path` or `subtype_exact`.

    Raises:
      ValueError: another `match`, or there is none, or nothing else.
    """
    if match not in MATCHES:
        raise ValueError(f"expected match {' or '.join(MATCHES)}, found {match!r}")
    if match == "path":
        held = np.array([[name in path for name in SUBTYPES] for path in icons.paths])
    else:
        held = np.array([[name == subtype for name in SUBTYPES] for subtype in icons.subtypes])
    if missing := [name for name, one in zip(SUBTYPES, held.any(0)) if not one]:
        logging.warning("ICONS-50: no icon of the subtypes %s, which are held out.", ", ".join(missing))
    return _checked(held.any(1), f"subtypes by {match}")


def _checked(held, what):
    if not held.any() or held.all():
        raise ValueError(f"expected icons of the {what} and others, found {held.sum()} of {len(held)}")
    return held
