#!/usr/bin/env python3
"""The table of docs/validation/prediction.md: each program's largest run is predicted from smaller ones with commq predict --holdout.

    COMMQ=commq holdouts.py [--files 'FOLDER/{}.json.gz'] [PROGRAM...]

Runs are those of the store (captured with --stack 16), or with --files signature files, {} being the run's name. Prints Markdown, a line for each
row of ROWS of the programs named (all where none is), and the CPU seconds each took. Exit status 1 where a size was said to be exact and is not.
"""
import argparse
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


def percent(x):
    return "0" if x == 0 else f"{100 * x:.2g}" if x < 0.1 else f"{100 * x:.0f}"


def row(name, training, held, files):
    """The Markdown line of a row, and how many sizes were said to be exact and are not."""
    runs = ",".join(files.format(f"{name}.{p}") for p in [*training, held])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([os.environ.get("COMMQ", "commq"), "predict", "--run", runs, "--holdout", "--format", "json"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    line = f"| {name}, {' '.join(training)} | {held} | "
    p = json.loads(done.stdout) if done.stdout else {}
    if "holdout" not in p:
        why = done.stderr.strip().replace("|", "/")
        return f"{line}refused: {why[:300]} | | | | | | | {cpu:.1f} |", 0
    s, c = p["holdout"], p["coverage"]
    edges = f"{s['edge_precision']:.4g}, {s['edge_recall']:.4g}" if s["messages"] else "none"
    wrong = c["exact"] - c["exact_right"]
    covered = f"{100 * c['covered'] / c['numbers']:.4g}" if c["numbers"] else "none"
    width = percent(c["width_median"]) if c["width_median"] is not None else "none" if c["exact"] == c["numbers"] else "no end"
    return (f"{line}{edges} | {percent(s['message_error'])} | {percent(s['byte_error'])} | {percent(s['collective_error'])} | "
            f"{c['exact']:,} of {c['numbers']:,}; {wrong} | {covered}; {width} | {cpu:.1f} |"), wrong


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--files", default="{}", help="name of a run's file; {} is the run")
    a.add_argument("programs", nargs="*", metavar="PROGRAM")
    o = a.parse_args()
    print("| code, learnt from | at | precision, recall | messages off % | bytes off % | calls of collectives off % | sizes said exact; wrong | covered %; width % | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    bad = 0
    for text in ROWS.strip().splitlines():
        name, training, held = text.split("  ")
        if o.programs and name not in o.programs:
            continue
        line, wrong = row(name, training.split(), held, o.files)
        print(line, flush=True)
        bad += wrong
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
