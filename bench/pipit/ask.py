"""Asks Pipit: ask.py TRACE ANALYSIS [ROUNDS]

Reads the OTF2 trace TRACE with Pipit's reader and asks for ANALYSIS, each round on a fresh copy of what was read, so that nothing that an
analysis keeps serves the next. Writes the answer to standard output as soon as it is there, and at the end the seconds of the reading and of
each round as the last line of standard error.
"""
import json
import sys
import time

import pipit

EDGES = [0, 17, 65, 257, 1025, 4097, 16385, 65537, 262145, 1048577, 4194305, 16777217, 67108865, 1 << 62]  # those of commq query sizes

ANALYSES = {
    "comm_matrix": lambda t: t.comm_matrix("count").tolist(),
    "comm_matrix size": lambda t: t.comm_matrix("size").tolist(),
    "comm_by_process": lambda t: t.comm_by_process().values.tolist(),
    "message_histogram": lambda t: t.message_histogram(bins=EDGES)[0].tolist(),
    "comm_over_time": lambda t: t.comm_over_time()[0].tolist(),
    "flat_profile": lambda t: {str(n): s for n, s in t.flat_profile("time.inc")["time.inc"].items()},
}


def main(path, analysis, rounds="1"):
    start = time.perf_counter()
    trace = pipit.Trace.from_otf2(path)
    times = [time.perf_counter() - start]
    events = trace.events
    for _ in range(int(rounds)):
        fresh = pipit.Trace(trace.definitions, events.copy())
        start = time.perf_counter()
        answer = ANALYSES[analysis](fresh)
        times.append(time.perf_counter() - start)
        if len(times) == 2:
            print(json.dumps(answer), flush=True)
    print(*("%.6f" % t for t in times), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
