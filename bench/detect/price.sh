#!/bin/sh
# price.sh MPI RANKS FOLDER BYTES ROUNDS: what commq detect says that MPI_Bcast would save of testdata/programs/broadcast.c by hand, beside what
# it saves: predicted from a capture of the one on a machine learnt by commq calibrate --launch, which has as many CPUs as this one,
# measured without capture by nine turns of both. A row of CSV, with seconds: mpi, ranks, bytes, rounds,
# measured by hand, called, saved, predicted by hand, called, saved; the last three are empty where ranks share CPUs.
set -e
mpi=$1 ranks=$2 folder=$3 bytes=$4 rounds=$5
mkdir -p "$folder"
export COMMQ_STORE="$folder/runs"
program="$folder/broadcast.$mpi"
mpicc.$mpi -O2 -g -o "$program" "$(dirname "$0")/../../testdata/programs/broadcast.c"
machine="$folder/$mpi.$ranks.yaml"
[ -e "$machine" ] || commq calibrate --launch --mpi $mpi -n $ranks --rounds 60 --max-bytes 67108864 --cpus-per-node "$(nproc)" -o "$machine" >"$folder/$mpi.$ranks.calibrate" 2>&1
[ "$rounds" -gt 0 ] || exit 0
run=$mpi.$ranks.$bytes
commq runs remove "$run" >/dev/null 2>&1 || true
commq capture --name "$run" -q --hash crc64 --mpi $mpi -n $ranks -- "$program" hand $bytes $rounds >/dev/null
rm -f "$folder/$run.hand" "$folder/$run.call"
for turn in 1 2 3 4 5 6 7 8 9; do
    for how in hand call; do
        mpirun.$mpi -n $ranks "$program" $how $bytes $rounds >>"$folder/$run.$how"
    done
done
median() { sort -n | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }
hand=$(median <"$folder/$run.hand") call=$(median <"$folder/$run.call")
commq detect --run "$run" --min-ranks 2 --machine "$machine" --format csv | awk -F, -v hand=$hand -v call=$call -v id="$mpi,$ranks,$bytes,$rounds" '
    NR > 1 && $(NF-1) == "" { print id "," hand "," call "," hand - call ",,," }
    NR > 1 && $(NF-1) != "" { print id "," hand "," call "," hand - call "," ($(NF-2) + $(NF-1)) / 1e9 "," $(NF-2) / 1e9 "," $(NF-1) / 1e9 }'
