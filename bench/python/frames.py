"""Times a question into a DataFrame: frames.py COMMQ STORE RUN ROUNDS [--trace FOLDER] [--ways WAY,WAY...]

The questions are who sends how many messages and bytes to whom (density, point-to-point), and six columns of every
message. Each is asked by the package commq, by DuckDB's package with the macros of commq.sql, by DuckDB's package
with SQL over the files that knows nothing of commq, by pandas, and with --trace, the run as commq export otf2 wrote
it, by Pipit. Every measurement is a process of its own, imports included; the ways take turns. The sums of all
answers must agree. Prints a line of Markdown for each way: medians of seconds from process start to the end, of the
processor's seconds, and of the peak of memory, with that of commq's process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

MACROS = Path(__file__).parent.parent.parent / "queries" / "commq.sql"
COLUMNS = "src, dst, bytes, tag, send_start_ns, recv_end_ns"


def duckdb_with_macros(run):
    import duckdb

    con = duckdb.connect()
    con.execute(MACROS.read_text())
    con.execute(f"SET VARIABLE commq_store = '{run.parent}'")
    return con


def density_commq(run):
    import commq

    return commq.open(run.parent)[run.name].density(collectives="none").df()


def density_macro(run):
    return duckdb_with_macros(run).sql(f"FROM density('{run.name}', collectives := 'none')").df()


def density_duckdb(run):
    import duckdb

    return duckdb.sql(
        f"""SELECT src, dst, count(*) AS messages, sum(bytes)::BIGINT AS bytes
            FROM '{run}/messages/*.parquet' GROUP BY src, dst ORDER BY src, dst"""
    ).df()


def density_pandas(run):
    import pandas as pd

    messages = pd.read_parquet(run / "messages", columns=["src", "dst", "bytes"])
    return messages.groupby(["src", "dst"], as_index=False).agg(messages=("bytes", "size"), bytes=("bytes", "sum"))


def density_pipit(trace):
    import pandas as pd
    import pipit

    read = pipit.Trace.from_otf2(str(trace))
    counts, sizes = read.comm_matrix("count"), read.comm_matrix("size")
    return pd.DataFrame({"messages": counts.ravel(), "bytes": sizes.ravel()})


def rows_commq(run):
    import commq

    return commq.open(run.parent)[run.name].sql(f"SELECT {COLUMNS} FROM messages").df()


def rows_macro(run):
    return duckdb_with_macros(run).sql(f"SELECT {COLUMNS} FROM messages('{run.name}')").df()


def rows_pandas(run):
    import pandas as pd

    return pd.read_parquet(run / "messages", columns=COLUMNS.split(", "))


DENSITY = (density_commq, density_macro, density_duckdb, density_pandas, density_pipit)
WAYS = {f.__name__: f for f in (*DENSITY, rows_commq, rows_macro, rows_pandas)}


def measure(way, path):
    """What the answer sums to, and the seconds, the processor's seconds and the MiB of a process that asks for it."""
    begin, before = time.perf_counter(), os.times()
    with subprocess.Popen([sys.executable, __file__, "--ask", way, path], stdout=subprocess.PIPE, text=True) as child:
        said = child.stdout.read()
    seconds, after = time.perf_counter() - begin, os.times()
    if child.returncode:
        sys.exit(f"{way} failed")
    *sums, mib, child_mib = (int(word) for word in said.split())
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return sums, (seconds, cpu, mib, child_mib)


def ask(way, path):
    """Asks, and prints the sums of the answer and the peaks of memory of this process and of its children in MiB."""
    import resource

    frame = WAYS[way](Path(path))
    rows = int(frame["messages"].sum()) if "messages" in frame else len(frame)
    peaks = [resource.getrusage(who).ru_maxrss >> 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(rows, int(frame["bytes"].sum()), *peaks)


def main():
    flags = argparse.ArgumentParser()
    for name in ("command", "store", "run"):
        flags.add_argument(name)
    flags.add_argument("rounds", type=int)
    flags.add_argument("--trace")
    flags.add_argument("--ways", default=",".join(WAYS))
    o = flags.parse_args()
    os.environ["COMMQ_COMMAND"] = o.command
    ways = [way for way in o.ways.split(",") if o.trace or way != "density_pipit"]
    taken, sums = {way: [] for way in ways}, {}
    for _ in range(o.rounds):
        for way in ways:
            sums[way], figures = measure(way, o.trace if way == "density_pipit" else os.path.join(o.store, o.run))
            taken[way].append(figures)
            print(way, *sums[way], *("%.3f" % f for f in figures), file=sys.stderr, flush=True)
    if len(set(map(tuple, sums.values()))) != 1:
        sys.exit(f"the answers differ: {sums}")
    print("| way | s | processor s | MiB | of it commq |\n|---|---|---|---|---|")
    for way in ways:
        seconds, cpu, mib, child = (statistics.median(f) for f in zip(*taken[way]))
        print(f"| {way} | {seconds:.2f} | {cpu:.2f} | {mib:.0f} | {child:.0f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        ask(*sys.argv[2:])
    else:
        main()
