#!/bin/sh
# Measures commq, mpiP and EZTrace side by side under Open MPI: bench/peers/run.sh ROUNDS [BENCH...] > results
# Benchmarks: self and pingpong (bench/shim), and any NPB code as cg.A.16 (default: self pingpong cg.A.16 lu.A.16). In each round
# every variant runs once, so that what else the machine does meets all alike. By environment variables:
#   COMMQ       the commq binary (default: commq in $PATH)
#   MPIP        libmpiP.so; without it mpiP is left out. EZTrace is left out where eztrace is not installed
#   NPB         folder with cg.A.x and the other codes that are asked for, built for Open MPI
#   VARIANTS    which to run (default: bare mpip eztrace commq-plain commq-sites commq again; again is bare once more: what differs
#               between the two is noise; commq-mapped has records in mapped files)
#   COMMQ_BENCH_DIR  folder for programs and records, on the disk to be measured (default: /tmp)
#   ITERATIONS  of self and pingpong per round (default: 20000)
# Output, a line per run: variant, benchmark, round, value, fastest, bytes on disk. value is ns per iteration (the median of ten
# in a run: of CPU time for self, which other work on the machine changes little, of time for pingpong) or seconds (NPB); fastest
# the shortest of the ten. Summarise with bench/peers/summary.awk.
set -e
rounds=$1
shift
[ $# -gt 0 ] || set -- self pingpong cg.A.16 lu.A.16
commq=${COMMQ:-commq}
iterations=${ITERATIONS:-20000}
variants=${VARIANTS:-bare mpip eztrace commq-plain commq-sites commq again}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${COMMQ_BENCH_DIR:-/tmp}/peers.XXXXXX")
trap 'rm -rf "$work"' EXIT
for p in self pingpong; do mpicc.openmpi -O2 -o "$work/$p" "$here/shim/$p.c"; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
shim=$("$commq" capture build --mpi openmpi)
cd "$work"

# wrapped VARIANT: the words that stand before the program in the launcher line
wrapped() {
	preload="env LD_PRELOAD=$shim COMMQ_SPOOL=$work/records"
	case $1 in
	bare | again) echo ;;
	mpip) echo "env LD_PRELOAD=$MPIP MPIP=-c" ;; # -c: the concise report, which is quicker to write at the end
	eztrace) echo "eztrace -t openmpi -o $work/records" ;;
	commq-plain) echo "$preload COMMQ_HASH=none COMMQ_STACK=0" ;;
	commq-sites) echo "$preload COMMQ_HASH=none" ;;
	commq) echo "$preload" ;;
	commq-mapped) echo "$preload COMMQ_SINK=mmap" ;;
	esac
}

for round in $(seq "$rounds"); do
	for b in "$@"; do
		for v in $variants; do
			[ "$v" = mpip ] && [ -z "$MPIP" ] && continue
			[ "$v" = eztrace ] && ! command -v eztrace >/dev/null && continue
			rm -rf records ./*.mpiP
			mkdir records
			case $b in
			self) n=1 program="./self 8 $iterations" ;;
			pingpong) n=2 program="./pingpong 8 $iterations" ;;
			*) n=${b##*.} program=$NPB/${b%.*}.x ;;
			esac
			# shellcheck disable=SC2046,SC2086
			timeout 600 mpirun.openmpi -n $n $(wrapped "$v") $program >out 2>err || echo "$v $b: exit status $?" >&2
			case $b in
			self) value=$(awk '$1 + 0 > 0 && NF == 3 {print $3, $1}' out) ;;
			pingpong) value=$(awk '$1 + 0 > 0 && NF == 3 {print $2, $1}' out) ;;
			*) value=$(awk '/SUCCESSFUL/ {ok = 1} /Time in seconds/ {t = $NF} END {print ok ? t " " t : "failed -"}' out) ;;
			esac
			bytes=$(cat $(find records . -maxdepth 1 -name '*.mpiP') /dev/null | wc -c)
			[ "$v" = mpip ] || bytes=$(find records -type f -printf '%s\n' | awk '{s += $1} END {print s + 0}')
			echo "$v $b $round $value $bytes"
		done
	done
done
