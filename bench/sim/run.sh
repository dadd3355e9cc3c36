#!/bin/sh
# What simulator ranks cost in wall-clock time, beside an ordinary capture, under Open MPI: bench/sim/run.sh ROUNDS > results
# Each round runs every variant once: bare, capture (the default), sim1 and sim2 (1 and 2 simulator ranks). Programs:
# stream on 2 and on 4 ranks, ping-pong on 2. Output, a line per run: variant, program, round, ns per message (the median of ten),
# the shortest of the ten. By environment: COMMQ (the commq binary, default commq), ITERATIONS (default 20000), and MACHINE
# (default flat). Summarise with bench/sim/summary.awk.
set -e
rounds=$1
commq=${COMMQ:-commq}
iterations=${ITERATIONS:-20000}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${COMMQ_BENCH_DIR:-/tmp}/sim.XXXXXX")
trap 'rm -rf "$work"' EXIT
mpicc.openmpi -O2 -o "$work/stream" "$here/sim/stream.c"
mpicc.openmpi -O2 -o "$work/pingpong" "$here/shim/pingpong.c"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
cd "$work"
for round in $(seq "$rounds"); do
	for b in stream.2 stream.4 pingpong.2; do
		n=${b#*.} program="./${b%.*} 8 $iterations"
		for v in bare capture sim1 sim2; do
			rm -rf store
			case $v in
			# shellcheck disable=SC2086
			bare) timeout 600 mpirun.openmpi -n "$n" $program ;;
			capture) "$commq" capture -q --store store --name r -n "$n" -- $program ;;
			sim*) "$commq" capture -q --store store --name r -n "$n" --sim-ranks "${v#sim}" --machine "${MACHINE:-flat}" -- $program ;;
			esac >out 2>err || echo "$v $b: exit status $?" >&2
			awk -v v=$v -v b="$b" -v round="$round" 'NF >= 2 && $1 + 0 > 0 {print v, b, round, b ~ /pingpong/ ? $2 / 2 : $2, b ~ /pingpong/ ? $1 / 2 : $1}' out
		done
	done
done
