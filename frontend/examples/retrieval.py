"""retrieval.py: the nearest documents of each query."""
import numpy as np
from example import uniform

DOCUMENTS, QUERIES, FEATURES, K = 2000, 4, 24, 3


def make_rows(rows, seed):
    x = uniform(rows * FEATURES, seed).reshape(rows, FEATURES).astype(np.float64) - 0.5
    return x / np.sqrt((x**2).sum(axis=1, keepdims=True))


documents, queries = make_rows(DOCUMENTS, 0), make_rows(QUERIES, 1)
scores = queries @ documents.T
which = np.argsort(-scores, axis=1)[:, :K]
for q in range(QUERIES):
    found = "".join(f"  {d:4} ({scores[q, d]:.6f})" for d in which[q])
    print(f"query {q} {found}")
