"""Writes arrays_numpy.def: what NumPy gives for the arrangements of tests/api/arrays.c, an
expression of fusec's beside the answer. x is a scalar, v [5], m [2,3], t [2,3,4], u [2,1,2,1,2,1],
e [0,3]; elements 1, 2, 3 ….

    python3 tests/api/arrays_numpy.py > tests/api/arrays_numpy.def
"""
import numpy as np


def some(*shape):
    return np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)


x, v, m, t, e = np.array(7), some(5), some(2, 3), some(2, 3, 4), some(0, 3)
u = some(2, 1, 2, 1, 2, 1)


def row(name, answer, *more):
    values = ', '.join('%d' % a if a % 1 == 0 and abs(a) < 2**53 else repr(float(a))
                       for a in answer.ravel().tolist())
    shape = ', '.join(str(n) for n in answer.shape)
    print('%s, (%s), (%s))' % (', '.join((name,) + more), shape, values))


def views():
    for by in (0, 1, -1, 2, 5, -7, 13):
        yield 'fc_roll(v, %d, 0)' % by, np.roll(v, by, 0)
    for axis in (0, 1, 2, -1, -3):
        yield 'fc_roll(t, 1, %d)' % axis, np.roll(t, 1, axis)
    yield 'fc_roll(t, -3, -1)', np.roll(t, -3, -1)
    yield 'fc_roll(e, 4, 0)', np.roll(e, 4, 0)
    yield 'fc_roll(e, 4, 1)', np.roll(e, 4, 1)
    for a, reps in (('x', ()), ('x', (3,)), ('x', (2, 2)), ('v', (2,)), ('v', (2, 1)),
                    ('v', (3, 2)), ('v', (0,)), ('m', (2,)), ('m', (2, 3)), ('m', (2, 1, 1)),
                    ('m', (1, 1)),
                    ('m', ()), ('t', (2, 1, 2)), ('t', (1, 2, 1)), ('t', (2, 2, 2)), ('t', (2,)),
                    ('u', (2, 2, 1, 2, 2, 2)), ('u', (1, 1, 2, 2, 2, 1, 2, 2)), ('e', (2, 2)),
                    ('m', (0, 2))):
        counts = 'FC_LIST(%s)' % ', '.join(map(str, reps)) if reps else 'NULL, 0'
        yield 'fc_tile(%s, %s)' % (a, counts), np.tile(globals()[a], reps)
    for a, n, axis in (('v', 2, 0), ('v', 0, 0), ('v', 1, -1), ('m', 2, 0), ('m', 3, 1),
                       ('t', 2, 1), ('t', 2, -1), ('e', 2, 0), ('e', 2, 1)):
        yield 'fc_repeat(%s, %d, %d)' % (a, n, axis), np.repeat(globals()[a], n, axis)
    for a in 'xvmteu':
        yield 'fc_flatten(%s)' % a, globals()[a].flatten()
    for k in (0, 1, -1, 2, -2, 3, -3, 9, -9):
        for name in ('tril', 'triu'):
            yield 'fc_%s(m, %d)' % (name, k), getattr(np, name)(m, k)
        yield 'fc_diagonal(m, %d, 0, 1)' % k, (np.diagonal(m, k))
        yield 'fc_diagonal(m, %d, -1, 0)' % k, (np.diagonal(m, k, -1, 0))
    for k in (0, 1, -2):
        yield 'fc_tril(t, %d)' % k, np.tril(t, k)
        yield 'fc_triu(t, %d)' % k, np.triu(t, k)
        for a, b in ((0, 1), (1, 2), (-1, 0), (2, 1)):
            yield 'fc_diagonal(t, %d, %d, %d)' % (k, a, b), np.diagonal(t, k, a, b)
    yield 'fc_tril(e, 0)', np.tril(e)
    yield 'fc_diagonal(e, 1, 0, 1)', np.diagonal(e, 1)
    yield 'fc_diagonal(e, -2, 1, 0)', np.diagonal(e, -2, 1, 0)
    for a, axis in (('x', 0), ('v', 0), ('v', 1), ('v', -1), ('m', 0), ('m', 1), ('m', -1),
                    ('e', 1)):
        yield ('fc_stack(((fc_tensor[]){%s, %s, %s}), 3, %d)' % (a, a, a, axis),
               np.stack([globals()[a]] * 3, axis))


def numbers():
    names = {'i32': np.int32, 'u8': np.uint8, 'f32': np.float32, 'f64': np.float64,
             'f16': np.float16, 'i64': np.int64, 'bool': np.bool_}
    for dtype, start, stop, step in (
            ('i32', 0, 5, 1), ('i32', 5, 0, -2), ('i32', 0, 5, -1), ('i32', 3, 3, 1),
            ('u8', 250, 256, 3), ('f32', 0, 7, 2), ('f16', -2, 3, 1), ('bool', 0, 2, 1),
            ('i64', -2**63, 2**63 - 1, 2**62), ('f64', 0, 1, 0.1), ('f64', 0.5, -1.0, -0.25),
            ('f32', 0.0, 1.0, 0.125), ('f64', 1.0, 0.0, 0.5)):
        words = [('INT64_MIN' if a == -2**63 else repr(a)) for a in (start, stop, step)]
        yield ('fc_arange(ctx, FC_%s, %s)' % (dtype.upper(), ', '.join(words)),
               np.arange(start, stop, step, dtype=names[dtype]), dtype)
    for dtype, start, stop, n in (
            ('f64', 0, 1, 11), ('f64', -1, 1, 7), ('f32', 0, 1, 8), ('f16', 1, 2, 4),
            ('f64', 3, -3, 5), ('f64', 2, 5, 1), ('f64', 2, 5, 0), ('f64', 4, 4, 3),
            ('i32', 0, 5, 4), ('i32', -5, 5, 4), ('i64', -1, 1, 5),
            ('u8', 0, 255, 6), ('f64', 0, 1e-322, 41), ('f64', 0.1, 0.7, 13)):
        yield ('fc_linspace(ctx, FC_%s, %r, %r, %d)' % (dtype.upper(), start, stop, n),
               np.linspace(start, stop, n, dtype=names[dtype]), dtype)
    for dtype, rows, columns, k in (('f32', 3, 3, 0), ('i32', 2, 4, 1), ('u8', 4, 2, -1),
                                    ('bool', 2, 2, 0), ('f64', 2, 3, 7), ('f64', 2, 3, -7),
                                    ('f16', 0, 3, 0)):
        yield ('fc_eye(ctx, FC_%s, %d, %d, %d)' % (dtype.upper(), rows, columns, k),
               np.eye(rows, columns, k, dtype=names[dtype]), dtype)


print('// arrays_numpy.def: made by arrays_numpy.py with NumPy %s.\n'
      '// ARRAY(expression, shape, elements), NUMBERS(expression, dtype, shape, elements)'
      % np.__version__)
for expression, answer in views():
    row('ARRAY(' + expression, answer)
for expression, answer, dtype in numbers():
    row('NUMBERS(' + expression, answer, 'FC_' + dtype.upper())
