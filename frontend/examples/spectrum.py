"""spectrum.py: the power spectrum of two tones and noise."""
import numpy as np
from example import uniform

N = 512
TURN = 2 * np.pi / N

time = np.arange(N)
signal = np.sin(50 * TURN * time) + 0.5 * np.cos(120 * TURN * time)
signal += uniform(N, 0).astype(np.float64) - 0.5

power = np.abs(np.fft.rfft(signal)) ** 2
print(f"loudest bin {power.argmax()}")
for i in [0, 30, 60, 90, 120, 150, 180, 210, 240]:
    print(f"bin {i:3}  power {power[i]:12.5f}")
total = 2 * power.sum() - power[0] - power[-1]
print(f"energy by frequency {total / N:.6f}, in time {(signal**2).sum():.6f}")
