"""Writes order_numpy.def: hashes of what NumPy gives for sort and argsort, both ways,
for all dtypes, several kinds of data and lengths. tests/api/order.c makes the same data from the
same numbers. bf16 is compared as the f32 that it is the upper half of.

    python3 tests/api/order_numpy.py > tests/api/order_numpy.def
"""
import numpy as np

LENGTHS = [1, 2, 7, 37, 255, 256, 257, 1025, 65537]
WIDTH = {'f64': 64, 'f32': 32, 'f16': 16, 'bf16': 16, 'i8': 8, 'i16': 16, 'i32': 32, 'i64': 64,
         'u8': 8, 'u16': 16, 'u32': 32, 'u64': 64, 'bool': 8}
# exponent bits, to make infinity, NaN and one
INF = {'f64': 0x7ff << 52, 'f32': 0xff << 23, 'f16': 0x1f << 10, 'bf16': 0xff << 7}
ONE = {'f64': 0x3ff << 52, 'f32': 0x7f << 23, 'f16': 0x0f << 10, 'bf16': 0x7f << 7}
NUMPY = {'f64': 'f8', 'f32': 'f4', 'f16': 'f2', 'i8': 'i1', 'i16': 'i2', 'i32': 'i4', 'i64': 'i8',
         'u8': 'u1', 'u16': 'u2', 'u32': 'u4', 'u64': 'u8', 'bool': 'u1'}


def mix(z):
    """splitmix64 (Steele, Lea, Flood 2014)"""
    z = z + np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return z ^ (z >> np.uint64(31))


def some(dtype):
    """Eight elements that are told apart with care, as bits."""
    top = 1 << (WIDTH[dtype] - 1)
    if dtype in INF:
        inf = INF[dtype]
        return [inf, inf | top, inf | 1, inf | top | 3, 0, top, ONE[dtype], ONE[dtype] | top]
    return [0, 1, top, top - 1, 2 * top - 1, 2, 3, top + 1]


def data(dtype, kind, n):
    i = np.arange(n, dtype=np.uint64)
    random = mix(i + np.uint64(n * 1000 + WIDTH[dtype]))
    table = np.array(some(dtype), dtype=np.uint64)
    bits = {'random': random, 'few': table[4 + random % np.uint64(4)],
            'special': table[random % np.uint64(8)], 'rising': i, 'falling': np.uint64(n) - i,
            'equal': i * np.uint64(0) + table[6]}[kind]
    if dtype == 'bool':
        bits = bits & np.uint64(1)
    return bits.astype('u%d' % (WIDTH[dtype] // 8))


def numbers(dtype, bits):
    if dtype == 'bf16':
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return bits.view(NUMPY[dtype])


def order(x, descending):
    if not descending:
        return np.argsort(x, kind='stable')
    return len(x) - 1 - np.argsort(x[::-1], kind='stable')[::-1]


def hashed(v):
    i = np.arange(len(v), dtype=np.uint64)
    total = np.add.reduce(mix(v.astype(np.uint64) + mix(i)))
    return int(total ^ (total >> np.uint64(32))) & 0xffffffff


def values(dtype, bits):
    if dtype in INF:  # one NaN for all
        nan = np.isnan(numbers(dtype, bits))
        bits = np.where(nan, bits.dtype.type(INF[dtype] | INF[dtype] >> 1), bits)
    return bits


np.seterr(over='ignore')
print('// order_numpy.def: made by order_numpy.py with NumPy %s; hashes of sort, sort descending,\n'
      '// argsort, argsort descending.\n// ORDER(dtype, data, n, hash …)' % np.__version__)
for dtype in WIDTH:
    for kind in ['random', 'few', 'special', 'rising', 'falling', 'equal']:
        for n in LENGTHS:
            bits = data(dtype, kind, n)
            x = numbers(dtype, bits)
            at = [order(x, False), order(x, True)]
            row = [hashed(values(dtype, bits[a])) for a in at] + [hashed(a) for a in at]
            print('ORDER(%s, %s, %d, %s)' % (dtype, kind, n, ', '.join('0x%08x' % h for h in row)))
