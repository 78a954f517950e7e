"""ranks.py: medians, trimmed means and rank correlation."""
import numpy as np
from example import uniform

N, COLUMNS = 1000, 3

u = uniform(COLUMNS * N, 0).reshape(COLUMNS, N).astype(np.float64)
wild = np.where(np.arange(N) % 50 == 7, 30, 0)
x = u + 2 * np.array([[0], [1], [-1]]) * u[0] + wild * u


def correlations(x):
    return np.corrcoef(x)[0]


ranks = x.argsort(axis=1).argsort(axis=1)
rows = {
    "mean": x.mean(axis=1),
    "median": np.median(x, axis=1),
    "trimmed mean": np.sort(x, axis=1)[:, N // 20:-N // 20].mean(axis=1),
    "correlation": correlations(x),
    "of ranks": correlations(ranks),
}
for name, values in rows.items():
    print(f"{name:12} {values[0]:10.6f} {values[1]:10.6f} {values[2]:10.6f}")
