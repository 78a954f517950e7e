#!/usr/bin/env python3
"""Fits the tables of ir/tables.c and prints them. Needs mpmath and numpy; takes a minute.

f32, pieces(): 0 <= x <= limit is cut into 16 intervals by the leading bits of y = first + scale x.
On each the function is value + t P(t), t = x - center. The centers, near the middles, are floats
whose function value is a float as well, almost (Gal 1986). The coefficients are rounded to f32 one
by one, lowest order first, and the remaining ones fitted again: minimax in units of the result's
last place, by Lawson's weights. The first interval has center 0, so that what is small is relative.
Entries stand where y's bits, shifted right, lead modulo 16.

f32, gates(): gelu(x) = max(x, 0) - u P(u), u = |x|. Each piece but the first is centred on a
multiple of 1 / scale. Far from 0 rounding counts, so several degrees are tried, and polynomials
whose terms are kept small at the cost of the fit (damping); what is best as it is evaluated is
taken. From `edge` on P is 0, whose sign keeps that of x.

f64, erf: erf(n h) and its derivative, with h such that for the least n, where rounding errors of
the table count most, both are doubles, almost.
"""
import math
import textwrap

import mpmath as mp
import numpy as np

mp.mp.dps = 40
POINTS = 300


def f32(x):
    return float(np.float32(x))


def ulp32(x):
    return 2.0 ** (np.floor(np.log2(np.abs(x))) - 23)


def minimax(basis, target, weight, damping=None):
    """Coefficients of the basis' columns, by Lawson's iteration; damping: rows to keep small."""
    share = np.ones(len(target)) / len(target)
    best, least = None, math.inf
    for _ in range(40):
        s = np.sqrt(share) * weight
        rows, right = basis * s[:, None], target * s
        if damping is not None:
            rows = np.vstack([rows, damping])
            right = np.append(right, np.zeros(len(damping)))
        c, *_ = np.linalg.lstsq(rows, right, rcond=None)
        error = np.abs(basis @ c - target) * weight
        if error.max() < least:
            best, least = c, error.max()
        if error.max() == 0:
            break
        share = share * (error / error.max() + 1e-6)
        share /= share.sum()
    return best


def evaluate(c, t):
    """value + t P(t) as f32 fma do."""
    p = np.full_like(t, c[-1])
    for a in c[-2::-1]:
        p = np.float32(p * t + a).astype(float)
    return p


def fit_piece(function, low, high, center, fixed, degree, skip):
    """c[0] …; fixed: the first of them. skip: what the evaluation adds by itself, times t."""
    k = np.arange(POINTS)
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (k + 0.5) / POINTS)
    f, t, c = function(x), x - center, list(fixed)
    weight = 1 / ulp32(f)
    while len(c) <= degree:
        basis = np.stack([t**p for p in range(len(c), degree + 1)], axis=1)
        rest = f - skip * t - sum(a * t**i for i, a in enumerate(c))
        c.append(f32(minimax(basis, rest, weight)[0]))
    x = np.float32(np.linspace(low, high, 20001)).astype(float)
    x = x[(x > 0) & (x >= low) & (x <= high)]
    f, t = function(x), x - center
    got = np.float32(evaluate(c[1:], t) * t + (x if skip else c[0])).astype(float)
    return c, np.max(np.abs(got - f) / ulp32(f))


def digits(v):
    mantissa, exponent = v.hex().split('p')
    return mantissa.rstrip('0').rstrip('.') + 'p' + exponent if v else '0'


def print_row(words):
    print(textwrap.fill('{' + ', '.join(words) + '},', 96, initial_indent='    ',
                        subsequent_indent='     '))


def centers(function, low, high):
    """The floats near the middle whose value is nearest to a float."""
    middle, reach = (low + high) / 2, (high - low) / 40
    step = 2.0 ** (math.floor(math.log2(middle)) - 23)
    x = np.float32(middle - reach + step * np.arange(0, int(2 * reach / step), 1)).astype(float)
    x = x[::max(1, len(x) // 100000)]
    f = function(x)
    off = np.abs(f - np.float32(f).astype(float)) / ulp32(f)
    return x[np.argsort(off)[:8]]


def pieces(name, function, first, scale, shift, limit, degree, slope, skip):
    """skip: 1 where the first piece is evaluated as x + x P(x)."""
    table = [[0.0] * 16 for _ in range(degree + 2)]
    bits = int(np.float32(first).view(np.int32)) >> shift
    last = int(np.float32(first + scale * limit).view(np.int32)) >> shift
    assert last - bits < 16
    worst = 0
    for i in range(bits, bits + 16):
        edge = [float(np.int32(j << shift).view(np.float32)) for j in (i, i + 1)]
        low, high = max((edge[0] - first) / scale, 0), (edge[1] - first) / scale
        if low >= limit:
            continue
        high = min(high, limit)
        if i == bits:
            low = high * 1e-4
            best = (0.0, *fit_piece(function, low, high, 0, [0.0, f32(slope - skip)], degree, skip))
        else:
            tried = [(c, *fit_piece(function, low, high, c, [f32(function(np.array(c)))], degree,
                                    0)) for c in centers(function, low, high)]
            best = min(tried, key=lambda p: p[2])
        worst = max(worst, best[2])
        for row, v in zip(table, [best[0], *best[1]]):
            row[i % 16] = v
    print(f'// {name}: at most {worst:.2f} ulp')
    for row in table:
        print_row([digits(v) + 'f' if v else '0' for v in row])


def erfcx_pieces(function, first, scale, shift, limit, degree):
    """The same, but 0 has a value: only the first center is fixed."""
    table = [[0.0] * 16 for _ in range(degree + 2)]
    bits = int(np.float32(first).view(np.int32)) >> shift
    worst = 0
    for i in range(bits, bits + 16):
        edge = [float(np.int32(j << shift).view(np.float32)) for j in (i, i + 1)]
        low, high = (edge[0] - first) / scale, min((edge[1] - first) / scale, limit)
        tried = [(c, *fit_piece(function, low, high, c, [f32(function(np.array(c)))], degree, 0))
                 for c in ([0.0] if i == bits else centers(function, low, high)[:3])]
        best = min(tried, key=lambda p: p[2])
        worst = max(worst, best[2])
        for row, v in zip(table, [best[0], *best[1]]):
            row[i % 16] = v
    print(f'// erfcx32: at most {worst:.2f} ulp')
    for row in table:
        print_row([digits(v) + 'f' if v else '0' for v in row])


def fit_gate(function, low, high, degree, first, damping):
    """Coefficients of -P in u, lowest order first, and the largest error of gelu."""
    k = np.arange(200)
    u = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (k + 0.5) / 200)
    c = list(first)
    while len(c) <= degree:
        power = np.arange(len(c), degree + 1)
        largest = high ** power.astype(float)
        basis = u[:, None] ** power / largest
        rest = -function(u) - sum(a * u**i for i, a in enumerate(c))
        rows = np.array([damping / 2 * (power >= i) for i in range(1, degree + 1)])
        c.append(f32(minimax(basis, rest, np.full(200, 2.0**24), rows)[0] / largest[0]))
    u = np.float32(np.linspace(max(low, 1e-7), high, 20001)).astype(float)
    right, share = u * function(u), np.float32(evaluate(c, u)).astype(float)
    above = np.abs(np.float32(u + u * share).astype(float) - (u - right)) / ulp32(u - right)
    below = np.abs(np.float32(u * share).astype(float) + right) / ulp32(u)
    return c, max(above.max(), below.max())


def gates(name, function, edge):
    """function: of u > 0, gelu(-u) / -u."""
    scale = f32(14.5 / edge)
    table = [[-0.0] * 16 for _ in range(6)]
    worst = 0
    for i in range(15):
        low, high = max(i - 0.5, 0) / scale, (i + 0.5) / scale
        tried = [fit_gate(function, low, high, degree, [] if i else [-0.5], damping)
                 for degree in (5, 4, 3) for damping in (0, 0.3, 0.7, 1.5, 3)]
        c, error = min(tried, key=lambda p: p[1])
        worst = max(worst, error)
        for order, v in enumerate(c):
            table[order][i] = v
    print(f'// {name}: scale {scale.hex()}, at most {worst:.2f} ulp')
    for row in table:
        print_row([digits(v) + 'f' if v else '-0.0f' for v in row])


def off(x):
    """Distance to the nearest double, in its last places."""
    _, exponent = mp.frexp(x)
    scaled = mp.ldexp(x, 53 - exponent)
    return abs(scaled - mp.nint(scaled))


def erf64(entries, limit):
    slope = 2 / mp.sqrt(mp.pi)

    def derivative(x):
        return slope * mp.exp(-x * x)
    allowed = ((mp.erf, 1, .06), (derivative, 1, .06), (mp.erf, 2, .1), (mp.erf, 3, .15),
               (derivative, 2, .2), (mp.erf, 4, .2), (mp.erf, 5, .2))
    m = math.ceil(limit / (entries - 1) * 2**34)
    while not all(off(f(n * mp.mpf(m) / 2**34)) < most for f, n, most in allowed):
        m += 1
    h = mp.mpf(m) / 2**34
    print(f'// step {float(h).hex()}')
    for f in (mp.erf, derivative):
        print_row([digits(float(f(n * h))) for n in range(entries)])
    return h


def series(h):
    """(erf(r + d) - erf(r)) / (erf'(r) d) - 1 in powers of a = n d and b = d^2, r = n h."""
    for j, degree in enumerate((6, 4, 2, 0)):
        print(f'// b^{j}: ' + ', '.join(
            float((-2 * h)**i * (-1)**j / (mp.factorial(i) * mp.factorial(j) * (i + 2 * j + 1)))
            .hex() for i in range(0 if j else 1, degree + 1)))


pieces('tanh32', np.tanh, 1.0, 1.625, 21, 9.02, 5, 1.0, 0)
pieces('erf32', np.vectorize(math.erf), 1.25, 0.9375, 20, 3.93, 5, 2 / math.sqrt(math.pi), 1)
erfcx_pieces(np.vectorize(lambda x: math.exp(x * x) * math.erfc(x)), 1.0, 1.4765625, 21, 10.1, 6)
gates('gelu32', np.vectorize(lambda u: math.erfc(u / math.sqrt(2)) / 2), 5.3)
gates('gelu_tanh32', np.vectorize(
    lambda u: 1 / (1 + math.exp(math.sqrt(8 / math.pi) * (u + 0.044715 * u**3)))), 5.0)
series(erf64(256, 5.93))
