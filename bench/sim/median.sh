#!/bin/sh
# Medians and ranges of lines "program variant round value": program variant median least most.
sort -k1,2 -k4,4g "$@" | awk 'function out() {if (n) print key, n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2, v[1], v[n]}
$1 " " $2 != key {out(); n = 0; key = $1 " " $2} {v[++n] = $4} END {out()}'
