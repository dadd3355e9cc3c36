#!/usr/bin/env python3
"""Writes docs/validation/prediction/npb.csv: each program's largest run is predicted from smaller ones with commq predict --holdout.

    COMMQ=commq holdouts.py [--files 'FOLDER/{}.json.gz'] [PROGRAM...]

Runs are those of the store (captured with --stack 16), or with --files signature files, {} being the run's name. Prints CSV, a line for each
row of ROWS of the programs named (all where none is). Exit status 1 where a size was said to be exact and is not.
"""
import argparse
import csv
import json
import os
import resource
import subprocess
import sys

# Program, ranks to learn from, ranks that are left out.
ROWS = """
bt.W  4 9 16 25  36
bt.W  4 9 16 25 36  49
bt.W  4 9 16 25 36  64
bt.W  4 9 16  25
bt.W  4 9 16  36
bt.W  4 9 16  49
bt.W  4 9 16  64
sp.W  9 16 25  36
sp.W  4 9 16 25  36
sp.W  4 9 16 25 36  49
sp.W  4 9 16 25 36  64
cg.W  4 8 16  32
cg.W  2 4 8 16  32
cg.W  2 4 8 16  64
cg.W  4 8 16 32  64
cg.W  2 4 8 16  128
cg.W  4 8 16 32  128
cg.W  4 8 16 32 64  128
cg.A  4 8 16 32  64
lu.W  2 4 8 16  32
lu.W  2 4 8 16  64
lu.W  4 8 16 32  64
mg.W  2 4 8 16  32
mg.W  4 8 16 32  64
mg.W  2 4 8 16 32  64
mg.W  4 8 16 32  128
mg.W  4 8 16 32 64  128
mg.A  4 8 16 32  64
is.W  4 8 16 32  64
is.A  4 8 16 32  64
ep.W  4 8 16 32  64
ft.A  4 8 16 32  64
ft.W  4 8 16 32  64
"""

COLUMNS = (
    "code learnt_from at edge_precision edge_recall messages_off_percent bytes_off_percent collective_calls_off_percent "
    "sizes_said_exact sizes said_exact_and_wrong covered_percent width_percent cpu_s refused"
).split()


def percent(x):
    return "0" if x == 0 else f"{100 * x:.2g}" if x < 0.1 else f"{100 * x:.0f}"


def row(name, training, held, files):
    """The fields of a row by their column."""
    runs = ",".join(files.format(f"{name}.{p}") for p in [*training, held])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([os.environ.get("COMMQ", "commq"), "predict", "--run", runs, "--holdout", "--format", "json"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    fields = {"code": name, "learnt_from": " ".join(training), "at": held, "cpu_s": f"{cpu:.1f}"}
    p = json.loads(done.stdout) if done.stdout else {}
    if "holdout" not in p:
        return fields | {"refused": done.stderr.strip()[:300]}
    s, c = p["holdout"], p["coverage"]
    if s["messages"]:
        fields |= {"edge_precision": f"{s['edge_precision']:.4g}", "edge_recall": f"{s['edge_recall']:.4g}"}
    if c["numbers"]:
        fields["covered_percent"] = f"{100 * c['covered'] / c['numbers']:.4g}"
    if c["width_median"] is not None:
        fields["width_percent"] = percent(c["width_median"])
    elif c["exact"] != c["numbers"]:
        fields["width_percent"] = "no end"
    return fields | {
        "messages_off_percent": percent(s["message_error"]),
        "bytes_off_percent": percent(s["byte_error"]),
        "collective_calls_off_percent": percent(s["collective_error"]),
        "sizes_said_exact": c["exact"],
        "sizes": c["numbers"],
        "said_exact_and_wrong": c["exact"] - c["exact_right"],
    }


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--files", default="{}", help="name of a run's file; {} is the run")
    a.add_argument("programs", nargs="*", metavar="PROGRAM")
    o = a.parse_args()
    table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    table.writeheader()
    bad = 0
    for text in ROWS.strip().splitlines():
        name, training, held = text.split("  ")
        if o.programs and name not in o.programs:
            continue
        fields = row(name, training.split(), held, o.files)
        table.writerow(fields)
        sys.stdout.flush()
        bad += fields.get("said_exact_and_wrong", 0)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
