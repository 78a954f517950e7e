"""life.py: Conway's Game of Life on a torus."""
import numpy as np
from example import uniform

ROWS, COLUMNS, GENERATIONS = 16, 40, 30


def next_generation(cells):
    around = sum(np.roll(cells, (down, right), axis=(0, 1))
                 for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right)
    return ((cells != 0) & (around == 2) | (around == 3)).astype(np.uint8)


cells = (uniform(ROWS * COLUMNS, 0) < 0.3).astype(np.uint8).reshape(ROWS, COLUMNS)
for _ in range(GENERATIONS):
    cells = next_generation(cells)
for row in cells:
    print("".join("#" if cell else "." for cell in row))
print(f"{cells.sum()} alive after {GENERATIONS} generations")
