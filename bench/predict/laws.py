#!/usr/bin/env python3
"""What the programs of exact patterns send, by arithmetic: compares it with every captured run of the store.

    COMMQ=commq STORE=store laws.py [RUN...]

Prints a line per run, exit status 1 where one differs. It shows that the laws that the README states are those of the runs.
"""
import os
import sys
from collections import Counter

import score

DIMS2 = {4: (2, 2), 6: (3, 2), 8: (4, 2), 9: (3, 3), 12: (4, 3), 16: (4, 4), 18: (6, 3), 24: (6, 4), 27: (9, 3), 30: (6, 5), 36: (6, 6), 48: (8, 6), 64: (8, 8)}
DIMS3 = {4: (2, 2, 1), 6: (3, 2, 1), 8: (2, 2, 2), 12: (3, 2, 2), 16: (4, 2, 2), 18: (3, 3, 2), 24: (4, 3, 2), 27: (3, 3, 3), 32: (4, 4, 2), 36: (4, 3, 3), 48: (4, 4, 3), 64: (4, 4, 4)}


def block(n, parts, at):
    return n // parts + (at < n % parts)


def stencil9(p):
    d, out = DIMS2[p], Counter()
    for x in range(d[0]):
        for y in range(d[1]):
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    if (dx or dy) and 0 <= x + dx < d[0] and 0 <= y + dy < d[1]:
                        cells = (1 if dx else block(100, d[0], x)) * (1 if dy else block(84, d[1], y))
                        out[x * d[1] + y, (x + dx) * d[1] + y + dy, 8 * cells] += 20
    return out


def heat3d(p):
    d, out = DIMS3[p], Counter()
    for r in range(p):
        at = (r // (d[1] * d[2]), r // d[2] % d[1], r % d[2])
        n = [block(m, g, a) for m, g, a in zip((48, 40, 36), d, at)]
        for a in range(3):
            for by in (-1, 1):
                to = list(at)
                to[a] = (to[a] + by) % d[a]
                out[r, (to[0] * d[1] + to[1]) * d[2] + to[2], 8 * n[0] * n[1] * n[2] // n[a]] += 12
    return out


def trees(p):
    out, n = Counter(), 96 * 8
    for r in range(p):
        bit = 1
        while bit < p:
            if r % (2 * bit) == 0:
                out[r, r + bit, n] += 8
                out[r + bit, r, n] += 8
            out[r, r ^ bit, n] += 8
            out[r, r ^ bit, n * bit] += 8
            bit *= 2
        out[r, (r + 1) % p, 128] += 48
    return out


def sweep(p):
    d, out = DIMS2[p], Counter()
    for x in range(d[0]):
        for y in range(d[1]):
            for by in (-1, 1):
                if 0 <= x + by < d[0]:
                    out[x * d[1] + y, (x + by) * d[1] + y, 4 * 4 * block(54, d[1], y)] += 8 * 4 * 3
                if 0 <= y + by < d[1]:
                    out[x * d[1] + y, x * d[1] + y + by, 4 * 4 * block(60, d[0], x)] += 8 * 4 * 3
    return out


def vcycle(p):
    out = Counter()
    before = 0
    for level in range(7):
        stride, n = max(1, p * 2**level // 64), 256 >> level
        times = 4 * (20 if level == 6 else 5) + (5 if level == 0 else 0)
        for r in range(0, p, stride):
            for by in (-stride, stride):
                out[r, (r + by) % p, 8 * n] += times
            if level > 0 and stride > before:
                out[r + before, r, 8 * n * (n * before // p)] += 4
                out[r, r + before, 8 * n * (n * before // p)] += 4
        before = stride
    return out


def strips(p):
    out = Counter()
    for r in range(p - 1):
        out[r, r + 1, 1024] += 90
        out[r + 1, r, 1024] += 90
    return out


def cannon(p, layers=1):
    q, out = round((p / layers) ** 0.5), Counter()
    bytes = 8 * (-(-200 // q)) ** 2
    for l in range(layers):
        begin, end = l * q // layers, (l + 1) * q // layers
        for y in range(q):
            for x in range(q):
                here = l * q * q + y * q + x
                for by, times in ((y + begin, 1), (1, end - begin - 1)):
                    if times > 0:
                        out[here, l * q * q + y * q + (x - by) % q, bytes] += times
                for by, times in ((x + begin, 1), (1, end - begin - 1)):
                    if times > 0:
                        out[here, l * q * q + (y - by) % q * q + x, bytes] += times
    return out


def oddeven(p):
    out = Counter()
    for phase in range(p):
        for r in range(p):
            partner = r + 1 if (phase + r) % 2 == 0 else r - 1
            if 0 <= partner < p:
                out[r, partner, 8 * -(-5000 // p)] += 1
    for r in range(p - 1):
        out[r, r + 1, 8] += 1
    return out


LAWS = {"stencil9": stencil9, "heat3d": heat3d, "trees": trees, "sweep": sweep, "vcycle": vcycle, "strips": strips, "cannon": cannon,
        "cannon-25d": lambda p: cannon(p, 2), "oddeven": oddeven, "pencils": lambda p: Counter(), "summa": lambda p: Counter()}


def main():
    commq, store = os.environ.get("COMMQ", "commq"), os.environ.get("STORE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "store")
    bad = 0
    runs = sys.argv[1:] or sorted(os.listdir(store), key=lambda r: (r.split(".")[0], int(r.split(".")[1])))
    for run in runs:
        name, p = run.split(".")
        if name not in LAWS:
            continue
        got = {(int(r["src"]), int(r["dst"]), int(r["bytes"])): int(r["messages"]) for r in score.rows(commq, store, run, "sql", score.EDGES)}
        want = dict(LAWS[name](int(p)))
        off = [k for k in got.keys() | want.keys() if got.get(k) != want.get(k)]
        bad += bool(off)
        print(f"{run}: {len(want)} of (src, dst, bytes), {sum(want.values())} messages, {'as computed' if not off else f'{len(off)} DIFFER'}",
              *[f"{k} captured {got.get(k)} computed {want.get(k)}" for k in sorted(off)[:4]])
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
