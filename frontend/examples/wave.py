"""wave.py: a string that swings."""
import numpy as np

N, STEPS = 400, 600

i = np.arange(N)
now = np.where(i < 100, i / 100, (N - 1 - i) / (N - 1 - 100))
now[0] = 0
before = now

for step in range(1, STEPS + 1):
    following = np.zeros(N)
    bend = now[:-2] + now[2:] - 2 * now[1:-1]
    following[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.25 * bend
    before, now = now, following
    if step % 150 == 0:
        tension = (np.diff(now) * np.diff(before)).sum()
        energy = ((now - before) ** 2).sum() + 0.25 * tension
        string = "".join(f" {x:8.5f}" for x in now[::80])
        print(f"step {step:3}  energy {energy:.10f}  string{string}")
