#!/usr/bin/env bash
# Guess: H.264 keeps most of a noise of deviation 20 in frames, channel by channel; at crf 0,
#        "lossless", grey frames come back.
# Seen:  with yuv420p and the defaults colour noise keeps two thirds of its deviation, and red and
#        blue, drawn apart, come back correlated at .9. At crf 0 half of the 256 greys are a level
#        off: RGB to YUV of limited range and back is not exact, whatever the codec keeps.
# Hurts: noise that was added before a clip is stored is another corruption afterwards: weaker, grey,
#        and soft; two pipelines, in memory and stored, differ at every severity.
# Do:    corrupt after decoding, or store frames as PNG or in FFV1 with an RGB format.
# With:  av 18.1.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'av==18.1.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import av
import numpy as np


def stored(frames, name, **options):
    with av.open(name, "w") as file:
        stream = file.add_stream("libx264", rate=25, options=options)
        stream.height, stream.width, stream.pix_fmt = *frames.shape[1:3], "yuv420p"
        for frame in frames:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        file.mux(stream.encode())
    with av.open(name) as file:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)])


rng = np.random.default_rng(0)
noisy = np.clip(128 + 20 * rng.standard_normal((10, 128, 128, 3)), 0, 255).astype(np.uint8)
back = stored(noisy, "noise.mp4").astype(float)
kept = back.std((0, 1, 2)).mean() / noisy.std((0, 1, 2)).mean()
together = np.corrcoef(back[..., 0].ravel(), back[..., 2].ravel())[0, 1]
print(f"colour noise keeps {kept:.2f} of its deviation; red and blue correlate at {together:.2f}")
greys = np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None, None, None], (256, 64, 64, 3))
exact = [bool((frame == grey).all()) for frame, grey in zip(stored(greys, "grey.mp4", crf="0"), greys)]
print(f"at crf 0 {sum(exact)} of 256 greys come back")
assert 0.5 < kept < 0.85 and together > 0.75 and 80 < sum(exact) < 180
EOF
venv/bin/python check.py
