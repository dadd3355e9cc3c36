"""Compares Pipit with commq on one run: compare.py COMMQ RUN TRACE ROUNDS

TRACE is the run as to_otf2.py wrote it. In each round every analysis is done once by each, one process after the other: with the whole
from process start to the answer, and with reading and analysis apart. Pipit reads the trace into memory; of commq the SQL that
commq query --sql prints is asked in a session of DuckDB, in which reading is the engine's start and its views, and the analysis still
reads what it needs from the run's files. Both do an analysis three times in a session, and the last is taken. All three answers must agree;
where they do not, the line says how far they are apart. Prints a line of Markdown for each analysis with the medians: what Pipit took
to read, for the analysis and for the whole, the same of commq, and how many times faster that is. Every measurement is a line of standard
error: the analysis, and the six times.
"""
import csv
import io
import json
import pathlib
import statistics
import subprocess
import sys
import time

import duckdb

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


ASKED = 3  # times that an analysis is done in a session


def pipit(trace, analysis):
    """The answer, and the seconds of reading, of the analysis, and from process start to the first answer."""
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, HERE / "ask.py", trace, analysis, str(ASKED)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        answer = process.stdout.readline()
        seconds = time.perf_counter() - start
        _, said = process.communicate()
    if process.returncode:
        sys.exit(said)
    read, *analyses = (float(t) for t in said.splitlines()[-1].split())
    return json.loads(answer), (read, analyses[-1], seconds)


def commq(command, run, query):
    start = time.perf_counter()
    done = subprocess.run([command, "query", *query, "--run", run, "--format", "csv"], capture_output=True, text=True, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout))), time.perf_counter() - start


class Session:
    """The run, opened in DuckDB with the views and the SQL that commq prints. opened are the seconds that took."""

    def __init__(self, command, run, query):
        text = subprocess.run([command, "query", *query, "--run", run, "--sql"], capture_output=True, text=True, check=True).stdout
        *views, self.select = duckdb.extract_statements(text)
        start = time.perf_counter()
        self.engine = duckdb.connect()
        self.engine.execute("SET parquet_metadata_cache = true")  # as commq has it
        for view in views:
            self.engine.execute(view)
        self.opened = time.perf_counter() - start

    def ask(self):
        """The rows, and the seconds of the analysis."""
        start = time.perf_counter()
        answer = self.engine.execute(self.select).fetchall()
        seconds = time.perf_counter() - start
        names = [column[0] for column in self.engine.description]
        return [dict(zip(names, row)) for row in answer], seconds


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
    times = {p[0]: [] for p in PAIRS}
    off = {}
    for _ in range(int(rounds)):
        for analysis, query, shape in PAIRS:
            theirs, measured = pipit(trace, analysis)
            rows, whole = commq(command, run, query)
            session = Session(command, run, query)
            again, asked = [session.ask() for _ in range(ASKED)][-1]
            off[analysis] = max(apart(theirs, shape(r, manifest["ranks"])) for r in (rows, again))
            times[analysis].append((*measured, session.opened, asked, whole))
            print(analysis, *("%.6f" % t for t in times[analysis][-1]), file=sys.stderr, flush=True)
    print("| Pipit | commq query | answers | Pipit: reading | analysis | all | commq: opening | analysis | all | times, analysis | times, all |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for analysis, query, _ in PAIRS:
        read, alone, whole, opened, asked, ours = (statistics.median(t) for t in zip(*times[analysis]))
        same = "agree" if off[analysis] < 1e-12 else "%.2g of the sum apart" % off[analysis]
        print("| `%s` | `%s` | %s | %.2f s | %.1f ms | %.2f s | %.1f ms | %.1f ms | %.3f s | %.1f | %.0f |"
              % (analysis, " ".join(query), same, read, alone * 1e3, whole, opened * 1e3, asked * 1e3, ours, alone / asked, whole / ours))


if __name__ == "__main__":
    main(*sys.argv[1:])
