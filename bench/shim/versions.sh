#!/bin/sh
# Compares two capture libraries: bench/shim/versions.sh openmpi|mpich BEFORE AFTER [PAIRS]. Each pair runs the benchmark
# self once without a library, once with BEFORE and once with AFTER (paths as "commq capture build" prints them), in turn,
# so that what else the machine does meets all alike. Output: medians over the pairs of the CPU time per call in ns, of
# the fastest of ten rounds, without, with BEFORE and with AFTER, and the median of AFTER - BEFORE with its quartiles;
# then the least of all rounds, which other work disturbs least.
set -e
mpi=$1 before=$2 after=$3 pairs=${4:-21}
work=$(TMPDIR=${COMMQ_BENCH_DIR:-$TMPDIR} mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc.$mpi -O2 -o "$work/self" "$(dirname "$0")/self.c"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
for pair in $(seq "$pairs"); do
	line=
	order="bare before after"
	[ $((pair % 2)) = 0 ] && order="bare after before"
	for v in $order; do
		case $v in
		bare) so= ;;
		before) so=$before ;;
		after) so=$after ;;
		esac
		rm -rf "$work/spool"
		mkdir -m 700 "$work/spool"
		set -- $(mpirun.$mpi -n 1 env LD_PRELOAD="$so" COMMQ_SPOOL="$work/spool" "$work/self" 8 20000)
		line="$line $v $4"
	done
	echo "$line"
done | awk -v mpi="$mpi" '
	function median(a, n) { return (at(a, n, 0.5)) }
	function at(a, n, q,   i, j, t) {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
		return a[int(q * (n - 1) + 1.5)]
	}
	{
		for (i = 1; i < NF; i += 2) x[$i] = $(i + 1) / 3
		bare[NR] = x["bare"]; before[NR] = x["before"]; after[NR] = x["after"]; more[NR] = x["after"] - x["before"]
	}
	END {
		printf "%s: %d pairs, bare %.1f, before %.1f, after %.1f, more %.2f (%.2f to %.2f); least %.1f, %.1f, %.1f\n", mpi, NR, median(bare, NR),
			median(before, NR), median(after, NR), median(more, NR), at(more, NR, 0.25), at(more, NR, 0.75), bare[1], before[1], after[1]
	}'
