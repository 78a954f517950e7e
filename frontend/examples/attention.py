"""attention.py: causal self-attention with four heads."""
import numpy as np
from example import uniform

TOKENS, HEADS, WIDTH = 48, 4, 8
MODEL = HEADS * WIDTH


def matrix(rows, columns, scale, seed):
    u = uniform(rows * columns, seed).reshape(rows, columns)
    return (u * np.float32(2) - np.float32(1)) * np.float32(scale)


def split_heads(x):
    return x.reshape(TOKENS, HEADS, WIDTH).transpose(1, 0, 2)


x = matrix(TOKENS, MODEL, 1, 0)
q, k, v = (split_heads(x @ matrix(MODEL, MODEL, 0.5, i + 1)) for i in range(3))

scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(WIDTH))
token = np.arange(TOKENS)
scores = np.where(token <= token[:, None], scores, np.float32(-np.inf))
e = np.exp(scores - scores.max(axis=-1, keepdims=True))
weights = e / e.sum(axis=-1, keepdims=True)

heads = (weights @ v).transpose(1, 0, 2).reshape(TOKENS, MODEL)
y = heads @ matrix(MODEL, MODEL, 0.5, 4)
entropy = -(weights * np.log(np.maximum(weights, np.float32(1e-30)))).sum(axis=-1).mean(axis=-1)

for h in range(HEADS):
    print(f"head {h}  entropy {entropy[h]:.4f}")
for t in range(0, TOKENS, 12):
    print(f"token {t:2}  {y[t, 0]:8.4f} {y[t, 1]:8.4f} ... {y[t, -1]:8.4f}")
