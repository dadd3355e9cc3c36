# Medians and quartiles of bench/sim/run.sh's output, and messages/s: awk -f bench/sim/summary.awk results
function sort(a, n,   i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
}
function at(a, n, q,   p, i) { # by interpolation
	p = 1 + (n - 1) * q
	i = int(p)
	return i >= n ? a[n] : a[i] + (p - i) * (a[i + 1] - a[i])
}
NF == 5 {
	key = $2 " " $1
	if (!(key in count)) order[++keys] = key
	n = ++count[key]
	value[key, n] = $4
}
END {
	print "program variant runs ns/message q1 q3 messages/s"
	for (k = 1; k <= keys; k++) {
		key = order[k]
		n = count[key]
		for (i = 1; i <= n; i++) a[i] = value[key, i]
		sort(a, n)
		printf "%s %d %.0f %.0f %.0f %.0f\n", key, n, at(a, n, 0.5), at(a, n, 0.25), at(a, n, 0.75), 1e9 / at(a, n, 0.5)
	}
}
