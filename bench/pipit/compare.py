"""Compares Pipit with commq on one run: compare.py COMMQ RUN TRACE ROUNDS

TRACE is the run as to_otf2.py wrote it. In each round every analysis is done once by each, one process after the other. The answers
must agree; where they do not, the line says how far they are apart. Prints a line of Markdown for each analysis: what Pipit took for
the analysis alone, when it had read the trace, and from process start to end; what commq took from process start to end; how many times
faster that is than either. Every measurement is a line of standard error: analysis, and the three times.
"""
import csv
import io
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent


def matrix(rows, value, ranks):
    out = [[0] * ranks for _ in range(ranks)]
    for r in rows:
        out[int(r["src"])][int(r["dst"])] = int(r[value])
    return out


# What Pipit is asked, what commq is asked, and commq's rows in the shape of Pipit's answer.
PAIRS = [
    ("comm_matrix", ["density", "--collectives", "none"], lambda rows, n: matrix(rows, "messages", n)),
    ("comm_matrix size", ["data-density", "--collectives", "none"], lambda rows, n: matrix(rows, "bytes", n)),
    ("comm_by_process", ["by-rank"], lambda rows, n: [[int(r["sent_bytes"]), int(r["received_bytes"])] for r in rows]),
    ("message_histogram", ["sizes"], lambda rows, n: [int(r["messages"]) for r in rows]),
    ("comm_over_time", ["over-time", "--bins", "50"], lambda rows, n: [int(r["bytes"]) for r in rows]),
    ("flat_profile", ["calls-time"], lambda rows, n: {r["call"]: int(r["time_ns"]) / int(r["ranks"]) for r in rows}),
]


def pipit(trace, analysis):
    start = time.perf_counter()
    done = subprocess.run([sys.executable, HERE / "ask.py", trace, analysis], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    return json.loads(done.stdout), float(done.stderr.split()[-1]), seconds


def commq(command, run, query):
    start = time.perf_counter()
    done = subprocess.run([command, "query", *query, "--run", run, "--format", "csv"], capture_output=True, text=True, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout))), time.perf_counter() - start


def flat(x):
    if isinstance(x, dict):
        return [v for k in sorted(x) for v in flat(x[k])]
    return [v for e in x for v in flat(e)] if isinstance(x, list) else [float(x)]


def apart(a, b):
    """The sum of the differences of two answers, as a share of the sum of the second."""
    a, b = flat(a), flat(b)
    if len(a) != len(b):
        return 1.0
    return sum(abs(x - y) for x, y in zip(a, b)) / max(sum(b), 1)


def main(command, run, trace, rounds):
    manifest = json.loads((pathlib.Path(run) / "manifest.json").read_text())
    times = {p[0]: ([], [], []) for p in PAIRS}
    off = {}
    for _ in range(int(rounds)):
        for analysis, query, shape in PAIRS:
            theirs, alone, whole = pipit(trace, analysis)
            rows, ours = commq(command, run, query)
            off[analysis] = apart(theirs, shape(rows, manifest["ranks"]))
            for kept, seconds in zip(times[analysis], (alone, whole, ours)):
                kept.append(seconds)
            print("%s %.6f %.6f %.6f" % (analysis, alone, whole, ours), file=sys.stderr, flush=True)
    print("| Pipit | commq query | answers | Pipit: analysis | Pipit: all | commq: all | times, analysis | times, all |")
    print("|---|---|---|---|---|---|---|---|")
    for analysis, query, _ in PAIRS:
        alone, whole, ours = (statistics.median(t) for t in times[analysis])
        same = "agree" if off[analysis] < 1e-12 else "%.2g of the sum apart" % off[analysis]
        print("| `%s` | `%s` | %s | %.3f s | %.2f s | %.3f s | %.1f | %.0f |"
              % (analysis, " ".join(query), same, alone, whole, ours, alone / ours, whole / ours))


main(*sys.argv[1:])
