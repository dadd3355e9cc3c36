#!/bin/bash
# first_look.sh OUT [PROGRAM...]: fits each program on its training runs, extrapolates to the held-out ones and scores them.
# COMMQ is the commq to be scored, STORE has the captured runs.
# OUT/table gets a line per program and held-out P: status of fit and extrapolate, the score, the verdict wanted; all output is kept.
COMMQ=${COMMQ:-commq} here=$(cd "$(dirname "$0")" && pwd) out=$1; shift
store=${STORE:-$here/store}
fit() { "$COMMQ" fit --store "$store" "${runs[@]}" -o "$models"; }
extrapolate() { "$COMMQ" predict --models "$models" --ranks "$p" --store "$out/store" --name "$name.$p"; }
mkdir -p "$out/store"; : > "$out/table"
grep -v '^#' "$here/programs.tsv" | while IFS=$'\t' read -r name training held verdict; do
	[ $# -gt 0 ] && [[ " $* " != *" $name "* ]] && continue
	runs=() models=$out/$name.models.json
	for p in $training; do runs+=(--run "$name.$p"); done
	fit > "$out/$name.fit" 2>&1 </dev/null; rc=$?
	for p in $held; do
		extrapolate > "$out/$name.$p.extrapolate" 2>&1 </dev/null; rx=$?
		s="no run"
		[ -d "$out/store/$name.$p" ] && s=$(python3 "$here/score.py" --commq "$COMMQ" --store "$store" --predicted-store "$out/store" "$name.$p" "$name.$p" 2>&1)
		echo "$name.$p	wanted $verdict	fit $rc	extrapolate $rx	warnings $(grep -ci warning "$out/$name.fit" "$out/$name.$p.extrapolate" | awk -F: '{n += $2} END {print n}')	$s" | tee -a "$out/table"
	done
done
