#!/bin/bash
# native.sh BINARIES STORE ROUNDS PROGRAM.RANKS... > table
# Simulated times against real ones, on at most as many ranks as CPUs. The machine is calibrated first (STORE/node.yaml). Each program
# (BINARIES/cg.W.x and so on, which print "Time in seconds") is run ROUNDS times in turn without commq, and captured with --clock cpu;
# the captures are simulated on the machine. COMMQ is commq, QUIET a command put before what wants the machine for itself.
# CSV: program; median seconds that it prints without commq and captured; real seconds of the captures from MPI_Init to
# MPI_Finalize and simulated ones: medians, least and largest; by how many percent the median simulated time is off.
set -e
binaries=$1 store=$2 rounds=$3
shift 3
commq=${COMMQ:-commq}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 COMMQ_STORE=$store
mkdir -p "$store"
# shellcheck disable=SC2086
[ -e "$store/node.yaml" ] || $QUIET "$commq" calibrate --launch --mpi openmpi -n "$(nproc)" --rounds 50 --max-bytes 16777216 \
	--run calibration -o "$store/node.yaml" >&2
for round in $(seq "$rounds"); do
	for x in "$@"; do
		# shellcheck disable=SC2086
		$QUIET mpirun.openmpi -n "${x##*.}" "$binaries/${x%.*}.x" | awk -v x="$x" '/Time in seconds/ {print "native", x, $NF}'
		# shellcheck disable=SC2086
		$QUIET "$commq" capture -q --name "$x.r$round" --hash none --clock cpu --mpi openmpi -n "${x##*.}" -- "$binaries/${x%.*}.x" |
			awk -v x="$x" '/Time in seconds/ {print "captured", x, $NF}'
	done
done >"$store/printed"
for x in "$@"; do
	for round in $(seq "$rounds"); do
		"$commq" simulate --run "$x.r$round" --machine "$store/node.yaml" --format json |
			awk -v x="$x" '/"predicted_ns"/ {gsub(/[^0-9]/, "", $2); print "predicted", x, $2 / 1e9}'
		"$commq" query scaling --run "$x.r$round" --measure runtime-ns --format csv |
			awk -F, -v x="$x" 'NR > 1 {print "real", x, $5 / 1e9}'
	done
done >"$store/times"
cat "$store/printed" "$store/times" | python3 -c '
import statistics, sys
t = {}
for line in sys.stdin:
    kind, x, s = line.split()
    t.setdefault(x, {}).setdefault(kind, []).append(float(s))
print("program,native_printed_s,captured_printed_s,real_s,real_least,real_largest,simulated_s,simulated_least,simulated_largest,off_percent")
for x, k in t.items():
    m = {kind: statistics.median(v) for kind, v in k.items()}
    r, p = k["real"], k["predicted"]
    print("%s,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%+.1f" % (x, m["native"], m["captured"], m["real"], min(r), max(r), m["predicted"],
        min(p), max(p), 100 * (m["predicted"] / m["real"] - 1)))
'
