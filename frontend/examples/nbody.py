"""nbody.py: bodies under gravity, by leapfrog steps."""
import numpy as np
from example import uniform

N, STEPS, DT = 64, 100, 0.01


def pull(position):
    offset = position[None] - position[:, None]
    squares = (offset**2).sum(axis=2) + 0.01
    weight = mass / (squares * np.sqrt(squares))
    return (offset * weight[:, :, None]).sum(axis=1)


def energy(position, velocity):
    offset = position[None] - position[:, None]
    distance = np.sqrt((offset**2).sum(axis=2) + 0.01)
    moving = mass * (velocity**2).sum(axis=1)
    return 0.5 * (moving.sum() - (mass * mass[:, None] / distance).sum())


numbers = uniform(7 * N, 0).reshape(N, 7).astype(np.float64)
position = 2 * (numbers[:, :3] - 0.5)
velocity = numbers[:, 3:6] - 0.5
mass = numbers[:, 6] / numbers[:, 6].sum()

for step in range(STEPS + 1):
    if step % 25 == 0:
        x, y, z = position[0]
        print(f"step {step:3}  energy {energy(position, velocity):.7f}  "
              f"body 0 at {x:9.6f} {y:9.6f} {z:9.6f}")
    half = velocity + DT / 2 * pull(position)
    position = position + DT * half
    velocity = half + DT / 2 * pull(position)
