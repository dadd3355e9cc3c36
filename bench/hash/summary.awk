# The table of bench/hash.md from the lines of run.sh. What hashing adds is the difference of two runs of the same round.
function sorted(list, v,    n, i, j, x) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) {
		x = v[i] + 0
		for (j = i - 1; j > 0 && v[j] + 0 > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
	return n
}
function at(list, q,    v, n, k) { # between the two that are nearest
	n = sorted(list, v)
	k = 1 + q * (n - 1)
	return v[int(k)] + (k - int(k)) * (v[int(k) < n ? int(k) + 1 : n] - v[int(k)])
}
function three(list,    f) {
	f = at(list, 0.5) < 1000 ? "%.1f (%.1f, %.1f)" : "%.0f (%.0f, %.0f)"
	return sprintf(f, at(list, 0.5), at(list, 0.25), at(list, 0.75))
}
NF == 6 {
	k = $2 " " $3
	if (!(k in seen)) {
		seen[k] = 1
		order[++cases] = k
	}
	crc[k] = crc[k] " " $5
	load = load " " $6
	last[$1] = $4
	if ($1 == "bare")
		bare[k] = bare[k] " " $4
	if ($1 == "none")
		none[k] = none[k] " " $4
	if ($1 == "crc64") {
		added[k] = added[k] " " $4 - last["none"]
		all[k] = all[k] " " ($4 - last["bare"]) / 3
		rounds[k]++
	}
}
END {
	printf "%d rounds; median (quartiles) in ns; load %.1f (%.1f, %.1f)\n\n", rounds[order[1]], at(load, 0.5), at(load, 0.25), at(load, 0.75)
	print "| type | bytes | Irecv, Send, Wait bare | with records | hashing adds | ISA-L alone | hashing / ISA-L | hashing, GB/s | all of capture, per call |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= cases; i++) {
		k = order[i]
		split(k, c, " ")
		h = at(added[k], 0.5)
		printf "| %s | %d | %s | %s | %s | %s | %.2f | %s | %s |\n", c[1], c[2], three(bare[k]), three(none[k]), three(added[k]), three(crc[k]),
			h / at(crc[k], 0.5), (h > 0 ? sprintf("%.1f", c[2] / h) : ""), three(all[k])
	}
}
