#!/usr/bin/env python3
"""agree.py FOLDER: compares the calibrations FOLDER/*.json, and prints a CSV line for each number that was learnt: in how many calibrations
it was, its least, median and largest value, the largest low end and the least high end of its ranges, in how many ranges the median of all
lies, and how many pairs of ranges have a value in common. Exit status 1 unless all pairs do."""
import csv
import glob
import json
import statistics
import sys

SIZES = [0, 1024, 65536, 1048576]


def numbers(c):
    """The numbers of a calibration: name, value, low, high."""
    if c["cycle"]:
        yield "cycle_ns", c["cycle"]["ns"], c["cycle"]["low_ns"], c["cycle"]["high_ns"]
    for part in "intra_node", "network":
        fit = c[part]
        if fit:
            yield f"{part} latency_ns", fit["line"]["latency_ns"], fit["low"]["latency_ns"], fit["high"]["latency_ns"]
            for r in fit["residuals"]:
                if r["bytes"] in SIZES:
                    yield f"{part} ns of {r['bytes']} bytes", r["fit_ns"], r["fit_low_ns"], r["fit_high_ns"]
        links = c[part + "_contention"]
        for key in ("input_links", "output_links", "buses") if links else ():
            x = links[key]
            yield f"{part} {key}", x["number"] or 99, x["low"], x["high"] or 99
    t = c["eager_threshold"]
    if t:
        yield "eager_threshold_bytes", t["bytes"], t["eager_bytes"] + 1, t["bytes"]


def main():
    found = {}
    for name in sorted(glob.glob(sys.argv[1] + "/*.json")):
        with open(name) as f:
            for key, *values in numbers(json.load(f)):
                found.setdefault(key, []).append(values)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("number calibrations least median largest low_most high_least ranges_with_median pairs pairs_that_agree".split())
    bad = False
    for key, all in found.items():
        values = [v for v, _, _ in all]
        median = statistics.median(values)
        pairs = [(a, b) for i, a in enumerate(all) for b in all[:i]]
        agree = sum(max(a[1], b[1]) <= min(a[2], b[2]) for a, b in pairs)
        bad = bad or agree < len(pairs)
        number = lambda x: f"{x:.4g}"
        out.writerow([key, len(all), number(min(values)), number(median), number(max(values)), number(max(v[1] for v in all)),
                      number(min(v[2] for v in all)), sum(low <= median <= high for _, low, high in all), len(pairs), agree])
    return bad


if __name__ == "__main__":
    sys.exit(main())
