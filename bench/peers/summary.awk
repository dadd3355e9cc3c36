# Medians and quartiles of bench/peers/run.sh's output: awk -f bench/peers/summary.awk results
function sort(a, n,   i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
}
function at(a, n, q,   p, i) { # by interpolation
	p = 1 + (n - 1) * q
	i = int(p)
	return i >= n ? a[n] : a[i] + (p - i) * (a[i + 1] - a[i])
}
NF == 6 && $4 != "failed" {
	key = $2 " " $1
	if (!(key in count)) order[++keys] = key
	n = ++count[key]
	value[key, n] = $4
	fast[key, n] = $5
	bytes[key] = $6
}
END {
	print "benchmark variant runs median q1 q3 fastest bytes"
	for (k = 1; k <= keys; k++) {
		key = order[k]
		n = count[key]
		for (i = 1; i <= n; i++) { a[i] = value[key, i]; f[i] = fast[key, i] }
		sort(a, n)
		sort(f, n)
		printf "%s %d %.4g %.4g %.4g %.4g %d\n", key, n, at(a, n, 0.5), at(a, n, 0.25), at(a, n, 0.75), f[1], bytes[key]
	}
}
