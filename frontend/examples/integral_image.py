"""integral_image.py: means over any box of an image from four numbers each."""
import numpy as np
from example import uniform

ROWS, COLUMNS = 72, 96

row, column = np.ogrid[:ROWS, :COLUMNS]
noise = uniform(ROWS * COLUMNS, 0).reshape(ROWS, COLUMNS)
pixels = (row + column + (np.float32(80) * noise).astype(int)).astype(np.uint8)
integral = np.pad(pixels.cumsum(axis=0, dtype=np.int64).cumsum(axis=1), [(1, 0), (1, 0)])

radius = row // 10 + 1
top, bottom = np.clip(row - radius, 0, ROWS), np.clip(row + radius + 1, 0, ROWS)
left, right = np.clip(column - radius, 0, COLUMNS), np.clip(column + radius + 1, 0, COLUMNS)
sums = (integral[bottom, right] + integral[top, left]
        - integral[top, right] - integral[bottom, left])
mean = sums / ((bottom - top) * (right - left))
bright = (pixels > mean).sum(axis=1)

for i in range(0, ROWS, 10):
    print(f"row {i:2}  bright {bright[i]:2}  means "
          f"{mean[i, 0]:9.4f} {mean[i, 50]:9.4f} {mean[i, -1]:9.4f}")
