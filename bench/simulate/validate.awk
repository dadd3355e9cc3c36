# The table of bench/simulate/validate.sh: medians of the native times less those of "empty" on as many ranks, predicted times, error.
function median(of, n, i, j, t, v, count) {
	count = split(of, v, " ")
	for (i = 2; i <= count; i++)
		for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) {
			t = v[j]
			v[j] = v[j - 1]
			v[j - 1] = t
		}
	return count % 2 ? v[(count + 1) / 2] : (v[count / 2] + v[count / 2 + 1]) / 2
}
$1 == "native" {times[$2] = times[$2] " " $3}
$1 == "predicted" {
	predicted[$2] = $3
	order[++programs] = $2
}
END {
	print "| program | native s | dedicated s | predicted s | error |"
	print "|---|---|---|---|---|"
	for (i = 1; i <= programs; i++) {
		p = order[i]
		ranks = p
		sub(/.*\./, "", ranks)
		dedicated = median(times[p]) - median(times["empty." ranks])
		all = substr(times[p], 2)
		gsub(/ /, ", ", all)
		printf "| %s | %s | %.2f | %.2f | %+.1f %% |\n", p, all, dedicated, predicted[p], 100 * (predicted[p] / dedicated - 1)
	}
}
