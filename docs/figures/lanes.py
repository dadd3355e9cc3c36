"""Draws the figures in which each rank is a row over time: lanes.py FOLDER writes FOLDER/NAME.svg for each.

A row has boxes (start, end, kind, text); between rows go arrows (row, time, row, time, text); a span is a length
under a row; a mark is a time through all rows. A row without a name is a heading. Times are in units of UNIT pixels.
"""

import html
import pathlib
import sys

LEFT, UNIT, ROW, BOX, TOP = 150, 56, 66, 30, 16
FILL = {
    "compute": "#e2e8f0", "mpi": "#fefcbf", "wait": "#feb2b2", "path": "#9ae6b4", "data": "#bee3f8", "text": "none",
    "gone": "#ffffff",
}
LETTER = 6.1  # the width of a letter, about

FIGURES = {}


def figure(name, title, rows, arrows=(), spans=(), marks=(), lines=()):
    FIGURES[name] = (title, rows, arrows, spans, marks, lines)


def draw(name, title, rows, arrows, spans, marks, lines):
    tops, y = [], TOP + (24 if marks else 0)
    for i, (label, _) in enumerate(rows):
        tops.append(y)
        y += 30 if label.startswith("#") else ROW if any(s[0] == i for s in spans) or crossed(i, arrows) else BOX + 14
    end = max(b[1] for _, boxes in rows for b in boxes)
    width, height = LEFT + int(end * UNIT) + 40, y + 18 * len(lines) + 6
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#1a202c" role="img">',
        f"<title>{html.escape(title)}</title>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#2b6cb0"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]

    def x(t):
        return round(LEFT + t * UNIT, 1)

    def text(at, y, words, anchor="middle", fill="#1a202c", size=12, weight="normal"):
        out.append(f'<text x="{at}" y="{y}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" font-weight="{weight}">'
                   f"{html.escape(words)}</text>")

    for t, words in marks:
        out.append(f'<line x1="{x(t)}" y1="{TOP + 8}" x2="{x(t)}" y2="{y - 6}" stroke="#718096" stroke-dasharray="4 3"/>')
        text(x(t), TOP + 2, words, fill="#4a5568")
    for (label, boxes), top in zip(rows, tops):
        if label.startswith("#"):
            text(8, top + 18, label[2:], "start", weight="bold")
            continue
        text(LEFT - 14, top + 20, label, "end")
        out.append(f'<line x1="{x(0)}" y1="{top + 15}" x2="{x(end)}" y2="{top + 15}" stroke="#cbd5e0"/>')
        for t0, t1, kind, words in boxes:
            if len(words) * LETTER > (t1 - t0) * UNIT:
                raise SystemExit(f"{name}: {words!r} does not fit into its box")
            if kind != "text":
                dash = ' stroke-dasharray="3 3"' if kind == "gone" else ""
                out.append(f'<rect x="{x(t0)}" y="{top}" width="{round((t1 - t0) * UNIT, 1)}" height="{BOX}" rx="4" '
                           f'fill="{FILL[kind]}" stroke="#4a5568"{dash}/>')
            text(x((t0 + t1) / 2), top + 19, words)
    for i, t0, t1, words in spans:
        at = tops[i] + BOX + 9
        out.append(f'<line x1="{x(t0)}" y1="{at}" x2="{x(t1)}" y2="{at}" stroke="#2b6cb0" marker-start="url(#a)" marker-end="url(#a)"/>')
        text(x((t0 + t1) / 2), at + 15, words, fill="#2c5282")
    for i, t0, j, t1, words in arrows:
        a, b = (tops[i] + BOX, tops[j]) if i < j else (tops[i], tops[j] + BOX)
        out.append(f'<line x1="{x(t0)}" y1="{a}" x2="{x(t1)}" y2="{b}" stroke="#2b6cb0" stroke-width="1.6" marker-end="url(#a)"/>')
        if abs(t1 - t0) * UNIT > 4 * abs(b - a):  # below a flat arrow
            text(x(t0) + 4, b - 5, words, "start", "#2c5282")
        else:
            text(x((t0 + t1) / 2) + 8, (a + b) / 2 + 4, words, "start", "#2c5282")
    for i, words in enumerate(lines):
        text(LEFT, y + 12 + 18 * i, words, "start")
    return "\n".join(out) + "\n</svg>\n"


def crossed(i, arrows):
    """Whether an arrow leaves the row downwards, or comes from below: then there is room under it."""
    return any(min(a[0], a[2]) <= i < max(a[0], a[2]) for a in arrows)


figure("capture", "What is written when, for one call", [
    ("program", [(0, 3, "compute", "computes"), (3, 7.5, "mpi", "MPI_Send(buf, 4, MPI_INT, 1, 9, comm)"), (7.5, 10, "compute", "computes")]),
    ("libcommq.so", [(3, 4.4, "data", "arguments"), (4.4, 6.1, "mpi", "PMPI_Send"), (6.1, 7.5, "data", "result")]),
    ("slot of 64 bytes", [(0, 3, "text", ""), (3.2, 5.2, "data", "no end time yet"), (6.3, 8.8, "data", "complete")]),
], arrows=[(1, 3.7, 2, 3.7, "clock: start"), (1, 6.8, 2, 6.8, "clock: end")], spans=[(0, 0, 3, "compute_ns")])

figure("rma", "One-sided communication is on the rows of the rank that calls", [
    ("rank 0, seq", [(0, 2, "mpi", "7 Win_create"), (2.4, 4.2, "mpi", "8 Win_lock"), (4.6, 6.6, "mpi", "9 Put to 2"), (7, 9, "mpi", "10 Win_unlock")]),
    ("rank 2, seq", [(0, 2, "mpi", "5 Win_create"), (2.4, 9, "compute", "computes; no row for what others put")]),
], arrows=[(0, 5.6, 1, 5.6, "send_peer 2, send_bytes 16")], lines=["init_seq of rows 8, 9 and 10 is 7, the row that made the window"])

figure("clocks", "The offset between two machines' clocks", [
    ("rank of machine B", [(0, 1.6, "data", "a: sent"), (6.4, 8, "data", "b: back")]),
    ("rank 0", [(3.2, 4.8, "data", "m: answered")]),
], arrows=[(0, 1.6, 1, 3.9, ""), (1, 4.1, 0, 6.4, "")],
    lines=["offset of B = (a + b)/2 - m, error at most (b - a)/2;", "of many tries the one with the shortest round trip counts"])

figure("matching", "The n-th send on a channel meets its n-th receive", [
    ("rank 0 sends", [(0, 2, "mpi", "to 1, tag 5"), (2.5, 4.5, "data", "to 1, tag 6"), (5, 7, "mpi", "to 1, tag 5")]),
    ("rank 1 receives", [(1, 3, "data", "from 0, tag 6"), (3.5, 5.5, "mpi", "from 0, tag 5"), (6, 9.5, "mpi", "MPI_ANY_TAG, got tag 5")]),
], arrows=[(0, 1, 1, 4.2, ""), (0, 3.5, 1, 2.2, ""), (0, 6, 1, 7.2, "")])

figure("wait-states", "Late sender, late receiver and wait at a collective", [
    ("# late sender", []),
    ("rank 0", [(0, 4, "compute", "computes"), (4, 5.4, "mpi", "Send")]),
    ("rank 1", [(0, 1.5, "compute", "computes"), (1.5, 4, "wait", "Recv waits"), (4, 5.8, "mpi", "Recv")]),
    ("# late receiver", []),
    ("rank 0", [(0, 1.5, "compute", "computes"), (1.5, 4, "wait", "Send waits"), (4, 5.8, "mpi", "Send")]),
    ("rank 1", [(0, 4, "compute", "computes"), (4, 5.8, "mpi", "Recv")]),
    ("# collective", []),
    ("rank 0", [(0, 2.2, "compute", "computes"), (2.2, 4.6, "wait", "Allreduce waits"), (4.6, 6, "mpi", "Allreduce")]),
    ("rank 1", [(0, 4.6, "compute", "computes"), (4.6, 6, "mpi", "Allreduce")]),
], arrows=[(1, 4, 2, 5, "s"), (5, 4, 4, 4, "p"), (8, 4.6, 7, 4.6, "needed")],
    spans=[(2, 1.5, 4, "wait = s - t1"), ])

figure("efficiency", "Useful time of each rank, its mean, its maximum, and the runtime", [
    ("rank 0: u = 6", [(0, 6, "compute", "useful"), (6, 10, "mpi", "MPI")]),
    ("rank 1: u = 8", [(0, 5, "compute", "useful"), (5, 6, "mpi", "MPI"), (6, 9, "compute", "useful"), (9, 10, "mpi", "MPI")]),
    ("rank 2: u = 4", [(0, 4, "compute", "useful"), (4, 10, "mpi", "MPI")]),
], marks=[(6, "mean(u) = 6"), (8, "max(u) = 8"), (10, "T = 10")],
    lines=["load balance 6/8 = 0.75, communication efficiency 8/10 = 0.8,", "their product is the parallel efficiency 6/10 = 0.6"])

figure("critical-path", "The walk goes back from the end and changes the rank where a call waited", [
    ("rank 0", [(0, 4, "path", "computes"), (4, 5, "mpi", "Send"), (5, 9, "compute", "computes"), (9, 10, "mpi", "Finalize")]),
    ("rank 1", [(0, 2, "compute", "computes"), (2, 4, "wait", "Recv waits"), (4, 5.6, "path", "transfer"), (5.6, 10, "path", "computes"), (10, 11.4, "mpi", "Finalize")]),
], arrows=[(1, 4.1, 0, 4.1, "the walk, back in time: to the late sender")], lines=["green: the critical path. Rank 1's first computing and rank 0's second are not on it."])

figure("diagnose", "A wait is explained by what the other rank did instead", [
    ("# as it was", []),
    ("rank 0", [(0, 2, "compute", "work"), (2, 6, "path", "more work"), (6, 7.4, "mpi", "Send"), (7.4, 9.4, "compute", "work")]),
    ("rank 1", [(0, 2, "compute", "work"), (2, 6, "wait", "Recv waits"), (6, 7.4, "mpi", "Recv"), (7.4, 11.4, "compute", "more work")]),
    ("# what if: the same work, after the send", []),
    ("rank 0", [(0, 2, "compute", "work"), (2, 3.4, "mpi", "Send"), (3.4, 7.4, "path", "more work"), (7.4, 9.4, "compute", "work")]),
    ("rank 1", [(0, 2, "compute", "work"), (2, 3.4, "mpi", "Recv"), (3.4, 7.4, "compute", "more work")]),
], arrows=[(1, 6, 2, 6.6, ""), (4, 2, 5, 2.6, "")], spans=[(2, 2, 6, "the wait: rank 0's more work"), (5, 9.4, 11.4, "gain")])

figure("time-model", "What a message and a collective cost", [
    ("# a message", []),
    ("sender", [(0, 2, "compute", "computes"), (2, 4.5, "compute", "goes on at once")]),
    ("network", [(2, 4, "data", "L"), (4, 7.5, "data", "S/B")]),
    ("receiver", [(0, 4.5, "compute", "computes"), (4.5, 7.5, "wait", "Recv waits"), (7.5, 9.5, "compute", "computes")]),
    ("# a collective", []),
    ("rank 0", [(0, 1.5, "compute", "computes"), (1.5, 4, "wait", "waits"), (4, 7.5, "data", "")]),
    ("rank 1", [(0, 4, "compute", "the last to enter"), (4, 5.9, "data", "FAN_IN"), (5.9, 7.5, "data", "FAN_OUT")]),
    ("rank 2", [(0, 2.5, "compute", "computes"), (2.5, 4, "wait", "waits"), (4, 7.5, "data", "")]),
], marks=[])

figure("simulator-ranks", "Virtual time: the send happens at t_x, the receiver sets its clock", [
    ("rank 0", [(0, 3, "compute", "computes: v grows"), (3, 4.6, "mpi", "Send at t_x")]),
    ("simulator rank", [(4.6, 7.4, "data", "finds D = L + S/B")]),
    ("rank 1", [(0, 2, "compute", "computes"), (2, 8, "wait", "Recv, entered at t1"), (8, 11.4, "path", "v = t3 = max(t1, t_x + D)")]),
], arrows=[(0, 4.2, 1, 5, "event (t_x, bytes, tag, destination)"), (1, 7, 2, 8, "event (t_x, D)"), (0, 3.3, 2, 3.3, "")],
    lines=["the program's own message goes from rank 0 to rank 1 as ever; what it really takes does not count"])

figure("long-jobs", "A killed command goes on from the last epoch it kept", [
    ("job 1", [(0, 2, "compute", "epochs 0-9"), (2, 4, "compute", "10-19"), (4, 5.2, "wait", "killed")]),
    ("folder", [(2, 3.4, "data", "kept: 9"), (4, 5.6, "data", "kept: 19")]),
    ("job 2, same line", [(6, 8, "compute", "20-29"), (8, 10, "compute", "30-39"), (10, 12, "path", "same digest")]),
], arrows=[(0, 2, 1, 2.2, ""), (0, 4, 1, 4.2, ""), (1, 5.4, 2, 6.2, "")])

figure("replace", "A broadcast by hand, and the call in its place", [
    ("# as it was", []),
    ("rank 0", [(0, 2, "compute", "computes"), (2, 4, "mpi", "Send to 1"), (4, 6, "mpi", "Send to 2"), (6, 8, "compute", "computes")]),
    ("rank 1", [(0, 2.5, "compute", "computes"), (2.5, 4.5, "mpi", "Recv from 0"), (4.5, 8, "compute", "computes")]),
    ("rank 2", [(0, 4, "compute", "computes"), (4, 6.5, "mpi", "Recv from 0"), (6.5, 8, "compute", "computes")]),
    ("# replaced", []),
    ("rank 0", [(0, 2, "compute", "computes"), (2, 4, "data", "Bcast"), (4, 6, "compute", "computes")]),
    ("rank 1", [(0, 2.5, "compute", "computes"), (2.5, 4, "data", "Bcast"), (4, 7.5, "compute", "computes")]),
    ("rank 2", [(0, 3.9, "compute", "computes"), (3.9, 5.4, "data", "Bcast"), (5.4, 7, "compute", "computes")]),
], arrows=[(1, 3, 2, 3.2, ""), (1, 5, 3, 5.4, "")])

figure("paraver", "One MPI_Send from rank 0 to rank 1 as records", [
    ("rank 0: events", [(2.2, 4.4, "data", "50000001 = call"), (5, 7, "data", "50000001 = 0")]),
    ("rank 0: states", [(0, 3, "compute", "1 running"), (3, 6, "mpi", "4 blocking send"), (6, 9, "compute", "1 running")]),
    ("rank 1: states", [(0, 4, "compute", "1 running"), (4, 7.4, "mpi", "3 waiting a message"), (7.4, 9, "compute", "1 running")]),
], arrows=[(1, 3, 2, 7.3, "communication record")])

figure("perfetto", "A late sender as slices: the message has a slice of its own", [
    ("rank 1: call", [(1, 8, "mpi", "MPI_Recv"), (0, 1, "text", "")]),
    ("rank 1: message", [(1, 4, "text", "waits for the sender"), (4, 8, "data", "32 KiB from rank 0")]),
    ("rank 0: call", [(4, 6, "mpi", "MPI_Send"), (0, 4, "text", "")]),
], arrows=[(2, 4.1, 1, 4.4, "arrow")])

if __name__ == "__main__":
    for name, content in FIGURES.items():
        (pathlib.Path(sys.argv[1]) / f"{name}.svg").write_text(draw(name, *content))
