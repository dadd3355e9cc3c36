"""Compares the analyses alone: sessions.py COMMQ RUN TRACE ROUNDS

TRACE is the run as to_otf2.py wrote it. Pipit reads it once, and commq's SQL is asked in a session of DuckDB for each analysis, as compare.py
does. In each round every analysis is done by each, one after the other, Pipit's on a fresh copy of what it read. The first round warms both
and does not count. Prints a line of Markdown for each analysis with the medians.
"""
import json
import pathlib
import statistics
import sys
import time

import pipit

from ask import ANALYSES
from compare import PAIRS, Session, apart


def main(command, run, path, rounds):
    ranks = json.loads((pathlib.Path(run) / "manifest.json").read_text())["ranks"]
    start = time.perf_counter()
    trace = pipit.Trace.from_otf2(path)
    print("read %d rows in %.0f s" % (len(trace.events), time.perf_counter() - start), file=sys.stderr, flush=True)
    events = trace.events
    sessions = {analysis: Session(command, run, query) for analysis, query, _ in PAIRS}
    times = {analysis: [] for analysis, _, _ in PAIRS}
    off = {}
    for _ in range(1 + int(rounds)):
        for analysis, _, shape in PAIRS:
            fresh = pipit.Trace(trace.definitions, events.copy())
            start = time.perf_counter()
            theirs = ANALYSES[analysis](fresh)
            alone = time.perf_counter() - start
            rows, asked = sessions[analysis].ask()
            off[analysis] = apart(theirs, shape(rows, ranks))
            times[analysis].append((alone, asked))
    print("| Pipit | commq query | answers | Pipit | commq | times |")
    print("|---|---|---|---|---|---|")
    for analysis, query, _ in PAIRS:
        alone, asked = (statistics.median(t) for t in zip(*times[analysis][1:]))
        same = "agree" if off[analysis] < 1e-12 else "%.2g of the sum apart" % off[analysis]
        print("| `%s` | `%s` | %s | %.1f ms | %.1f ms | %.1f |" % (analysis, " ".join(query), same, alone * 1e3, asked * 1e3, alone / asked))


if __name__ == "__main__":
    main(*sys.argv[1:])
