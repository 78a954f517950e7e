"""pagerank.py: PageRank by power iteration."""
import numpy as np
from example import uniform

PAGES, DAMPING = 200, 0.85

i = np.arange(PAGES)
links = uniform(PAGES * PAGES, 0).reshape(PAGES, PAGES) < 0.4 / (i[:, None] + 4)
links &= i[:, None] != i
out = links.sum(axis=0)
follow = np.where(out == 0, 1 / PAGES, links / np.maximum(out, 1))
rank = np.full(PAGES, 1 / PAGES)

steps, change = 0, 1
while change > 1e-10:
    following = DAMPING * (follow @ rank) + (1 - DAMPING) / PAGES
    change = np.abs(following - rank).sum()
    rank = following
    steps += 1

print(f"{steps} steps, sum {rank.sum():.9f}")
for page in [0, 1, 2, 3, 4, 5, 53, 101, 149, 197]:
    print(f"page {page:3}  rank {rank[page]:.7f}")
