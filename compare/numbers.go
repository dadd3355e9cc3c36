package compare

import "slices"

// Number is a value at a number of ranks.
type Number struct {
	Ranks int32
	*Value
}

// NumbersOfAll returns the values that are numbers and that every sample has, by measure and part, and the names of the
// measures of which some samples lack a part. What a run does not do is 0, so a sample lacks only what its run does not
// know.
func NumbersOfAll(samples []Sample) (all []Number, leftOut []string) {
	for _, key := range numberKeys(samples) {
		var values []Number
		for i := range samples {
			if v, known := samples[i].Find(key); known {
				values = append(values, Number{samples[i].Ranks, &v})
			}
		}
		switch {
		case len(values) == len(samples):
			all = append(all, values...)
		case len(values) > 0 && !slices.Contains(leftOut, values[0].Measure):
			leftOut = append(leftOut, values[0].Measure)
		}
	}
	return all, leftOut
}

// numberKeys are the keys of the values that are numbers, each once, but for that of the number of ranks.
func numberKeys(samples []Sample) (keys []string) {
	seen := map[string]bool{}
	for i := range samples {
		for k := range samples[i].Values {
			v := &samples[i].Values[k]
			if key := v.Key(); v.Unit != Fingerprint && v.Measure != "ranks" && !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}
