"""Distribution features of corrupted images, as the golden figures define them (NumPy, float64)."""

import numpy as np

LUMA = np.array([0.299, 0.587, 0.114])


def features(clean, corrupted):
    """Computes the features of a pair of images uint8 [H, W, 3]: float64 arrays, keyed like the golden JSON files."""
    x, y = clean / 255.0, corrupted / 255.0
    difference = y - x
    luma = y @ LUMA
    luma = luma - luma.mean()
    variance = (luma**2).mean()
    red, green = difference[..., 0].ravel(), difference[..., 1].ravel()
    spread = red.std() * green.std()
    return {
        "mean_rgb": y.mean((0, 1)),
        "std_rgb": y.std((0, 1)),
        "mad": np.abs(difference).mean(),
        "diff_std": difference.std(),
        "diff_quantiles_1_25_50_75_99": np.quantile(difference, [0.01, 0.25, 0.5, 0.75, 0.99]),
        "log10_radial_power_8bins": _radial_power(luma),
        "autocorr_x_y": np.array([(luma[:, 1:] * luma[:, :-1]).mean(), (luma[1:] * luma[:-1]).mean()])
        / max(variance, 1e-12),
        # 1 where a channel does not change at all, as in the reference figures.
        "channel_corr": ((red - red.mean()) * (green - green.mean())).mean() / spread if spread > 0 else 1.0,
    }


def _radial_power(luma):
    power = np.abs(np.fft.fft2(luma)) ** 2 / luma.size
    fy, fx = np.fft.fftfreq(luma.shape[0])[:, None], np.fft.fftfreq(luma.shape[1])[None]
    radius = np.sqrt(fy**2 + fx**2)
    edges = np.linspace(0, 0.5, 9)
    bins = np.digitize(radius, edges) - 1
    return np.array([np.log10(power[bins == b].mean() + 1e-12) for b in range(8)])
