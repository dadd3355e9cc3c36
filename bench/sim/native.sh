#!/bin/sh
# Virtual time against native time: bench/sim/native.sh ROUNDS PROGRAM.RANKS... > results
# PROGRAM.x in $COMMQ_NPB/openmpi is started on so many ranks and prints "Time in seconds". A round runs each program in each of
# $VARIANTS once: native, without commq; virtual, with a simulator rank on the machine $MACHINE (default node.yaml); hogs, the
# same beside two processes that only compute; core, the same with all processes on one core. Output: program, variant, round,
# seconds. Summarise: bench/sim/median.sh results
set -e
rounds=$1
shift
commq=${COMMQ:-commq}
machine=${MACHINE:-$(cd "$(dirname "$0")" && pwd)/node.yaml}
work=$(mktemp -d "${COMMQ_BENCH_DIR:-/tmp}/native.XXXXXX")
hogs=
trap 'kill $hogs 2>/dev/null; rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
for round in $(seq "$rounds"); do
	for b in "$@"; do
		n=${b##*.} program=$COMMQ_NPB/openmpi/${b%.*}.x
		for v in ${VARIANTS:-native virtual hogs}; do
			on=
			case $v in
			hogs)
				for _ in 1 2; do
					(while :; do :; done) &
					hogs="$hogs $!"
				done ;;
			core) on="taskset -c 0" ;;
			esac
			rm -rf "$work/store"
			if [ $v = native ]; then
				timeout 900 mpirun.openmpi -n "$n" "$program"
			else
				# shellcheck disable=SC2086
				timeout 900 $on "$commq" capture -q --store "$work/store" --name r -n "$n" --sim-ranks 1 --machine "$machine" -- "$program"
			fi | awk -v what="$b $v $round" '/Time in seconds/ {print what, $NF}'
			# shellcheck disable=SC2086
			[ -z "$hogs" ] || kill $hogs
			hogs=
		done
	done
done
