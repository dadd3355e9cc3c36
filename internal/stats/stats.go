// Package stats has the statistics that several packages need.
package stats

import "slices"

// Median returns the median of the values, of which there must be at least one; for an even number of them the mean of
// the two in the middle.
func Median[T int64 | float64](values []T) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (float64(v[(n-1)/2]) + float64(v[n/2])) / 2
}
