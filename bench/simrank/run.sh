#!/bin/sh
# Measures commq simrank: run.sh [RUNS] [MILLIONS OF EVENTS]; prints the medians. The kinds take turns.
set -eu
runs=${1:-10} millions=${2:-5}
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/commq" ./cmd/commq
go build -o "$dir/bench" ./bench/simrank
for _ in $(seq "$runs"); do
	for kind in messages records collectives roundtrip; do
		"$dir/bench" -commq "$dir/commq" -kind "$kind" -millions "$millions" >>"$dir/$kind"
	done
done
for kind in messages records collectives roundtrip; do
	awk '{ for (i = 2; i <= NF; i++) { split($i, a, "="); v[a[1], NR] = a[2]; if (NR == 1) name[i] = a[1] } n = NF }
	function median(k,   i, j, t, s) {
		for (i = 1; i <= NR; i++) s[i] = v[k, i] + 0
		for (i = 1; i < NR; i++) for (j = i + 1; j <= NR; j++) if (s[j] < s[i]) { t = s[i]; s[i] = s[j]; s[j] = t }
		return NR % 2 ? s[(NR + 1) / 2] : (s[NR / 2] + s[NR / 2 + 1]) / 2
	}
	END { printf "%s", $1; for (i = 2; i <= n; i++) printf " %s=%.10g", name[i], median(name[i]); print "" }' "$dir/$kind"
done
