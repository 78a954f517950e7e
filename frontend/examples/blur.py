"""blur.py: a separable Gaussian blur of an u8 image."""
import math

import numpy as np

ROWS, COLUMNS, RADIUS = 60, 80, 3


def blur_axis(x, axis):
    size = x.shape[axis]
    around = [(0, 0), (0, 0)]
    around[axis] = (RADIUS, RADIUS)
    padded = np.pad(x, around)
    total = 0
    for k in range(2 * RADIUS + 1):
        weight = np.float32(math.exp(-0.5 * (k - RADIUS) ** 2 / 1.5**2))
        total = total + weight * padded.take(range(k, k + size), axis=axis)
    return total


def blur(x):
    return blur_axis(blur_axis(x, 0), 1)


i, j = np.mgrid[:ROWS, :COLUMNS]
disc = (i - 30) ** 2 + (j - 25) ** 2 < 300
image = np.where(disc, 240, np.where(j > 55, j // 4 % 2 * 200, i + j)).astype(np.uint8)

x = image.astype(np.float32)
out = np.round(blur(x) / blur(np.ones_like(x))).astype(np.uint8)

checksum = 0
for byte in out.ravel().tolist():
    checksum = (checksum * 31 + byte) % 1000003
for row in out[::10, ::5]:
    print("".join(f"{byte:4}" for byte in row))
print(f"sum {out.sum()}, checksum {checksum}")
