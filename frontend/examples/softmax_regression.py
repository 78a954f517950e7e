"""softmax_regression.py: three classes by gradient descent."""
import numpy as np
from example import uniform

N, FEATURES, CLASSES, STEPS = 600, 4, 3, 50

mean = np.array([[0, 0.5, 0, -0.5], [0.75, 0, -0.25, 0], [-0.5, -0.5, 0.5, 0]], dtype=np.float32)
y = np.arange(N) % CLASSES
x = 2 * (uniform(N * FEATURES, 0).reshape(N, FEATURES) - np.float32(0.5)) + mean[y]
w = np.zeros((FEATURES, CLASSES), dtype=np.float32)
b = np.zeros(CLASSES, dtype=np.float32)

for step in range(STEPS + 1):
    logits = x @ w + b
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(N), y]).mean()
    accuracy = (logits.argmax(axis=1) == y).mean()

    gradient = (p - (y[:, None] == np.arange(CLASSES)).astype(np.float32)) / np.float32(N)
    w = w - 2 * (x.T @ gradient)
    b = b - 2 * gradient.sum(axis=0)
    if step % 10 == 0:
        print(f"step {step:2}  loss {loss:.4f}  accuracy {accuracy:.4f}")
for j in range(FEATURES):
    print(f"weights {j} {w[j, 0]:8.3f} {w[j, 1]:8.3f} {w[j, 2]:8.3f}")
