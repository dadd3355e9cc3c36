#!/usr/bin/env python3
"""compare.py TIMES RUN COMMQ...: processor time and memory of commq detect by several builds, which run by turns."""
import os
import statistics
import subprocess
import sys

times, run, builds = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
measured = {b: [] for b in builds}
for _ in range(times):
    for b in builds:
        p = subprocess.Popen([b, "detect", "--run", run, "-q"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(p.pid, 0)
        if status:
            sys.exit(f"{b} detect --run {run}: status {status}")
        measured[b].append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
for b in builds:
    cpu, peak = ([m[k] for m in measured[b]] for k in range(2))
    print(f"{b}: {statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f}) s, {statistics.median(peak):.0f} MiB")
