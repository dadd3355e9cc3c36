#!/usr/bin/env python3
"""Scores a predicted run against a captured one.

    score.py [--commq commq] [--store CAPTURED] [--predicted-store PREDICTED] PREDICTED_RUN CAPTURED_RUN
    score.py --store captured --predicted-store predicted stencil9.48 stencil9.48
    score.py --self-test

Runs are names in their stores, or folders. Point-to-point edges are pairs of world ranks (src, dst) with a message, those
to oneself too, collectives left out:
    precision   share of the predicted edges that exist; 1 where none is predicted
    recall      share of the existing edges that are predicted; 1 where none exists
    L1          sum over all edges of |predicted - captured|, divided by the captured sum; of messages and of bytes
    sizes L1    the same over (src, dst, bytes of the message): 0 only if every message has its size
Collectives are compared twice: the rows of 'commq query collectives' (operation, instances, bytes), and, stricter, for each
rank, operation, root and communicator (as the set of its world ranks) the calls and the bytes sent and received.

Prints one line of text, or JSON with --json. Exit status 0 where all is equal, 1 where something differs, 2 where it
could not be said.
"""
import argparse
import csv
import io
import json
import os
import subprocess
import sys

EDGES = """SELECT src, dst, bytes, CAST(COUNT(*) AS BIGINT) AS messages
FROM messages GROUP BY src, dst, bytes ORDER BY src, dst, bytes"""

COLLECTIVES = """WITH members AS (
  SELECT comm, string_agg(CAST(world_rank AS VARCHAR), ' ' ORDER BY world_rank) AS ranks
  FROM comms GROUP BY comm
)
SELECT e.rank, e.call, e.root_world, m.ranks, CAST(COUNT(*) AS BIGINT) AS calls,
       CAST(SUM(COALESCE(e.send_bytes, 0)) AS BIGINT) AS send_bytes, CAST(SUM(COALESCE(e.recv_bytes, 0)) AS BIGINT) AS recv_bytes
FROM events e LEFT JOIN members m ON m.comm = e.comm
WHERE e.class = 'collective'
GROUP BY e.rank, e.call, e.root_world, m.ranks
ORDER BY e.rank, e.call, e.root_world, m.ranks"""


def rows(commq, store, run, *question):
    """The rows of a query or of SQL as dictionaries of strings."""
    command = [commq, question[0], "--quiet", "--run", run, "--format", "csv", "--limit", "0"]
    if question[0] == "query":
        command.insert(2, question[1])
    if store:
        command += ["--store", store]
    command += question[2:] if question[0] == "query" else question[1:]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"score.py: {' '.join(command[:6])}: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def table(rows, keys, values):
    """Sums of the values by the keys."""
    out = {}
    for r in rows:
        k = tuple(r[c] for c in keys)
        old = out.setdefault(k, [0] * len(values))
        for i, v in enumerate(values):
            old[i] += int(r[v])
    return out


def l1(predicted, captured):
    """|predicted - captured| over the captured sum; 0 where both are empty and None where only the captured one is."""
    keys = predicted.keys() | captured.keys()
    off = sum(abs(predicted.get(k, 0) - captured.get(k, 0)) for k in keys)
    total = sum(captured.values())
    return off / total if total else (0.0 if off == 0 else None)


def read(commq, store, run):
    sizes = table(rows(commq, store, run, "sql", EDGES), ("src", "dst", "bytes"), ("messages",))
    density = rows(commq, store, run, "query", "density", "--collectives", "none")
    edges = table(density, ("src", "dst"), ("messages", "bytes"))
    summary = rows(commq, store, run, "query", "collectives")
    strict = table(rows(commq, store, run, "sql", COLLECTIVES), ("rank", "call", "root_world", "ranks"), ("calls", "send_bytes", "recv_bytes"))
    return {
        "messages": {k: v[0] for k, v in edges.items()},
        "bytes": {k: v[1] for k, v in edges.items()},
        "sizes": {k: v[0] for k, v in sizes.items()},
        "summary": {tuple(r.items()) for r in summary},
        "strict": strict,
    }


def score(p, c):
    """The scores of what was read of a predicted run p and a captured run c."""
    both = len(p["messages"].keys() & c["messages"].keys())
    return {
        "edges_predicted": len(p["messages"]),
        "edges_captured": len(c["messages"]),
        "edge_precision": both / len(p["messages"]) if p["messages"] else 1.0,
        "edge_recall": both / len(c["messages"]) if c["messages"] else 1.0,
        "messages_l1": l1(p["messages"], c["messages"]),
        "bytes_l1": l1(p["bytes"], c["bytes"]),
        "sizes_l1": l1(p["sizes"], c["sizes"]),
        "collectives_equal": p["summary"] == c["summary"],
        "collectives_differ": sorted(map(str, p["summary"] ^ c["summary"]))[:6],
        "collectives_strict_equal": p["strict"] == c["strict"],
        "collectives_strict_rows_differ": sum(p["strict"].get(k) != c["strict"].get(k) for k in p["strict"].keys() | c["strict"].keys()),
    }


def equal(s):
    return (s["edge_precision"] == s["edge_recall"] == 1 and s["messages_l1"] == s["bytes_l1"] == s["sizes_l1"] == 0
            and s["collectives_equal"] and s["collectives_strict_equal"])


def percent(x):
    return "none captured" if x is None else f"{100 * x:.3f} %"


def line(name, s):
    return (f"{name}: edges {s['edges_predicted']} of {s['edges_captured']}, precision {s['edge_precision']:.4f}, recall {s['edge_recall']:.4f}; "
            f"L1 messages {percent(s['messages_l1'])}, bytes {percent(s['bytes_l1'])}, sizes {percent(s['sizes_l1'])}; "
            f"collectives {'equal' if s['collectives_equal'] else 'DIFFER'}, by rank and communicator "
            f"{'equal' if s['collectives_strict_equal'] else 'DIFFER in ' + str(s['collectives_strict_rows_differ']) + ' rows'}")


def self_test():
    """A prediction by hand: edges 0-1 (3 messages, 30 bytes) right, 1-2 missed (1 of 10), 2-0 invented (2 of 8)."""
    c = {"messages": {("0", "1"): 3, ("1", "2"): 1}, "bytes": {("0", "1"): 30, ("1", "2"): 10},
         "sizes": {("0", "1", "10"): 3, ("1", "2", "10"): 1}, "summary": {1}, "strict": {1: 2}}
    p = {"messages": {("0", "1"): 3, ("2", "0"): 2}, "bytes": {("0", "1"): 30, ("2", "0"): 8},
         "sizes": {("0", "1", "10"): 3, ("2", "0", "4"): 2}, "summary": {1}, "strict": {1: 3}}
    s = score(p, c)
    assert s["edge_precision"] == s["edge_recall"] == 0.5, s
    assert s["messages_l1"] == 3 / 4 and s["bytes_l1"] == 18 / 40 and s["sizes_l1"] == 3 / 4, s
    assert s["collectives_equal"] and not s["collectives_strict_equal"] and s["collectives_strict_rows_differ"] == 1, s
    assert not equal(s) and equal(score(c, c))
    empty = {"messages": {}, "bytes": {}, "sizes": {}, "summary": set(), "strict": {}}
    assert equal(score(empty, empty)) and score(p, empty)["messages_l1"] is None and score(empty, c)["messages_l1"] == 1


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--commq", default=os.environ.get("COMMQ", "commq"))
    a.add_argument("--store", help="of the captured run, and of the predicted one unless it has its own")
    a.add_argument("--predicted-store")
    a.add_argument("--json", action="store_true")
    a.add_argument("--self-test", action="store_true")
    a.add_argument("runs", nargs="*", metavar="RUN")
    o = a.parse_args()
    if o.self_test:
        self_test()
        print("score.py: as computed by hand")
        return 0
    if len(o.runs) != 2:
        a.error("give the predicted run and the captured run")
    s = score(read(o.commq, o.predicted_store or o.store, o.runs[0]), read(o.commq, o.store, o.runs[1]))
    print(json.dumps({"run": o.runs[1], **s}) if o.json else line(o.runs[1], s))
    return 0 if equal(s) else 1


if __name__ == "__main__":
    sys.exit(main())
