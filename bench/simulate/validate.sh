#!/bin/sh
# Traces of a loaded machine against times of a dedicated one, under Open MPI:
#
#   bench/simulate/validate.sh BINARIES STORE ROUNDS PROGRAM.RANKS... > times
#   awk -f bench/simulate/validate.awk times
#
# BINARIES holds the programs (cg.B, or cg.B.x); STORE gets the runs and the machine, node.yaml, unless they are there. First the machine is
# calibrated and the programs are timed, ROUNDS times in turn, with "empty" (MPI_Init and MPI_Finalize) for each number of ranks;
# then each program is captured once with the CPU clock while two hogs run, and simulated. Output, a line each: "native PROGRAM.RANKS
# seconds" and "predicted PROGRAM.RANKS seconds". By environment: COMMQ (default commq), and QUIET, a command put before what wants the machine
# for itself. Run it on an idle machine.
set -e
binaries=$1 store=$2 rounds=$3
shift 3
commq=${COMMQ:-commq}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
mkdir -p "$store"
store=$(cd "$store" && pwd)
work=$(mktemp -d)
hogs=
# shellcheck disable=SC2086
trap 'kill $hogs 2>/dev/null; rm -rf "$work"' EXIT
echo '#include <mpi.h>
int main(int c, char **v) { MPI_Init(&c, &v); MPI_Finalize(); return 0; }' >"$work/empty.c"
mpicc.openmpi -O2 -o "$work/empty" "$work/empty.c"
if [ ! -e "$store/node.yaml" ]; then
	# messages and collectives as large as the programs'
	# shellcheck disable=SC2086
	$QUIET "$commq" calibrate --launch --mpi openmpi --rounds 60 --max-bytes 134217728 --cpus-per-node "$(nproc)" \
		--store "$store" --name calibration -o "$store/node.yaml" >&2
fi
program() {
	if [ "$1" = empty ]; then
		echo "$work/empty"
	elif [ -e "$binaries/$1" ]; then
		echo "$binaries/$1"
	else
		echo "$binaries/$1.x"
	fi
}
native() {
	start=$(date +%s%N)
	# shellcheck disable=SC2086
	$QUIET mpirun.openmpi -n "$2" "$(program "$1")" >"$work/out" 2>&1 || echo "$1 on $2 ranks: exit status $?" >&2
	end=$(date +%s%N)
	echo "native $1.$2 $(((end - start) / 1000000))" | awk '{print $1, $2, $3 / 1000}'
}
for round in $(seq "$rounds"); do
	echo "round $round" >&2
	for n in $(printf '%s\n' "$@" | sed 's/.*\.//' | sort -un); do
		native empty "$n"
	done
	for x in "$@"; do
		native "${x%.*}" "${x##*.}"
	done
done
for hog in 1 2; do
	yes >/dev/null &
	hogs="$hogs $!"
done
for x in "$@"; do
	[ -e "$store/$x" ] || "$commq" capture -q --store "$store" --name "$x" --hash none --clock cpu -n "${x##*.}" -- "$(program "${x%.*}")" >"$work/out" 2>&1
	"$commq" simulate --store "$store" --run "$x" --machine "$store/node.yaml" --format json |
		awk -v x="$x" '/"predicted_ns"/ {gsub(/[^0-9]/, "", $2); print "predicted", x, $2 / 1e9}'
done
