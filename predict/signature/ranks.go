package signature

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Ranks is a list of ranks. In JSON it is a string of ranges separated by commas: rank, first-last or first-last:step.
type Ranks []int32

// MarshalJSON writes the string.
func (r Ranks) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// String returns the list as ranges.
func (r Ranks) String() string {
	var parts []string
	for i := 0; i < len(r); {
		n := 1 // ranks in the range
		step := int32(0)
		if i+1 < len(r) {
			step = r[i+1] - r[i]
		}
		for step > 0 && i+n < len(r) && r[i+n]-r[i+n-1] == step {
			n++
		}
		switch {
		case n < 3 && !(n == 2 && step == 1):
			parts, n = append(parts, strconv.Itoa(int(r[i]))), 1
		case step == 1:
			parts = append(parts, fmt.Sprintf("%d-%d", r[i], r[i+n-1]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d:%d", r[i], r[i+n-1], step))
		}
		i += n
	}
	return strings.Join(parts, ",")
}

// index returns the position of each world rank in the list.
func (r Ranks) index() map[int32]int32 {
	m := make(map[int32]int32, len(r))
	for i, world := range r {
		m[world] = int32(i)
	}
	return m
}

// maxRanks is the largest number of ranks that a string is allowed to expand to.
const maxRanks = 1 << 26

// UnmarshalJSON reads the string.
func (r *Ranks) UnmarshalJSON(raw []byte) error {
	var t string
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	*r = nil
	if t == "" {
		return nil
	}
	for part := range strings.SplitSeq(t, ",") {
		first, last, step, err := parseRange(part)
		if err != nil {
			return fmt.Errorf("ranks %q: %q: %w", t, part, err)
		}
		if (int64(last)-int64(first))/int64(step)+int64(len(*r)) >= maxRanks {
			return fmt.Errorf("ranks %q: more than %d", t, maxRanks)
		}
		for x := int64(first); x <= int64(last); x += int64(step) {
			*r = append(*r, int32(x))
		}
	}
	return nil
}

// parseRange reads first, first-last or first-last:step. Only a single rank may be negative.
func parseRange(part string) (first, last, step int32, err error) {
	number := func(t string) int32 {
		n, e := strconv.ParseInt(t, 10, 32)
		if e != nil && err == nil {
			err = fmt.Errorf("want a rank, or first-last, or first-last:step")
		}
		return int32(n)
	}
	from, to, isRange := strings.Cut(part, "-")
	if !isRange || from == "" {
		first = number(part)
		return first, first, 1, err
	}
	to, by, stepped := strings.Cut(to, ":")
	first, last, step = number(from), number(to), 1
	if stepped {
		step = number(by)
	}
	if err == nil && (last < first || step < 1) {
		err = fmt.Errorf("want first <= last and a step of at least 1")
	}
	return first, last, step, err
}
