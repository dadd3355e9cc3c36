"""Writes a run as an OTF2 trace: to_otf2.py COMMQ RUN FOLDER

Of each rank the MPI calls (Enter and Leave), and of each message one record on either side as Score-P and EZTrace have them: at the
start of the send, and at the end of the call that completed the receive. Peers are ranks of the communicator, as OTF2 defines them. A
ProgramBegin at time 0 and a ProgramEnd make the trace end with a whole number of BINS steps, those of commq query over-time.
"""
import csv
import io
import subprocess
import sys

import otf2

BINS = 50


def ask(commq, run, sql):
    out = subprocess.run([commq, "sql", "--run", run, "--format", "csv", sql], check=True, capture_output=True, text=True).stdout
    return csv.DictReader(io.StringIO(out))


def main(commq, run, folder):
    regions, communicators, records = {}, {}, {}
    for row in ask(commq, run, "SELECT rank, call, start_ns, end_ns FROM events ORDER BY rank, seq"):
        at = records.setdefault(int(row["rank"]), [])
        at.append((int(row["start_ns"]), 0, "enter", row["call"]))
        at.append((int(row["end_ns"]), 2, "leave", row["call"]))
    for row in ask(commq, run, """SELECT m.src, m.dst, m.comm, m.tag, m.bytes, m.send_start_ns, m.recv_end_ns, s.comm_rank AS sender, r.comm_rank AS receiver
            FROM messages m
            JOIN comms s ON s.comm = m.comm AND s.world_rank = m.src AND s.remote = 0
            JOIN comms r ON r.comm = m.comm AND r.world_rank = m.dst AND r.remote = 0"""):
        comm, tag, size = int(row["comm"]), int(row["tag"]), int(row["bytes"])
        records[int(row["src"])].append((int(row["send_start_ns"]), 1, "send", (int(row["receiver"]), comm, tag, size)))
        records[int(row["dst"])].append((int(row["recv_end_ns"]), 1, "recv", (int(row["sender"]), comm, tag, size)))
    last = max(ns for at in records.values() for ns, *_ in at)
    with otf2.writer.open(folder, timer_resolution=10**9) as trace:
        define = trace.definitions
        node = define.system_tree_node("machine", class_name="machine")
        locations = [define.location("Master thread", group=define.location_group("MPI Rank %d" % rank, system_tree_parent=node))
                     for rank in range(len(records))]
        define.group("locations", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=otf2.Paradigm.MPI, members=locations)
        world = define.group("world", group_type=otf2.GroupType.COMM_GROUP, paradigm=otf2.Paradigm.MPI, members=list(range(len(records))))
        for rank in sorted(records):
            out = trace.event_writer_from_location(locations[rank])
            records[rank].sort(key=lambda r: r[:2])  # sorts are stable: calls of one time keep their order
            if rank == 0:
                out.program_begin(0, "run", [])
            for ns, _, kind, what in records[rank]:
                if kind in ("enter", "leave"):
                    if what not in regions:
                        regions[what] = define.region(what, paradigm=otf2.Paradigm.MPI)
                    (out.enter if kind == "enter" else out.leave)(ns, regions[what])
                    continue
                peer, comm, tag, size = what
                if comm not in communicators:
                    communicators[comm] = define.comm("comm %d" % comm, world)
                (out.mpi_send if kind == "send" else out.mpi_recv)(ns, peer, communicators[comm], tag, size)
            if rank == 0:
                out.program_end((last // BINS + 1) * BINS, 0)
    print(sum(len(r) for r in records.values()), "records of", len(records), "ranks")


main(*sys.argv[1:])
