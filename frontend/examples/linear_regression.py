"""linear_regression.py: least squares by the normal equations."""
import numpy as np
from example import uniform

N, D = 2000, 5

x = uniform(N * D, 0).reshape(N, D).astype(np.float64)
noise = x[:, 0] - 0.5
x[:, 0] = 1
y = x @ np.array([1, -2, 3, 0.5, 0]) + noise

w = np.linalg.solve(x.T @ x, x.T @ y)
r2 = 1 - ((x @ w - y) ** 2).mean() / y.var()
for j in range(D):
    print(f"w[{j}] = {w[j]:9.6f}")
print(f"R2 = {r2:.6f}")
