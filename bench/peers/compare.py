#!/usr/bin/env python3
"""compare.py: fusec's standard workloads beside PyTorch, JAX, numexpr and ONNX Runtime, on the CPU.

    python3 bench/peers/compare.py [--rounds 3] [--only NAMES] [--peers NAMES] [--json FILE] …
    python3 bench/peers/compare.py --join FILE…

`fusec bench --json` names the workloads, their arrays and the sets of arrays that calls go round
among. Each framework runs in a process of its own (worker.py), on the same inputs, and is measured
in turn with fusec, forwards and backwards, so that what the machine does meanwhile hits all alike.
Figures are medians of the rounds' medians, and minima. A framework that is not installed is skipped
with a line, and so is a result that fusec's does not confirm.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ModuleNotFoundError:  # --help and --join do without
    np = None

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PEERS = ["torch", "compile", "jax", "numexpr", "onnx"]
RIVALS = ["torch", "compile", "jax"]  # those that the ratio is about
IDLE_S = 0.05  # until the threads of whoever ran before have stopped spinning
WAYS = ["eager", "compiled", "replay"]


# ---- fusec


class Fusec:
    def __init__(self, options):
        self.command = options.fusec
        self.flags = ["--hot"] * options.hot
        if options.threads:
            self.flags += ["--threads", str(options.threads)]
        self.scale = ["--scale", options.scale] if options.scale else []

    def run(self, *words):
        done = subprocess.run([self.command, *words], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{self.command} {' '.join(words)}: exit status {done.returncode}")
        return done.stdout

    def workloads(self, only):
        """Those called like, or else containing, one of the words of `only`."""
        names = self.run("bench", "--list").split()
        wanted = [w for w in only.split(",") if w]
        return [n for n in names
                if not wanted or any(w == n or (w not in names and w in n) for w in wanted)]

    def bench(self, workload):
        text = self.run("bench", "--json", "--filter", workload, *self.flags, *self.scale)
        return json.loads(text)[0]

    def compute(self, row, inputs, outputs):
        words = [str(ROOT / "bench" / "graphs" / f"{row['graph']}.fuse")]
        for flag, entries in (("--in", inputs), ("--out", outputs)):
            for e in entries:
                words += [flag, f"{e['name']}={e['file']}"]
        self.run("run", *words)


def fill(entry, seed):
    """An input's elements, of the kinds that fusec's bench uses; bf16 as two bytes each."""
    rng, dims = np.random.default_rng(seed), entry["dims"]
    if entry["dtype"][0] in "iu":
        dtype = np.dtype(f"{entry['dtype'][0]}{int(entry['dtype'][1:]) // 8}")
        if "places" in entry:
            most = min(entry["places"], np.iinfo(dtype).max + 1)
            return rng.integers(0, most, dims, dtype)
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, dims, dtype, endpoint=True)
    array = rng.standard_normal(dims, np.float32)
    if entry["dtype"] == "bool":
        return array > 0
    if entry["dtype"] in ("f16", "f64"):
        return array.astype(f"f{int(entry['dtype'][1:]) // 8}")
    if entry["name"] == "v":
        array = np.abs(array)
    if entry["dtype"] == "bf16":
        bits = array.view(np.uint32)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16  # to nearest even
        array = bits.astype(np.uint16).view("V2")
    return array


def make_arrays(fusec, row, folder):
    """Files of inputs, and of what fusec makes of them."""
    inputs = [{**e, "file": f"{folder}/in{i}.npy"} for i, e in enumerate(row["inputs"])]
    outputs = [{**e, "file": f"{folder}/out{i}.npy"} for i, e in enumerate(row["outputs"])]
    for i, e in enumerate(inputs):
        np.save(e["file"], fill(e, i))
    fusec.compute(row, inputs, outputs)
    return {"inputs": inputs, "outputs": outputs}


# ---- peers


class Worker:
    def __init__(self, name, threads, settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        for library in ("OMP", "MKL", "OPENBLAS", "NUMEXPR"):
            env[f"{library}_NUM_THREADS"] = str(threads)
        env.update(NUMEXPR_MAX_THREADS=str(threads), **settings)
        self.name, self.log = name, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, HERE / "worker.py", name, str(threads)], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)

    def answer(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.log.seek(0)
        return {"none": f"its process ended: {self.log.read().strip()[-300:]}", "dead": True}

    def ask(self, **request):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(names, threads, settings):
    """The workers whose framework is there, and its version."""
    workers, versions = [Worker(n, threads, settings) for n in names], {}
    for w in list(workers):
        hello = w.answer()
        if "version" in hello:
            versions[w.name] = hello["version"]
        else:
            print(f"{w.name}: skipped: {hello.get('missing') or hello['none']}", flush=True)
            w.close()
            workers.remove(w)
    return workers, versions


def complain(workload, name, about):
    for x in about.get("excluded", []):
        print(f"{workload}: {name} ({x['how']}) IS WRONG by {x['error']:.1e}: excluded")
    if "none" in about and not about.get("excluded"):
        print(f"{workload}: {name}: {about['none']}")


def prepare(workers, row, arrays):
    """Peer → how it does the workload, for those that can."""
    can = {}
    for w in workers:
        about = w.ask(do="prepare", workload=row["workload"], graph=row["graph"], **arrays)
        complain(row["workload"], w.name, about)
        if "none" not in about:
            can[w] = about
    return can


# ---- one workload


def middle(rounds, key):
    return statistics.median(r[key] for r in rounds)


def summary(row, fusec_rounds, can, peer_rounds):
    keep = ("workload", "graph", "machine", "threads", "array_bytes", "minimum_bytes", "sets",
            "in_cache", "kernels", "copy_gbps")
    ours = {}
    for way in WAYS:
        ours[f"{way}_us"] = middle(fusec_rounds, f"{way}_us")
        ours[f"{way}_min_us"] = min(r[f"{way}_min_us"] for r in fusec_rounds)
    peers = {}
    for w, about in can.items():
        rounds = peer_rounds[w]
        if rounds:
            peers[w.name] = {"us": middle(rounds, "median_us"),
                             "min_us": min(r["min_us"] for r in rounds),
                             **{k: about[k] for k in ("how", "error", "first_s")}}
    return {**{k: row[k] for k in keep}, "fusec": ours, "peers": peers}


def measure(fusec, workers, workload, options):
    row = fusec.bench(workload)
    fusec_rounds = []
    with tempfile.TemporaryDirectory() as folder:
        arrays = make_arrays(fusec, row, folder)
        can = prepare(workers, row, arrays)
        peer_rounds = {w: [] for w in can}
        for i in range(options.rounds):
            turns = [None, *can]
            for w in turns if i % 2 == 0 else reversed(turns):
                time.sleep(IDLE_S)
                if not w:
                    fusec_rounds.append(fusec.bench(workload))
                    continue
                took = w.ask(do="measure", workload=workload, sets=row["sets"],
                             budget_s=options.budget, **arrays)
                if "none" in took:
                    complain(workload, w.name, took)
                else:
                    peer_rounds[w].append(took)
    return summary(row, fusec_rounds, can, peer_rounds)


# ---- the table


def best(row, names, key):
    """The fastest peer and its time, or None."""
    have = [(row["peers"][n][key], n) for n in names if n in row["peers"]]
    return min(have, default=None)


def ratio(row, names, key="us"):
    rival = best(row, names, key)
    return rival and rival[0] / row["fusec"][f"compiled_{key}"]


def number(x, form):
    return "-" if x is None else format(x, form)


def geomean(values):
    values = [v for v in values if v]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def line(row):
    cells = [f"{row['workload']:24}"]
    cells += [f"{row['fusec'][f'{way}_us']:10.2f}" for way in WAYS]
    for name in PEERS:
        cells.append(f"{number(row['peers'].get(name, {}).get('us'), '.2f'):>10}")
    fastest = best(row, PEERS, "us")
    cells.append(f"{fastest[1] if fastest else '-':>8}")
    for names, key in ((RIVALS, "us"), (RIVALS, "min_us"), (PEERS, "us")):
        cells.append(f"{number(ratio(row, names, key), '.2f'):>7}")
    return " ".join(cells)


def table(rows):
    heads = [f"{'':24}", *(f"{h:>10}" for h in ["fusec", "fusec", "fusec"]), *[f"{'':>10}"] * 5,
             f"{'fastest':>8}", f"{'best of 3 / fusec':>15}", f"{'of 5':>5}"]
    names = [f"{'workload':24}", *(f"{h:>10}" for h in WAYS), *(f"{p:>10}" for p in PEERS),
             f"{'peer':>8}", f"{'median':>7}", f"{'min':>7}", f"{'':>7}"]
    out = [" ".join(heads).rstrip(), " ".join(names).rstrip()] + [line(r) for r in rows]
    means = [geomean(ratio(r, n, k) for r in rows)
             for n, k in ((RIVALS, "us"), (RIVALS, "min_us"), (PEERS, "us"))]
    label = f"{'geometric mean':24}" + " " * (8 * 11 + 9)
    out.append(label + "".join(f" {number(m, '.2f'):>7}" for m in means))
    behind = [f"{r['workload']} ({ratio(r, RIVALS):.2f})" for r in rows
              if (ratio(r, RIVALS) or 1) < 1]
    out.append("behind: " + (", ".join(behind) or "none"))
    return "\n".join(out)


def report(result):
    rows = result["rows"]
    if rows:
        print(f"{result['date']}, revision {result['revision']}, {rows[0]['machine']}, threads: "
              f"{rows[0]['threads']}\n{', '.join(result['versions'].values())}; "
              f"microseconds a call, median of {result['rounds']} rounds"
              f"{', hot' if result['hot'] else ''}\n")
    print(table(rows))


# ---- the command


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--fusec", default=str(ROOT / "build" / "fusec"), help="the command")
    p.add_argument("--peers", default=",".join(PEERS), help="which, comma between")
    p.add_argument("--only", default="", help="workloads of these names, or containing them")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--budget", type=float, default=0.3, help="seconds of a measurement of a peer")
    p.add_argument("--scale", help="the first dim times K, or 1/K, as fusec bench takes it")
    p.add_argument("--hot", action="store_true", help="one set of arrays, however large")
    p.add_argument("--threads", type=int, default=0, help="default: all cores")
    p.add_argument("--env", action="append", default=[], metavar="NAME=VALUE",
                   help="set for the peers; may repeat")
    p.add_argument("--json", metavar="FILE", help="writes the figures there")
    p.add_argument("--join", nargs="+", metavar="FILE", help="prints one table of such files")
    return p.parse_args()


def revision():
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def join(files):
    results = [json.loads(pathlib.Path(f).read_text()) for f in files]
    return {**results[0], "rows": [row for r in results for row in r["rows"]]}


def measure_all(options):
    fusec = Fusec(options)
    threads = options.threads or len(os.sched_getaffinity(0))
    settings = dict(pair.split("=", 1) for pair in options.env)
    workers, versions = start(options.peers.split(","), threads, settings)
    result = {"date": time.strftime("%Y-%m-%d"), "revision": revision(), "versions": versions,
              "rounds": options.rounds, "hot": options.hot, "env": settings, "rows": []}
    for workload in fusec.workloads(options.only):
        result["rows"].append(measure(fusec, workers, workload, options))
        print(line(result["rows"][-1]), flush=True)
    for w in workers:
        w.close()
    return result


def main():
    options = parse()
    if np is None and not options.join:
        sys.exit("compare.py needs numpy, which fills the arrays: pip install numpy")
    result = join(options.join) if options.join else measure_all(options)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    print()
    report(result)


if __name__ == "__main__":
    main()
