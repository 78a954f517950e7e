"""Ops that read or write at positions given by data, through the public interface, against answers
made with NumPy: dtypes, ranks, axes, strided and reversed and misaligned operands, indices that are
negative, repeated, out of range and empty; lazy and eager, one thread and two, baseline code and
optimised. Usage: index_numpy.py LIBFUSEC [CASES [SEED]]. Exit code 77: NumPy is not here."""
import ctypes as C
import os
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

DTYPES = ["f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]
NUMPY = dict(f64="f8", f32="f4", f16="f2", i8="i1", i16="i2", i32="i4", i64="i8", u8="u1", u16="u2",
             u32="u4", u64="u8", bool="?")
INDEX_DTYPES = ["i64", "i32", "i16", "i8", "u8", "u16", "u32"]


class Tensor(C.Structure):
    _fields_ = [("id", C.c_uint64)]


class Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("device", C.c_char_p), ("threads", C.c_int),
                ("mode", C.c_int), ("strict", C.c_bool), ("flush_ops", C.c_int64),
                ("flush_bytes", C.c_int64), ("cache_plans", C.c_int), ("compile", C.c_int)]


class Library:
    def __init__(self, path):
        self.c = C.CDLL(path)
        self.c.fc_error.restype = C.c_char_p
        self.c.fc_dtype_name.restype = C.c_char_p
        self.c.fc_status_name.restype = C.c_char_p
        self.dtype = {self.c.fc_dtype_name(i).decode(): i for i in range(1, 32)}

    def context(self, **options):
        o = Options(size=C.sizeof(Options), **options)
        ctx = C.c_void_p()
        assert self.c.fc_context_new(C.byref(o), C.byref(ctx)) == 0
        return ctx

    def op(self, name, *args):
        f = getattr(self.c, f"fc_{name}_at")
        f.restype = Tensor
        return f(b"numpy", C.c_int(1), *args)


def words(values):
    return (C.c_int64 * max(1, len(values)))(*values)


class Values:
    """A NumPy array (of float32 for bf16, whose values it then holds) and its dtype's name."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    def memory(self):
        if self.dtype != "bf16":
            return self.array
        bits = np.ascontiguousarray(self.array, "f4").view("u4") >> 16
        return bits.astype("u2").reshape(self.array.shape)


def bf16(x):
    u = np.ascontiguousarray(x, "f4").view("u4").astype("u8")
    r = ((u + 0x7FFF + ((u >> 16) & 1)) >> 16 << 16).astype("u4").view("f4")
    return np.where(np.isnan(x), np.float32(np.nan), r.reshape(np.shape(x)))


def numpy_dtype(dtype):
    return np.dtype("f4" if dtype == "bf16" else NUMPY[dtype])


def draw(rng, dtype, shape):
    if dtype == "bool":
        return Values(rng.random(shape) < 0.4, dtype)
    if dtype in ("f64", "f32", "f16", "bf16"):
        x = (rng.standard_normal(shape) * 4).astype(numpy_dtype(dtype))
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], x.dtype)
        x = np.where(rng.random(shape) < 0.04, special[rng.integers(0, 5, shape)], x)
        return Values(bf16(x) if dtype == "bf16" else x.astype(numpy_dtype(dtype)), dtype)
    d = np.dtype(NUMPY[dtype])
    info = np.iinfo(d)
    small = rng.integers(max(info.min, -9), 10, shape)
    wide = rng.integers(info.min, info.max, shape, d, endpoint=True)
    return Values(np.where(rng.random(shape) < 0.2, wide, small.astype(d)).astype(d), dtype)


def draw_index(rng, shape, n, spread, dtypes=INDEX_DTYPES):
    """Integers mostly in [-n, n); with spread some beyond."""
    dtype = dtypes[rng.integers(0, len(dtypes))]
    info = np.iinfo(NUMPY[dtype])
    lo, hi = max(-n, info.min), min(n, info.max + 1)
    if hi <= lo:
        lo, hi = 0, 1
    i = rng.integers(lo, hi, shape)
    if spread and rng.random() < 0.5:
        far = rng.choice([n, -n - 1, 2 * n + 3, -2 * n - 2, info.min, info.max], shape)
        i = np.where(rng.random(shape) < 0.1, np.clip(far, info.min, info.max), i)
    return Values(i.astype(NUMPY[dtype]), dtype)


def laid_out(rng, a):
    """The same values in memory with other strides and alignment."""
    kind = rng.integers(0, 5)
    if kind == 0 or a.ndim == 0:
        buffer = np.empty(a.size + 3, a.dtype)  # off the vectors' alignment
        view = buffer[1:1 + a.size].reshape(a.shape)
    elif kind == 1:
        view = np.empty(a.shape[::-1], a.dtype).transpose()
    elif kind == 2:
        view = np.empty([2 * n + 1 for n in a.shape], a.dtype)[tuple(slice(1, 2 * n, 2)
                                                                     for n in a.shape)]
    elif kind == 3:
        view = np.empty(a.shape, a.dtype)[tuple(slice(None, None, -1) for _ in a.shape)]
    else:
        return np.array(a, order="C")
    view[...] = a
    return view


class Checker:
    def __init__(self, lib, rng):
        self.lib, self.rng = lib, rng
        self.contexts = {"lazy": lib.context(threads=2), "eager": lib.context(threads=2, mode=1),
                         "one thread": lib.context(threads=1),
                         "optimised": lib.context(threads=2, compile=1)}
        self.compared = 0

    def tensor(self, ctx, v, keep):
        m = v.memory()
        m = laid_out(self.rng, m) if self.rng.random() < 0.6 else np.array(m, order="C")
        keep.append(m)
        strides = words([s // m.itemsize for s in m.strides])
        return self.lib.op("borrow", ctx, C.c_int(self.lib.dtype[v.dtype]),
                           C.c_void_p(m.ctypes.data), words(m.shape), C.c_int(m.ndim), strides,
                           None, None)

    def read(self, ctx, t, shape, dtype):
        store = np.dtype("u2") if dtype == "bf16" else np.dtype(NUMPY[dtype])
        out = np.zeros(shape, store)
        status = self.lib.c.fc_read(t, C.c_void_p(out.ctypes.data), C.c_size_t(out.nbytes))
        name = self.lib.c.fc_status_name(status).decode()
        text = (self.lib.c.fc_error(ctx) or b"").decode()
        self.lib.c.fc_error_clear(ctx)
        if dtype == "bf16":
            out = (np.atleast_1d(out).astype("u4") << 16).view("f4").reshape(shape)
        return out, name, text

    def check(self, op, operands, attributes, right, dtype, bad, around=None):
        """right: what op of the operands is; bad: some index is out of range. around: an op of one
        operand that the first goes through before."""
        for mode, ctx in self.contexts.items():
            keep = []
            t = [self.tensor(ctx, v, keep) for v in operands]
            if around:
                t[0] = self.lib.op(around, t[0])
            y = self.lib.op(op, *t, *attributes)
            got, status, text = self.read(ctx, y, right.shape, dtype)
            what = (f"{op} {mode} " + ", ".join(f"{v.dtype}{list(v.array.shape)}" for v in operands)
                    + f" around {around}")
            assert status == ("FC_INDEX" if bad else "FC_OK"), f"{what}: {status} {text}"
            assert not bad or op in text, f"{what}: {text}"
            same = (got == right) | ((got != got) & (right != right))
            if right.dtype.kind == "f":
                same &= (np.signbit(got) == np.signbit(right)) | (right != right)
            if not same.all():
                at = tuple(int(i[0]) for i in np.where(~same))
                print(f"{what}: {(~same).sum()} of {same.size} differ, first at {at}: "
                      f"{got[at]} and not {right[at]}")
                for v in operands[1:]:
                    print(np.array2string(v.array, threshold=200))
                sys.exit(1)
            self.compared += right.size
            for h in t + [y]:
                self.lib.c.fc_release(h)


def shape_of(rng, rank, most=9):
    sizes, weight = [0, 1, 2, 3, 5, most, 17, 33], [.03, .12, .15, .2, .2, .1, .1, .1]
    return tuple(int(n) for n in rng.choice(sizes, rank, p=weight))


def starts(rng, shape, sizes):
    """A window's start; what it means; whether all of it is inside."""
    start = []
    for n, s in zip(shape, sizes):
        lo, hi = -n, n - s
        i = int(rng.integers(min(lo, hi), max(lo, hi) + 1)) if rng.random() < 0.85 else int(
            rng.choice([n, -n - 1, n - s + 1, -n - s, 1 << 62, -(1 << 62), (1 << 63) - 1,
                        -(1 << 63)]))
        start.append(i)
    meant = [i + n if i < 0 else i for i, n in zip(start, shape)]
    inside = all(0 <= i and i + s <= n for i, s, n in zip(meant, sizes, shape))
    return start, meant, inside


def window(rng):
    dtype = DTYPES[rng.integers(0, len(DTYPES))]
    shape = shape_of(rng, int(rng.integers(0, 5)))
    sizes = tuple(int(rng.integers(0, n + 1)) if rng.random() < 0.8 else n for n in shape)
    start, meant, inside = starts(rng, shape, sizes)
    place = np.indices(sizes).reshape(len(sizes), int(np.prod(sizes))) + np.array(
        [max(-(1 << 40), min(m, 1 << 40)) for m in meant], "i8").reshape(-1, 1)
    exists = np.ones(place.shape[1], bool)
    for d, n in enumerate(shape):
        exists &= (place[d] >= 0) & (place[d] < n)
    s = Values(np.array(start, "i8"), "i64")
    for d, (n, size) in enumerate(zip(shape, sizes)): # what is not inside is moved there
        first = place[d] - np.indices(sizes).reshape(len(sizes), -1)[d]
        place[d] += np.clip(first, 0, n - size) - first
    return dtype, shape, sizes, s, place, not exists.all()


def dynamic_slice(c):
    dtype, shape, sizes, s, place, bad = window(c.rng)
    x = draw(c.rng, dtype, shape)
    around = "neg" if dtype in ("f32", "i32", "f64") and c.rng.random() < 0.5 else None
    values = -x.array if around else x.array
    right = values[tuple(place)] if shape else values
    c.check("dynamic_slice", [x, s], [words(sizes), C.c_int(len(sizes))], right.reshape(sizes),
            dtype, bad, around)


def slice_update(c):
    dtype, shape, sizes, s, place, bad = window(c.rng)
    x, u = draw(c.rng, dtype, shape), draw(c.rng, dtype, sizes)
    around = "neg" if dtype in ("f32", "i32", "f64") and c.rng.random() < 0.5 else None
    right = np.array(-x.array if around else x.array)
    right[tuple(place)] = u.array.reshape(-1) if shape else u.array
    c.check("slice_update", [x, u, s], [], right, dtype, bad, around)


def one_hot(c):
    dtype = DTYPES[c.rng.integers(0, len(DTYPES))]
    classes = int(c.rng.choice([0, 1, 2, 3, 7, 16, 40, 129]))
    i = draw_index(c.rng, shape_of(c.rng, int(c.rng.integers(0, 4))), classes, True)
    right = (i.array.astype("i8")[..., None] == np.arange(classes)).astype(numpy_dtype(dtype))
    c.check("one_hot", [i], [C.c_int(classes), C.c_int(c.lib.dtype[dtype])], right, dtype, False)


def reference(combine, x, dtype, places, updates):
    """x with updates joined in order; places: flat positions in x, -1: dropped."""
    out = np.array(x, "f4" if dtype in ("f16", "bf16") and combine == "add" else x.dtype)
    flat = out.reshape(-1)
    for at, u in zip(places, updates.astype(out.dtype)):
        if at < 0:
            continue
        if not combine:
            flat[at] = u
        elif combine == "add":
            flat[at] = flat[at] | u if dtype == "bool" else flat[at] + u
        else:
            a, b = flat[at], u
            f = np.maximum if combine == "max" else np.minimum
            if a == b == 0 and out.dtype.kind == "f":  # +0 is larger than -0
                negative = np.signbit(a) & np.signbit(b) if combine == "max" else (
                    np.signbit(a) | np.signbit(b))
                flat[at] = -0.0 if negative else 0.0
            else:
                flat[at] = f(a, b)
    if dtype == "bf16" and combine == "add":
        return bf16(out)
    return out.astype(x.dtype)


def scatter(c):
    rng = c.rng
    dtype = DTYPES[rng.integers(0, len(DTYPES))]
    combine = ["", "add", "max", "min"][rng.integers(0, 4)]
    along = rng.random() < 0.4
    shape = shape_of(rng, int(rng.integers(1, 4)))
    axis = int(rng.integers(0, len(shape)))
    n = shape[axis]
    if along:
        window = list(shape)
        window[axis] = int(rng.choice([0, 1, 2, 5, 20], p=[.05, .2, .25, .25, .25]))
        index = draw_index(rng, tuple(window), n, True)
    else:
        index = draw_index(rng, shape_of(rng, int(rng.integers(0, 3))), n, True)
        window = list(shape[:axis]) + list(index.array.shape) + list(shape[axis + 1:])
    given = [m if rng.random() < 0.85 else 1 for m in window]
    given = given[int(rng.integers(0, len(given) + 1)):] if rng.random() < 0.2 else given
    x, u = draw(rng, dtype, shape), draw(rng, dtype, tuple(given))
    i = index.array.astype("i8")
    wrapped = np.where(i < 0, i + n, i)
    wrapped = np.where((wrapped >= 0) & (wrapped < n), wrapped, -1)
    if not along:
        wrapped = wrapped.reshape((1,) * axis + i.shape + (1,) * (len(shape) - axis - 1))
    wrapped = np.broadcast_to(wrapped, window)
    place = [np.arange(m).reshape([-1 if e == d else 1 for e in range(len(window))])
             for d, m in enumerate(window)]
    wide = 1 if along else i.ndim
    flat = np.zeros(window, "i8")
    for d, m in enumerate(shape):
        flat = flat * m + (wrapped if d == axis else place[d if d < axis else d + wide - 1])
    flat = np.where(wrapped < 0, -1, flat).reshape(-1)
    values = np.broadcast_to(u.array, window).reshape(-1)
    around = "neg" if dtype in ("f32", "i32", "f64") and rng.random() < 0.3 else None
    right = reference(combine, -x.array if around else x.array, dtype, flat, values)
    name = "scatter" + ("_along" if along else "") + ("_" + combine if combine else "")
    c.check(name, [x, index, u], [C.c_int(axis)], right, dtype,
            bool((flat < 0).any()) and right.size > 0, around)


def many_updates(c):
    """More updates than places: R is divided where they commute."""
    rng = c.rng
    combine = ["add", "max", "min"][rng.integers(0, 3)]
    dtype = DTYPES[rng.integers(0, len(DTYPES))]
    n, places = int(rng.choice([20000, 70001])), int(rng.choice([1, 7, 256, 1000]))
    index = draw_index(rng, (n,), places, True, ["i64", "i32", "u8", "i16"])
    x, u = draw(rng, dtype, (places,)), draw(rng, dtype, (n,) if rng.random() < 0.7 else (1,))
    i = index.array.astype("i8")
    i = np.where(i < 0, i + places, i)
    bad = bool(((i < 0) | (i >= places)).any())
    i = np.where((i >= 0) & (i < places), i, -1)
    if combine == "add" or x.array.dtype.kind != "f":
        right = reference(combine, x.array, dtype, i, np.broadcast_to(u.array, (n,)))
    else:  # which of the zeros comes out does not depend on the order either
        for v in (x, u):
            v.array = np.where(v.array == 0, v.array.dtype.type(1), v.array)
        right, keep = np.array(x.array), i >= 0
        join = np.maximum if combine == "max" else np.minimum
        join.at(right, i[keep], np.broadcast_to(u.array, (n,))[keep])
    c.check(f"scatter_{combine}", [x, index, u], [C.c_int(0)], right, dtype, bad)


def main():
    lib = Library(sys.argv[1])
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    kinds = [dynamic_slice, scatter, slice_update, scatter, one_hot, scatter]
    c = Checker(lib, None)
    for i in range(cases):
        c.rng = np.random.default_rng([seed, i])
        (many_updates if i % 29 == 28 else kinds[i % len(kinds)])(c)
    print(f"{cases} cases, {c.compared} elements compared")


np.seterr(all="ignore")
main()
