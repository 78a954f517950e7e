#!/usr/bin/env python3
"""Fits the polynomials of ir/expand_{arc,erfc,exp,log,pow,root,trig}.c and prints them.

Needs mpmath; takes a few minutes. Usage: fit_polynomials.py [NAME...]

Each fit is a minimax polynomial: Remez exchange on a grid of Chebyshev points, minimising the
largest weighted error, where the weight makes it the relative error of the function itself. Then
the coefficients are rounded to f32 or f64 one by one, lowest order first, and the remaining ones
are fitted again after each rounding.
"""
import sys

import mpmath as mp

mp.mp.dps = 70


def rounder(bits):
    def to(x):
        mantissa, exponent = mp.frexp(x)
        return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)
    return to


F32, F64 = rounder(24), rounder(53)


def extrema(error, count):
    """Places of `count` extrema of alternating sign, the largest ones."""
    found, i = [], 0
    while i < len(error):
        best = i
        positive = error[i] >= 0
        while i < len(error) and (error[i] >= 0) == positive:
            best = i if abs(error[i]) > abs(error[best]) else best
            i += 1
        found.append(best)
    size = [abs(error[place]) for place in found]
    while len(found) > count:
        if len(found) == count + 1:
            drop = [0 if size[0] < size[-1] else len(found) - 1]
        else:
            pair = min(range(len(found) - 1), key=lambda k: max(size[k], size[k + 1]))
            at_end = pair in (0, len(found) - 2)
            drop = [pair, pair + 1] if not at_end else [0 if pair == 0 else pair + 1]
        found = [f for k, f in enumerate(found) if k not in drop]
        size = [s for k, s in enumerate(size) if k not in drop]
    return found


def remez(function, weight, low, high, powers, rounds=30, points=600):
    """Coefficients of x^p for p in powers, and the largest weighted error."""
    middle, half = (low + high) / 2, (high - low) / 2
    x = [middle - half * mp.cos(mp.pi * i / points) for i in range(points + 1)]
    f, w = [function(v) for v in x], [weight(v) for v in x]
    basis = [[v**p for p in powers] for v in x]
    n = len(powers)
    places = [int(mp.nint(i * points / mp.mpf(n))) for i in range(n + 1)]
    best, least = None, mp.inf
    for _ in range(rounds):
        rows = [[w[i] * b for b in basis[i]] + [(-1)**k] for k, i in enumerate(places)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([w[i] * f[i] for i in places]))
        c, level = list(solution)[:n], abs(solution[n])
        error = [w[i] * (f[i] - mp.fdot(c, basis[i])) for i in range(points + 1)]
        worst = max(map(abs, error))
        if worst < least:
            best, least = c, worst
        places = extrema(error, n + 1)
        if len(places) < n + 1 or worst - level < worst / 10000:
            break
    return best, least


def fit(function, weight, low, high, degree, to, fixed=()):
    """The polynomial of this degree; fixed: its first coefficients, given."""
    c = list(fixed)
    while len(c) <= degree:
        def rest(x):
            return function(x) - mp.polyval(c[::-1], x) if c else function(x)
        more, _ = remez(rest, weight, low, high, range(len(c), degree + 1))
        c.append(to(more[0]))
    grid = [low + (high - low) * mp.mpf(i) / 1000 for i in range(1, 1001)]
    return c, max(abs(weight(x) * (function(x) - mp.polyval(c[::-1], x))) for x in grid)


TINY = mp.mpf('1e-12')
HALF_LN2 = mp.log(2) / 2 * mp.mpf('1.0001')
QUARTER_PI = mp.pi / 4 * mp.mpf('1.00001')
ROOT = mp.sqrt(2)


def exp_rest(r):  # exp(r) = 1 + r + r^2 P(r)
    return (mp.expm1(r) - r) / r**2 if abs(r) > TINY else mp.mpf(1) / 2 + r / 6


def expm1_weight(r):
    return r**2 / abs(mp.expm1(r)) if abs(r) > TINY else TINY


def log_rest(f):  # log(1 + f) = f + f^2 P(f)
    return (mp.log1p(f) - f) / f**2 if abs(f) > TINY else -mp.mpf(1) / 2 + f / 3


def log_weight(f):
    return f**2 / abs(mp.log1p(f)) if abs(f) > TINY else TINY


def atanh_rest(z):  # 2 atanh(s) = 2 s + s^3 P(s^2)
    s = mp.sqrt(z)
    return 2 * (mp.atanh(s) - s) / s**3 if z > TINY else mp.mpf(2) / 3 + 2 * z / 5


def sin_rest(z):  # sin(r) = r + r^3 P(r^2)
    r = mp.sqrt(z)
    return (mp.sin(r) - r) / r**3


def sin_weight(z):
    return mp.sqrt(z)**3 / mp.sin(mp.sqrt(z))


def cos_rest(z):  # cos(r) = 1 - r^2 / 2 + r^4 P(r^2)
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def cos_weight(z):
    return z**2 / mp.cos(mp.sqrt(z))


def log2_rest(f):  # log2(1 + f) = f P(f)
    return mp.log1p(f) / (f * mp.log(2)) if abs(f) > TINY else (1 - f / 2) / mp.log(2)


def atanh_tail(z):  # 2 atanh(s / 2) = s (1 + s^2 / 12 + s^4 P(s^2))
    s = mp.sqrt(z) / 2
    return (mp.atanh(s) / s - 1 - z / 12) / z**2 if z > mp.mpf('4e-8') else (1 + z / 5.6) / 80


def exp2_fit(degree, to):  # 2^r = 1 + c r + r^2 P(r), c: ln 2, rounded; c comes first
    c, reach = to(mp.log(2)), mp.mpf('0.5001')

    def rest(r):
        return (mp.expm1(r * mp.log(2)) - c * r) / r**2 if abs(r) > TINY else mp.log(2)**2 / 2
    more, error = fit(rest, lambda r: r**2 / mp.mpf(2)**r, -reach, reach, degree, to)
    return [c, *more], error


def sinh_rest(z):  # sinh(r) = r + r^3 P(r^2)
    r = mp.sqrt(z)
    return (mp.sinh(r) - r) / r**3


def sinh_weight(z):
    return mp.sqrt(z)**3 / mp.sinh(mp.sqrt(z))


def cosh_rest(z):  # cosh(r) = 1 + r^2 P(r^2)
    return (mp.cosh(mp.sqrt(z)) - 1) / z


def tan_rest(z):  # tan(r) = r + r^3 P(r^2)
    r = mp.sqrt(z)
    return (mp.tan(r) - r) / r**3


def tan_weight(z):
    return mp.sqrt(z)**3 / mp.tan(mp.sqrt(z))


# Vanishes where tan's two first poles are.
TAN_BELOW = [F64((-1)**k * c) for k, c in
             ((0, mp.mpf(1)), (1, 40 / (9 * mp.pi**2)), (2, 16 / (9 * mp.pi**4)))]


def tan_above(z):  # tan(r) = r + r^3 P(r^2) / (1 + a r^2 + b r^4)
    return tan_rest(z) * mp.polyval(TAN_BELOW[::-1], z)


def atan_rest(z):  # atan(t) = t + t^3 P(t^2)
    t = mp.sqrt(z)
    return (mp.atan(t) - t) / t**3


def atan_weight(z):
    return mp.sqrt(z)**3 / mp.atan(mp.sqrt(z))


def asin_rest(z):  # asin(s) = s + s^3 P(s^2)
    s = mp.sqrt(z)
    return (mp.asin(s) - s) / s**3


def asin_weight(z):
    return mp.sqrt(z)**3 / mp.asin(mp.sqrt(z))


def arcth_rest(z):  # atanh(s) = s + s^3 P(s^2)
    s = mp.sqrt(z)
    return (mp.atanh(s) - s) / s**3


def arcth_weight(z):
    return mp.sqrt(z)**3 / mp.atanh(mp.sqrt(z))


def erfcx(t):  # (1 + 2 x) exp(x^2) erfc(x), t = (x - 4) / (x + 4) < 1
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erfcx_rest(t):  # that is 1 + (1 + t) P(t)
    return (erfcx(t) - 1) / (1 + t) if 1 + t > TINY else 4 - 4 / mp.sqrt(mp.pi)


def root_rest(e):  # (1 - e)^(-1/3) = 1 + e P(e)
    return (mp.power(1 - e, -mp.mpf(1) / 3) - 1) / e if abs(e) > TINY else mp.mpf(1) / 3


def root_weight(e):
    return abs(e) * mp.power(1 - e, mp.mpf(1) / 3)


def odd_fit(rest, weight, high, degree, to):
    return fit(rest, weight, mp.mpf('1e-9'), mp.mpf(high)**2, degree, to)


def trig_fit(rest, weight, degree, to):
    return fit(rest, weight, mp.mpf('1e-9'), QUARTER_PI**2, degree, to)


FITS = {
    'exp32': lambda: fit(exp_rest, lambda r: r**2 / mp.exp(r), -HALF_LN2, HALF_LN2, 4, F32),
    'exp64': lambda: fit(exp_rest, lambda r: r**2 / mp.exp(r), -HALF_LN2, HALF_LN2, 10, F64),
    'expm1_32': lambda: fit(exp_rest, expm1_weight, -HALF_LN2, HALF_LN2, 5, F32),
    'expm1_64': lambda: fit(exp_rest, expm1_weight, -HALF_LN2, HALF_LN2, 10, F64),
    'log32': lambda: fit(log_rest, log_weight, 1 / ROOT - 1, ROOT - 1, 9, F32),
    'log64': lambda: fit(atanh_rest, lambda z: z / 2, mp.mpf(0), ((ROOT - 1) / (ROOT + 1))**2, 6,
                         F64),
    'pow_log2': lambda: fit(log2_rest, lambda f: 1 / log2_rest(f), 1 / ROOT - 1, ROOT - 1, 13,
                            F64),
    'pow_exp2': lambda: fit(lambda r: mp.mpf(2)**r, lambda r: mp.mpf(2)**-r, -mp.mpf('0.5001'),
                            mp.mpf('0.5001'), 8, F64),
    'pow_atanh': lambda: fit(atanh_tail, lambda z: z**2, mp.mpf(0),
                             4 * ((ROOT - 1) / (ROOT + 1))**2, 7, F64),
    'sin32': lambda: trig_fit(sin_rest, sin_weight, 2, F32),
    'cos32': lambda: trig_fit(cos_rest, cos_weight, 2, F32),
    'sin64': lambda: trig_fit(sin_rest, sin_weight, 6, F64),
    'cos64': lambda: trig_fit(cos_rest, cos_weight, 6, F64),
    'exp2_32': lambda: exp2_fit(4, F32),
    'exp2_64': lambda: exp2_fit(10, F64),
    'log2_32': lambda: fit(lambda f: log_rest(f) / mp.log(2), lambda f: log_weight(f) * mp.log(2),
                           1 / ROOT - 1, ROOT - 1, 9, F32),
    'log10_32': lambda: fit(lambda f: log_rest(f) / mp.log(10),
                            lambda f: log_weight(f) * mp.log(10), 1 / ROOT - 1, ROOT - 1, 9, F32),
    'sinh32': lambda: odd_fit(sinh_rest, sinh_weight, HALF_LN2, 2, F32),
    'sinh64': lambda: odd_fit(sinh_rest, sinh_weight, HALF_LN2, 5, F64),
    'cosh32': lambda: odd_fit(cosh_rest, lambda z: z / mp.cosh(mp.sqrt(z)), HALF_LN2, 2, F32),
    'cosh64': lambda: odd_fit(cosh_rest, lambda z: z / mp.cosh(mp.sqrt(z)), HALF_LN2, 5, F64),
    'tan32': lambda: odd_fit(tan_rest, tan_weight, QUARTER_PI, 6, F32),
    'tan64': lambda: odd_fit(tan_above, tan_weight, QUARTER_PI, 5, F64),
    # atan32's last coefficient is 2^-27 more in use, so that atan 1 is rounded right.
    'atan32': lambda: odd_fit(atan_rest, atan_weight, 1, 8, F32),
    'atan64': lambda: odd_fit(atan_rest, atan_weight, (ROOT - 1) * mp.mpf('1.0001'), 11, F64),
    'atanh32': lambda: odd_fit(arcth_rest, arcth_weight, '0.215', 2, F32),
    'atanh64': lambda: odd_fit(arcth_rest, arcth_weight, '0.215', 7, F64),
    # x up to 28
    'erfc64': lambda: fit(erfcx_rest, lambda t: (1 + t) / erfcx(t), -1, mp.mpf('0.75'), 21, F64),
    'cbrt': lambda: fit(root_rest, root_weight, -mp.mpf('0.1021'), mp.mpf('0.1021'), 2, F32),
    'asin32': lambda: odd_fit(asin_rest, asin_weight, mp.mpf(1) / 2, 4, F32),
    'asin64': lambda: odd_fit(asin_rest, asin_weight, mp.mpf(1) / 2, 12, F64),
}

for name in sys.argv[1:] or FITS:
    coefficients, error = FITS[name]()
    print(f'{name}: relative error 2^{float(mp.log(error, 2)):.1f}')
    print('    ' + ', '.join(float(c).hex() for c in coefficients))
