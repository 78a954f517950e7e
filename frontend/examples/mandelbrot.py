"""mandelbrot.py: how long points of the plane stay near 0 under z = z^2 + c."""
import numpy as np

ROWS, COLUMNS, ITERATIONS = 24, 72, 60

cr = np.linspace(-2.1, 0.7, COLUMNS)
ci = np.linspace(-1.15, 1.15, ROWS)[:, None]
zr = np.zeros((ROWS, COLUMNS))
zi = np.zeros((ROWS, COLUMNS))
count = np.zeros((ROWS, COLUMNS), dtype=np.int32)

for _ in range(ITERATIONS):
    near = zr**2 + zi**2 <= 4
    r = zr**2 - zi**2 + cr
    im = zr * zi * 2 + ci
    zr = np.where(near, r, zr)
    zi = np.where(near, im, zi)
    count += near

for row in count:
    print("".join(" .:-=+*%@#"[n * 9 // ITERATIONS] for n in row))
print(f"iterations: {count.sum()}")
