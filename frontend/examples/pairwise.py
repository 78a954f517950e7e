"""pairwise.py: everyone's nearest neighbour, block by block."""
import numpy as np
from example import uniform

N, FEATURES, BLOCK = 1200, 16, 300

points = uniform(N * FEATURES, 0).reshape(N, FEATURES).astype(np.float64)
norms = (points**2).sum(axis=1)
nearest = np.empty(N, dtype=np.int64)
distance = np.empty(N)
for i in range(0, N, BLOCK):
    rows = slice(i, i + BLOCK)
    squares = norms[rows, None] + norms - 2 * (points[rows] @ points.T)
    squares[np.arange(BLOCK), np.arange(i, i + BLOCK)] = np.inf
    nearest[rows] = squares.argmin(axis=1)
    distance[rows] = np.sqrt(squares.min(axis=1))

for i in range(0, N, 240):
    print(f"point {i:4}  nearest {nearest[i]:4}  distance {distance[i]:.6f}")
mutual = np.sum(nearest[nearest] == np.arange(N))
print(f"mean distance {distance.mean():.6f}, mutual neighbours {mutual}")
