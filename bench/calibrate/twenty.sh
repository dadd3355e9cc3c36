#!/bin/sh
# twenty.sh OUT [N]: calibrates this machine N times (20) on as many ranks as it has CPUs, and prints with agree.py where the ranges of
# all calibrations have a value in common. OUT/*.json are the answers. COMMQ is the commq to use; HOGS starts that many processes
# that only compute beside each calibration, QUIET is a command put before commq,
# ROUNDS and BYTES are its --rounds and --max-bytes.
set -e
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
out=$1 n=${2:-20}
mkdir -p "$out"
hogs=
# shellcheck disable=SC2086
trap 'kill $hogs 2>/dev/null || true' EXIT
for _ in $(seq "${HOGS:-0}"); do
	(while :; do :; done) &
	hogs="$hogs $!"
done
for i in $(seq "$n"); do
	${QUIET:-} "${COMMQ:-commq}" calibrate --launch --mpi openmpi -n "$(nproc)" --rounds "${ROUNDS:-100}" --max-bytes "${BYTES:-4194304}" --format json >"$out/$i.json" 2>"$out/$i.log"
	echo "$(cut -d ' ' -f 1 /proc/loadavg)" >"$out/$i.load"
done
python3 "$(dirname "$0")/agree.py" "$out"
