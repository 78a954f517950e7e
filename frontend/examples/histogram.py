"""histogram.py: counts and means by bin."""
import numpy as np
from example import uniform

N, BINS = 100000, 16

x = uniform(3 * N, 0).reshape(3, N).astype(np.float64).mean(axis=0)
weight = (x - 0.5) ** 2
index = (x * BINS).astype(int)
counts = np.bincount(index, minlength=BINS)
means = np.bincount(index, weights=weight, minlength=BINS) / np.maximum(counts, 1)

for i in range(BINS):
    bar = "#" * -(-counts[i] // 300)
    print(f"{i / BINS:6.4f}  {counts[i]:5}  weight {means[i]:.6f}  {bar}")
