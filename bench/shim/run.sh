#!/bin/sh
# Measures what the shim adds to a call: bench/shim/run.sh openmpi|mpich SHIM [rounds]. SHIM is the path that
# "commq capture build --mpi openmpi" prints. The variants run one after the other in each round, so that what else the machine
# does meets all alike. Output: variant, benchmark, ns per iteration (the median of a run's rounds), one line per run.
set -e
mpi=$1 shim=$2 rounds=${3:-10}
here=$(dirname "$0")
work=$(mktemp -d "${COMMQ_BENCH_DIR:-/tmp}/shim-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
for p in self pingpong; do mpicc.$mpi -O2 -o "$work/$p" "$here/$p.c"; done
mpicc.$mpi -O2 -fPIC -shared -o "$work/empty.so" "$here/floor.c"
mpicc.$mpi -O2 -fPIC -shared -DRECORD -o "$work/record.so" "$here/floor.c"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
for round in $(seq "$rounds"); do
	for v in bare empty record shim stack0 stack4; do # shim: with the return address; stackN: N frames of a call site
		stack=1
		case $v in
		bare) so= ;;
		shim) so=$shim ;;
		stack*) so=$shim stack=${v#stack} ;;
		*) so=$work/$v.so ;;
		esac
		for b in self pingpong; do
			rm -rf "$work/spool"; mkdir "$work/spool"
			n=1; [ $b = pingpong ] && n=2
			set -- $(mpirun.$mpi -n $n env LD_PRELOAD="$so" COMMQ_SPOOL="$work/spool" COMMQ_STACK=$stack "$work/$b" 8)
			echo "$v $b $2"
		done
	done
done
