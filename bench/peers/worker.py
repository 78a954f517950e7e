#!/usr/bin/env python3
"""worker.py PEER THREADS: one framework in a process of its own, asked by compare.py.

Requests and answers are JSON, one a line, on standard input and output; what libraries print goes
to standard error. `prepare` states a workload in the framework, in one or more ways, checks each
against fusec's outputs on the same inputs and keeps the fastest that agrees. `measure` times that
one: calls go round among as many sets of inputs as fusec's bench uses, and each set's outputs live
until its next call, as there. Outputs come from the framework's own allocator: that is how it is
used. A call ends when its results are there.
"""
import gc
import importlib
import json
import os
import statistics
import sys
import time

PAGE = 4096
BATCH_US = 200.0  # of calls between two looks at the clock, as in fusec's bench
BATCH_MOST = 20000
WARM_S = 0.1
SAMPLES_LEAST, SAMPLES_MOST = 10, 1000
# How far a result may be from fusec's, relative to the value plus the root mean square of all. TF32
# or bf16 products in an f32 workload are ten times beyond it; f16 has 11 bits, bf16 8, and they may
# round per op. Integers are equal.
LIMIT = {"f64": 1e-9, "f32": 5e-5, "f16": 2.0**-8, "bf16": 2.0**-6}


def aligned(array):
    """A copy that starts a page: no framework reads across cache lines, pages may be huge."""
    import numpy as np

    block = np.empty(array.nbytes + PAGE, np.uint8)
    start = -block.ctypes.data % PAGE
    copy = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def read(entry):
    """An array from a file; bf16 as its bits."""
    import numpy as np

    array = np.load(entry["file"])
    return array.view(np.uint16) if entry["dtype"] == "bf16" else array


def widened(array):
    """Any array as f64; bits of bf16 as the numbers that they stand for."""
    import numpy as np

    array = np.asarray(array)
    if array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def distance(have, want):
    import numpy as np

    have, want = widened(have), widened(want)
    if have.shape != want.shape:
        raise ValueError(f"shape {have.shape}, fusec's is {want.shape}")
    if not want.size:
        return 0.0
    scale = np.abs(want) + np.sqrt(np.mean(want * want)) + 1e-30
    worst = np.max(np.abs(have - want) / scale)
    return float(worst) if np.isfinite(worst) else float("inf")


class Calls:
    """Calls that go round among sets of inputs."""

    def __init__(self, call, sets):
        self.call, self.sets, self.next = call, sets, 0
        self.out = [None] * len(sets)

    def time_us(self, n):
        call, sets, out, i = self.call, self.sets, self.out, self.next
        start = time.perf_counter()
        for _ in range(n):
            out[i] = None
            out[i] = call(*sets[i])
            i = i + 1 if i + 1 < len(sets) else 0
        end = time.perf_counter()
        self.next = i
        return (end - start) / n * 1e6

    def warm_up(self, seconds):
        """Every set is touched; returns how many calls fill a batch."""
        start, us = time.perf_counter(), 0.0
        while us == 0.0 or time.perf_counter() - start < seconds:
            us = self.time_us(max(2, len(self.sets)))
        return max(1, min(BATCH_MOST, int(BATCH_US / us) + 1 if us < BATCH_US else 1))

    def samples(self, seconds, warm_s=WARM_S):
        batch, times = self.warm_up(warm_s), []
        start = time.perf_counter()
        while len(times) < SAMPLES_LEAST or (
            len(times) < SAMPLES_MOST and time.perf_counter() - start < seconds
        ):
            times.append(self.time_us(batch))
        return times


def check(peer, call, inputs, request):
    """The largest distance from fusec's outputs, and whether it is within the limits."""
    out = call(*inputs)
    out = out if isinstance(out, (tuple, list)) else (out,)
    worst, good = 0.0, True
    for value, entry in zip(out, request["outputs"], strict=True):
        far = distance(peer.numpy(value, entry["dtype"]), read(entry))
        worst, good = max(worst, far), good and far <= LIMIT.get(entry["dtype"], 0)
    return worst, good


def prepare(peer, request, chosen):
    inputs = [peer.put(aligned(read(e)), e["dtype"]) for e in request["inputs"]]
    tried, excluded = [], []
    for how, call in peer.ways(request["graph"], request):
        start = time.perf_counter()
        call(*inputs)
        first_s = time.perf_counter() - start
        error, good = check(peer, call, inputs, request)
        if not good:
            excluded.append({"how": how, "error": error})
            continue
        us = min(Calls(call, [inputs]).samples(0.1, 0.05))
        tried.append((us, {"how": how, "error": error, "first_s": first_s}, call))
    if not tried:
        return {"none": "wrong" if excluded else "not to be stated", "excluded": excluded}
    _, about, call = min(tried, key=lambda t: t[0])
    chosen[request["workload"]] = call
    return {**about, "excluded": excluded}


def measure(peer, request, chosen):
    arrays = [(read(e), e["dtype"]) for e in request["inputs"]]
    sets = [tuple(peer.put(aligned(a), d) for a, d in arrays) for _ in range(request["sets"])]
    gc.collect()
    gc.disable()
    times = Calls(chosen[request["workload"]], sets).samples(request["budget_s"])
    gc.enable()
    return {"median_us": statistics.median(times), "min_us": min(times), "samples": len(times)}


def answer(peer, request, chosen):
    do = {"prepare": prepare, "measure": measure}[request["do"]]
    try:
        return do(peer, request, chosen)
    except Exception as e:  # whatever a framework throws is its answer
        return {"none": f"{type(e).__name__}: {str(e).strip().splitlines()[:1]}"}


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    cpus = sorted(os.sched_getaffinity(0))
    if threads < len(cpus):
        os.sched_setaffinity(0, cpus[:threads])
    try:
        peer = importlib.import_module(f"peer_{name}").Peer(threads)
        hello, chosen = {"version": peer.version}, {}
    except ImportError as e:
        hello = {"missing": str(e)}
    print(json.dumps(hello), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(peer, json.loads(line), chosen)), file=out, flush=True)


if __name__ == "__main__":
    main()
