"""Point spread functions beside chromatix, where it is installed: `pip install git+https://github.com/chromatix-team/chromatix`.

The package of that name on PyPI, 0.0.1, is an empty placeholder.
"""

import numpy as np
import pytest

from corruptions import optics

ANSI = {3: 4, 4: 5, 5: 3, 6: 8, 7: 7, 8: 12, 9: 9, 10: 6}  # Fringe numbers counted from 0, and their ANSI numbers
Q, SAMPLES, SIZE = 2.0, 96, 25


@pytest.mark.slow
@pytest.mark.needs("chromatix.utils.initializers")
@pytest.mark.parametrize("number", ANSI)
def test_a_point_spread_function_is_that_of_chromatixs_phase(number):
    """Its phase over its own pupil, then the Fraunhofer integral as a Fourier transform."""
    from chromatix.utils import initializers

    side, waves = int(SAMPLES * Q), 0.8
    pupil = {"shape": (side, side), "spacing": 2 / SAMPLES, "wavelength": 1.0, "n": 1.0, "f": 1.0, "NA": 1.0}

    def phase(ansi, coefficient):
        found = initializers.zernike_aberrations(
            ansi_indices=(ansi,), coefficients=(coefficient,), normalize=False, **pupil
        )
        return np.nan_to_num(np.asarray(found, np.float64))  # beyond the pupil sines may be 0 / 0

    inside = phase(0, 1.0) > 0
    intensity = np.abs(np.fft.fftshift(np.fft.fft2(inside * np.exp(1j * phase(ANSI[number], waves))))) ** 2
    middle = slice(side // 2 - SIZE // 2, side // 2 + SIZE // 2 + 1)
    expected = intensity[middle, middle] / intensity[middle, middle].sum()
    found = optics.psf({number: waves}, Q, size=SIZE, samples=SAMPLES, parts=1)
    assert np.abs(found - expected).sum() < 0.03
