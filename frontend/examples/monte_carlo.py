"""monte_carlo.py: a million random points, each a hash of its number."""
import math

import numpy as np
from example import uniform

N = 1000000

x = uniform(N, 0).astype(np.float64)
y = uniform(N, 1).astype(np.float64)
from_origin = x**2 + y**2
count = np.sum(from_origin < 1)
share = count / N

print(f"inside the circle: {count}")
print(f"pi = {4 * share:.6f} +- {4 * math.sqrt(share * (1 - share) / N):.6f}")
print(f"mean distance from a corner of the unit square: {np.sqrt(from_origin).mean():.8f}")
print(f"integral of exp(-xy) over it: {np.exp(-(x * y)).mean():.8f}")
