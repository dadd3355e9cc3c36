#!/bin/sh
# Virtual time against native time: bench/sim/native.sh ROUNDS PROGRAM.RANKS... > results
# PROGRAM.x in $COMMQ_NPB/openmpi is started on so many ranks and prints "Time in seconds". A round runs each once natively,
# with a simulator rank on the machine node.yaml, and the same beside two CPU hogs. Output: program, variant, round, seconds. Summarise:
# sort results | bench/sim/median.sh
set -e
rounds=$1
shift
commq=${COMMQ:-commq}
machine=$(cd "$(dirname "$0")" && pwd)/node.yaml
work=$(mktemp -d "${COMMQ_BENCH_DIR:-/tmp}/native.XXXXXX")
hogs=
trap 'kill $hogs 2>/dev/null; rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
seconds() { awk -v what="$1" '/Time in seconds/ {print what, $NF}'; }
for round in $(seq "$rounds"); do
	for b in "$@"; do
		n=${b##*.} program=$COMMQ_NPB/openmpi/${b%.*}.x
		timeout 900 mpirun.openmpi -n "$n" "$program" | seconds "$b native $round"
		for v in virtual hogs; do
			if [ $v = hogs ]; then
				for _ in 1 2; do
					(while :; do :; done) &
					hogs="$hogs $!"
				done
			fi
			rm -rf "$work/store"
			timeout 900 "$commq" capture -q --store "$work/store" --run r -n "$n" --sim-ranks 1 --machine "$machine" -- "$program" | seconds "$b $v $round"
			# shellcheck disable=SC2086
			kill $hogs 2>/dev/null || true
			hogs=
		done
	done
done
