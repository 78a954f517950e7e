"""rolling.py: moving average and rolling standard deviation of a series."""
import numpy as np
from example import uniform

N, WINDOW = 5000, 50

step = uniform(N, 0).astype(np.float64) - 0.5
step[0] = 100
price = np.cumsum(step)

windows = np.lib.stride_tricks.sliding_window_view(price, WINDOW)
average = windows.mean(axis=1)
std = windows.std(axis=1)
outside = np.sum(np.abs(windows[:, -1] - average) > 2 * std)

for i in range(0, len(average), 990):
    print(f"from {i:4}  mean {average[i]:8.4f}  deviation {std[i]:6.4f}")
print(f"beyond two deviations: {outside} of {len(average)}")
