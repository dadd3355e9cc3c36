#!/bin/sh
# Measures what hashing adds to a send: bench/hash/run.sh [ROUNDS] [openmpi|mpich] > results; then
# awk -f bench/hash/summary.awk results prints the table. The variants run one after the other in each round, so that what else the
# machine does meets all alike. $SHIM is the capture library, by default what "commq capture build" makes of this source.
# Output: variant, type, bytes, ns of CPU time per iteration and per CRC of ISA-L, load; one line per run.
set -e
rounds=${1:-10} mpi=${2:-openmpi}
here=$(dirname "$0")
work=$(mktemp -d "${COMMQ_BENCH_DIR:-/tmp}/hash-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
shim=${SHIM:-$(go run "$here/../../cmd/commq" capture build --mpi "$mpi" | tail -n 1)}
[ -f "$shim" ] || { echo "run.sh: no capture library at \"$shim\": set SHIM to it" >&2; exit 2; }
mpicc.$mpi -O2 -o "$work/self" "$here/self.c" -ldl
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
for round in $(seq "$rounds"); do
	for case in "byte 8" "int 8" "byte 65536" "double 65536" "int 65536" "vector 65536" "byte 4194304" "double 4194304" "int 4194304"; do
		set -- $case
		for v in bare none crc64; do
			so=$shim hash=$v
			[ $v = bare ] && so= hash=none
			rm -rf "$work/spool"; mkdir "$work/spool"
			out=$(mpirun.$mpi -n 1 env LD_PRELOAD="$so" COMMQ_SPOOL="$work/spool" COMMQ_HASH=$hash "$work/self" "$2" "$1")
			echo "$v $1 $2 $out $(cut -d ' ' -f 1 /proc/loadavg)"
		done
	done
done
