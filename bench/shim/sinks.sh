#!/bin/sh
# Compares the ways of keeping records: bench/shim/sinks.sh openmpi|mpich SHIM [rounds]. SHIM is the path that
# "commq capture build --mpi openmpi" prints. Each round runs the program bare, with records mapped as they are, and packed, with
# and without payload hashes. Output, a line a run: way, hash, ns of CPU time per call (median, least of ten rounds), bytes per call.
set -e
mpi=$1 shim=$2 rounds=${3:-21}
here=$(dirname "$0")
work=$(mktemp -d "${COMMQ_BENCH_DIR:-/tmp}/shim-sinks.XXXXXX")
trap 'rm -rf "$work"' EXIT
mpicc.$mpi -O2 -o "$work/self" "$here/self.c"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
calls=$((11 * 200000 * 3))
for round in $(seq "$rounds"); do
	for hash in none crc64; do
		for way in bare mmap packed; do
			so=$shim
			[ $way != bare ] || so=
			rm -rf "$work/spool"; mkdir "$work/spool"
			set -- $(mpirun.$mpi -n 1 env LD_PRELOAD="$so" COMMQ_SPOOL="$work/spool" COMMQ_HASH=$hash COMMQ_SINK=$way "$work/self" 8)
			bytes=$(find "$work/spool" -type f -printf '%s\n' | awk '{s += $1} END {print s + 0}')
			echo "$way $hash $3 $4 $bytes" | awk -v calls=$calls '{print $1, $2, $3 / 3, $4 / 3, $5 / calls}'
		done
	done
done
