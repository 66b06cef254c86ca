#!/usr/bin/env bash
# Guess: cv2.min(image, 200) and cv2.max(image, 10) bound each channel, as cv2.add(image, 50) adds
#        to each.
# Seen:  the number is bound to the first channel, and the others are compared with 0:
#        cv2.min(image, 200) keeps blue and makes green and red black, cv2.max(image, 150) raises
#        blue alone. add, subtract, multiply, divide and absdiff take the number for each channel.
#        The same in OpenCV 4.14.
# Hurts: "clip to [0, 255]" by cv2.min(cv2.max(x, 0), 255) leaves one channel of three, and a
#        network is tested on blue pictures.
# Do:    np.clip, or give arrays.
# With:  opencv-python-headless 5.0.0.93, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'opencv-python-headless==5.0.0.93' 'numpy==2.4.6'
cat > check.py <<'EOF'
import cv2
import numpy as np

image = np.full((8, 8, 3), 100, np.uint8)
found = {
    "add 50": cv2.add(image, 50), "subtract 50": cv2.subtract(image, 50), "absdiff 50": cv2.absdiff(image, 50),
    "multiply 2": cv2.multiply(image, 2), "min 50": cv2.min(image, 50), "min 200": cv2.min(image, 200), "max 150": cv2.max(image, 150),
}  # fmt: skip
found = {name: result[0, 0].tolist() for name, result in found.items()}
print("grey 100:", found)
assert found["add 50"] == [150] * 3 and found["subtract 50"] == [50] * 3 and found["multiply 2"] == [200] * 3
assert found["min 50"] == [50, 0, 0] and found["min 200"] == [100, 0, 0] and found["max 150"] == [150, 100, 100]
EOF
venv/bin/python check.py
