#!/usr/bin/env python3
"""turns.py TIMES COMMQ... -- ARGUMENTS: elapsed time, processor time and memory of a command of commq by several builds,
which run by turns. Each starts with an empty cache."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

at = sys.argv.index("--")
times, builds, arguments = int(sys.argv[1]), sys.argv[2:at], sys.argv[at + 1:]
measured = {b: [] for b in builds}
for _ in range(times):
    for b in builds:
        with tempfile.TemporaryDirectory() as cache:
            begin = time.monotonic()
            p = subprocess.Popen([b, *arguments], stdout=subprocess.DEVNULL, env={**os.environ, "COMMQ_CACHE": cache})
            _, status, used = os.wait4(p.pid, 0)
            elapsed = time.monotonic() - begin
        if status:
            sys.exit(f"{b} {' '.join(arguments)}: status {status}")
        measured[b].append((elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
for b in builds:
    elapsed, cpu, peak = (statistics.median(m[k] for m in measured[b]) for k in range(3))
    print(f"{b}: {elapsed:.2f} s elapsed, {cpu:.2f} s of processor time, {peak:.0f} MiB")
