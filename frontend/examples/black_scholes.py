"""black_scholes.py: prices of options and their greeks."""
import math

import numpy as np
from example import uniform

N = 10000
RATE = 0.03
erf = np.vectorize(math.erf)


def cdf(x):
    return 0.5 * (1 + erf(x * math.sqrt(0.5)))


def pdf(x):
    return np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def numbers(seed, low, width):
    return low + width * uniform(N, seed).astype(np.float64)


spot, strike = numbers(0, 50, 100), numbers(1, 50, 100)
years, volatility = numbers(2, 0.1, 2), numbers(3, 0.1, 0.4)

spread = volatility * np.sqrt(years)
d1 = (np.log(spot / strike) + (RATE + 0.5 * volatility**2) * years) / spread
d2 = d1 - spread
discounted = strike * np.exp(-RATE * years)

call = spot * cdf(d1) - discounted * cdf(d2)
put = call - spot + discounted
delta = cdf(d1)
gamma = pdf(d1) / (spot * spread)
vega = spot * pdf(d1) * np.sqrt(years)

for name, x in dict(call=call, put=put, delta=delta, gamma=gamma, vega=vega).items():
    print(f"{name:5}  mean {x.mean():9.5f}  first {x[0]:9.5f} {x[1]:9.5f}  last {x[-1]:9.5f}")
