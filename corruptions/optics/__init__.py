"""Lens aberrations after OpticsBench: two benchmarks of four blurs, and lenses of any Zernike coefficients.

P. Mueller, A. Braun, M. Keuper, "Classification robustness to common optical aberrations", ICCV workshops 2023,
arXiv:2308.15499. `optics` blurs all channels alike and is matched to ImageNet-C's defocus blur at any image size.
`optics_release` has the colour fringes of the released kernels, which it resembles and does not equal: their
coefficients are not published.
"""

from corruptions.core.registry import register_benchmark
from corruptions.optics.aberrations import MEMBERS, RELEASED, lens
from corruptions.optics.psf import mtf, mtf50, psf, waves_matching, zernike

defocus_spherical, astigmatism, coma, trefoil = MEMBERS

register_benchmark("optics", [corruption.qualified_name for corruption in MEMBERS])
register_benchmark("optics_release", [corruption.qualified_name for corruption in RELEASED])

__all__ = [
    "astigmatism", "coma", "defocus_spherical", "lens", "mtf", "mtf50", "psf", "trefoil", "waves_matching", "zernike",
]  # fmt: skip
