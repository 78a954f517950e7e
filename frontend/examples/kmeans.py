"""kmeans.py: k-means of points in the plane."""
import numpy as np
from example import uniform

N, K, STEPS = 3000, 4, 12

where = np.array([[0, 0], [3, 1], [1, 4], [-2, 3]], dtype=np.float64)
u = uniform(4 * N, 0).astype(np.float64).reshape(N, 2, 2)
points = where[np.arange(N) % K] + 2 * (u[:, 0] + u[:, 1] - 1)

centres = points[:K]
for step in range(1, STEPS + 1):
    distances = ((points[:, None] - centres) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    inertia = distances.min(axis=1).sum()
    one_hot = nearest[:, None] == np.arange(K)
    centres = one_hot.T.astype(np.float64) @ points / one_hot.sum(axis=0)[:, None]
    if step % 3 == 0:
        print(f"step {step:2}  inertia {inertia:10.4f}")
for k in range(K):
    print(f"centre {k}  {centres[k, 0]:7.4f} {centres[k, 1]:7.4f}")
