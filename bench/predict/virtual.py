#!/usr/bin/env python3
"""Predicted execution times against virtual ones: COMMQ=commq virtual.py STORE[,STORE]... MACHINE PROGRAM.CLASS... > docs/validation/prediction/virtual.csv

Each STORE holds captures of each program beside simulator ranks of the machine (capture --sim-ranks 1 --machine MACHINE --clock cpu --stack 16). For
each number of ranks that two or more smaller ones come before, the run is predicted from those, and compared with the virtual time of the
capture that was left out, from MPI_Init to MPI_Finalize. CSV: see COLUMNS; captures counts the stores from 1, times in s."""
import csv
import json
import os
import re
import subprocess
import sys

COLUMNS = "captures code learnt_from at virtual_s simulated_s predicted_s low_s high_s off_percent in_interval compute_s compute_predicted_s refused".split()
COMMQ = os.environ.get("COMMQ", "commq")


def query(store, run, measure):
    """What the query scaling says of a run."""
    out = subprocess.run([COMMQ, "query", "scaling", "--store", store, "--run", run, "--measure", measure, "--format", "csv"], capture_output=True, text=True, check=True).stdout
    return float(next(csv.DictReader(out.splitlines()))["y"]) / 1e9


def row(store, machine, code, training, held):
    """The fields of a line."""
    command = [COMMQ, "predict", "--store", store, "--machine", machine, "--holdout", "--format", "json"]
    for p in [*training, held]:
        command += ["--run", f"{code}.{p}"]
    done = subprocess.run(command, capture_output=True, text=True)
    fields = {"code": code, "learnt_from": " ".join(map(str, training)), "at": held}
    t = (json.loads(done.stdout) if done.stdout else {}).get("time")
    if not t:
        return fields | {"refused": done.stderr.strip().splitlines()[-1][:200]}
    virtual = query(store, f"{code}.{held}", "runtime-ns")
    seconds = lambda ns: f"{ns / 1e9:.4f}"
    return fields | {
        "virtual_s": f"{virtual:.4f}",
        "simulated_s": seconds(t["measured_ns"]),
        "predicted_s": seconds(t["predicted_ns"]),
        "low_s": seconds(t["predicted_low_ns"]),
        "high_s": seconds(t["predicted_high_ns"]) if t["predicted_high_ns"] < 2**63 - 1 else "none",
        "off_percent": f"{100 * (t['predicted_ns'] / 1e9 / virtual - 1):+.1f}",
        "in_interval": "yes" if t["predicted_low_ns"] <= virtual * 1e9 <= t["predicted_high_ns"] else "no",
        "compute_s": f"{query(store, f'{code}.{held}', 'compute-ns'):.4f}",
        "compute_predicted_s": seconds(t["compute"]["rank_ns"]) if t["compute"] else "",
    }


def main():
    stores, machine, *codes = sys.argv[1:]
    table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    table.writeheader()
    for number, store, code in [(n, s, c) for n, s in enumerate(stores.split(","), 1) for c in codes]:
        sizes = sorted(int(m[1]) for name in os.listdir(store) if (m := re.fullmatch(re.escape(code) + r"\.(\d+)", name)))
        for i in range(2, len(sizes)):
            table.writerow({"captures": number} | row(store, machine, code, sizes[:i], sizes[i]))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
