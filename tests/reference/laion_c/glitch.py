"""glitched: what the release draws at 224x224, as the facts of LAION-C list it, and its three steps in NumPy."""

import numpy as np

# (dx, dy), then (roll, first row, rows) of each pass; the displaced channel is red.
RELEASED = (
    ((-3, 0), (-4, 145, 55), (-7, 23, 6), (-1, 151, 35), (-1, 77, 7)),
    (
        *((-6, 0), (-18, 145, 55), (-28, 23, 6), (-5, 151, 35), (-5, 77, 7), (-3, 189, 23), (-25, 124, 49)),
        *((6, 38, 26), (-6, 94, 25)),
    ),
    (
        *((8, -8), (-39, 145, 55), (54, 217, 4), (-26, 151, 35), (-26, 77, 7), (23, 65, 48), (45, 146, 53)),
        *((-15, 38, 26), (-27, 94, 25), (3, 156, 24), (17, 8, 28)),
    ),
    (
        *((-12, 0), (-75, 145, 55), (-115, 23, 6), (-22, 151, 35), (-23, 77, 7), (-13, 189, 23), (-102, 124, 49)),
        *((22, 38, 26), (-27, 94, 25), (94, 156, 24), (-127, 109, 31), (88, 221, 3), (99, 68, 43), (-11, 74, 44)),
        *((-89, 157, 45), (-37, 2, 34), (42, 120, 31)),
    ),
    (
        *((16, -16), (-156, 145, 55), (217, 217, 4), (-103, 151, 35), (-104, 77, 7), (94, 65, 48), (182, 146, 53)),
        *((-59, 38, 26), (-108, 94, 25), (13, 156, 24), (68, 8, 28), (7, 221, 3), (18, 68, 43), (-92, 74, 44)),
        *((-170, 157, 45), (-118, 2, 34), (-39, 120, 31), (43, 106, 52), (-132, 31, 43), (122, 11, 51), (146, 175, 49)),
    ),
)


def reference(image, params, severity):
    del severity
    found, height = image.copy(), len(image)
    for roll, start, rows in params["bands"]:
        found[start : start + rows] = np.roll(image[start : start + rows], roll, axis=1)
    channel, (right, down) = params["channel"], params["offset"]
    found[..., channel] = np.roll(image[..., channel], down, axis=0)
    found[down % height, :, channel] = np.roll(found[down % height, :, channel], right)
    found[::2] = 0
    return found
