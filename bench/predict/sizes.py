#!/usr/bin/env python3
"""Predicted times of larger problems beside real ones: COMMQ=commq QUIET="chrt -r 1" sizes.py STORE ROUNDS FOLDER > docs/validation/prediction/sizes.csv

On 1 and 2 ranks, so that each has a core, programs run with several sizes of their problem: LAMMPS (Debian's lmp; a Lennard-Jones melt of
4 L^3 atoms, 100 steps) and, compiled into FOLDER, stencil9, cannon and summa of testdata/programs/predict. Each size is captured
ROUNDS times, by turns; its time is the median from MPI_Init to MPI_Finalize. `commq fit --table` learns from all sizes but the two
largest what these take. CSV: see COLUMNS; times in s."""
import csv
import json
import os
import statistics
import subprocess
import sys

COLUMNS = "program ranks learnt_from at real_s real_least real_largest predicted_s low_s high_s off_percent in_interval law".split()
COMMQ = os.environ.get("COMMQ", "commq")
QUIET = os.environ.get("QUIET", "").split()
LATTICE = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {0} 0 {0} 0 {0}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
fix 1 all nve
run 100
"""


def lammps(folder, length):
    """Command and size of the melt of 4 L^3 atoms."""
    script = os.path.join(folder, f"in.{length}")
    with open(script, "w") as f:
        f.write(LATTICE.format(length))
    return ["lmp", "-log", "none", "-in", script], 4 * length**3


# For each program its numbers of ranks and its sizes as (command, size): the size is what the time is expected to grow with, in elements.
PROGRAMS = {
    "LAMMPS": ((1, 2), lambda folder: [lammps(folder, n) for n in (5, 6, 7, 8, 9, 10, 12, 14, 17, 20)]),
    "stencil9": ((1, 2), lambda folder: [([f"{folder}/stencil9", str(n), str(n), "100"], n * n) for n in (150, 180, 220, 270, 330, 400, 500, 620, 800, 1000)]),
    "cannon": ((1,), lambda folder: [([f"{folder}/cannon", str(n), "1"], n) for n in (150, 180, 220, 260, 320, 380, 460, 560, 680, 840)]),
    "summa": ((1,), lambda folder: [([f"{folder}/summa", str(n), "20"], n) for n in (160, 180, 220, 260, 320, 380, 460, 560, 680, 840)]),
}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def seconds(store, name):
    out = run([COMMQ, "query", "scaling", "--store", store, "--run", name, "--measure", "runtime-ns", "--format", "csv"])
    return float(next(csv.DictReader(out.splitlines()))["y"]) / 1e9


def main(store, rounds, folder):
    real = {}
    for r in range(rounds):
        for program, (numbers, sizes) in PROGRAMS.items():
            for ranks in numbers:
                for command, size in sizes(folder):
                    name = f"{program}.{size}.{ranks}.r{r}"
                    run([*QUIET, COMMQ, "capture", "-q", "--mpi", "openmpi", "-n", str(ranks), "--hash", "none", "--store", store, "--name", name, "--", *command])
                    real.setdefault((program, ranks), {}).setdefault(size, []).append(seconds(store, name))
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    out.writeheader()
    for (program, ranks), times in real.items():
        sizes = sorted(times)
        table = os.path.join(folder, "table.csv")
        with open(table, "w") as f:
            f.write("ranks,seconds\n" + "".join(f"{s},{statistics.median(times[s])}\n" for s in sizes[:-2]))
        for at in sizes[-2:]:
            p = json.loads(run([COMMQ, "fit", "--table", table, "--at", str(at), "--format", "json"]))[0]
            t = statistics.median(times[at])
            out.writerow({"program": program, "ranks": ranks, "learnt_from": f"{sizes[0]} to {sizes[-3]}", "at": at, "real_s": f"{t:.4f}",
                          "real_least": f"{min(times[at]):.4f}", "real_largest": f"{max(times[at]):.4f}", "predicted_s": f"{p['prediction']:.4f}",
                          "low_s": f"{p['low']:.4f}", "high_s": "" if p["high"] is None else f"{p['high']:.4f}",
                          "off_percent": f"{100 * (p['prediction'] / t - 1):.1f}", "in_interval": int(p["low"] <= t and (p["high"] is None or t <= p["high"])),
                          "law": p["formula"]})


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
