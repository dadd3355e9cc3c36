package kineto

import (
	"encoding/json"
	"strconv"
	"strings"
)

// event is an event of the trace. Numbers stay text where a float64 would lose digits.
type event struct {
	Phase    string          `json:"ph"`
	Category string          `json:"cat"`
	Name     string          `json:"name"`
	Process  json.RawMessage `json:"pid"`
	Thread   json.RawMessage `json:"tid"`
	Start    json.RawMessage `json:"ts"`
	Length   json.RawMessage `json:"dur"`
	Args     json.RawMessage `json:"args"`
}

// arguments are the arguments that are read, of host calls and kernels.
type arguments struct {
	ExternalID  json.RawMessage `json:"External id"`
	FunctionID  json.RawMessage `json:"Record function id"`
	Correlation json.RawMessage `json:"correlation"`
	Stream      json.RawMessage `json:"stream"`
	Dims        json.RawMessage `json:"Input Dims"`
	Types       json.RawMessage `json:"Input type"`
	Inputs      json.RawMessage `json:"Concrete Inputs"`

	Collective  string          `json:"Collective name"`
	In          json.RawMessage `json:"In msg nelems"`
	Out         json.RawMessage `json:"Out msg nelems"`
	InSplit     json.RawMessage `json:"In split size"`
	OutSplit    json.RawMessage `json:"Out split size"`
	Type        string          `json:"dtype"`
	GroupName   json.RawMessage `json:"Process Group Name"`
	GroupID     json.RawMessage `json:"Process Group ID"` // of older versions
	Description string          `json:"Process Group Description"`
	GroupRanks  json.RawMessage `json:"Process Group Ranks"`
	GroupSize   json.RawMessage `json:"Group size"`
	First       json.RawMessage `json:"Global rank start"`
	Stride      json.RawMessage `json:"Global rank stride"`
	Source      json.RawMessage `json:"Src Rank"`
	Destination json.RawMessage `json:"Dst Rank"`
	Seq         json.RawMessage `json:"Seq"`
}

// plain returns a number or a string of JSON without quotes.
func plain(raw json.RawMessage) string {
	s := string(raw)
	if strings.HasPrefix(s, `"`) {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
	}
	if s == "null" {
		return ""
	}
	return s
}

// integer returns a number that may be in quotes; or if there is none.
func integer(raw json.RawMessage, or int64) int64 {
	n, err := strconv.ParseInt(plain(raw), 10, 64)
	if err != nil {
		return or
	}
	return n
}

// integers returns a list of numbers, which may be in quotes as a whole. Lists that were cut short end in "..."; they
// are not complete, and nil.
func integers(raw json.RawMessage) (list []int64) {
	text := strings.TrimSpace(plain(raw))
	if !strings.HasPrefix(text, "[") || strings.Contains(text, "...") {
		return nil
	}
	for word := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// mostMicroseconds is a time after which none is believed, some 120 years, and leastMicroseconds one before which.
const mostMicroseconds, leastMicroseconds = 4e15, -1e15

// nanoseconds returns a time in microseconds with decimals as ns, digit by digit: a float64 has not enough of them.
func nanoseconds(raw json.RawMessage) (int64, bool) {
	text := plain(raw)
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.ContainsAny(text, "eE") {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x < mostMicroseconds && x > leastMicroseconds) {
			return 0, false
		}
		return int64(x * 1000), true
	}
	us, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || us > mostMicroseconds || us < leastMicroseconds {
		return 0, false
	}
	ns, err := strconv.ParseUint((fraction + "000")[:3], 10, 32)
	if err != nil {
		return 0, false
	}
	if strings.HasPrefix(whole, "-") {
		return us*1000 - int64(ns), true
	}
	return us*1000 + int64(ns), true
}

// tensors returns the numbers of elements of the tensors in a list of dimensions, one for each argument; arguments
// that are lists of tensors count as the sum. An argument that is no tensor has -1.
func tensors(raw json.RawMessage) (elements []int64) {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for _, one := range all {
		elements = append(elements, tensor(one))
	}
	return elements
}

func tensor(raw json.RawMessage) int64 {
	var dims []int64
	if json.Unmarshal(raw, &dims) == nil {
		if len(dims) == 0 {
			return -1
		}
		return product(dims)
	}
	var list [][]int64
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return -1
	}
	sum := int64(0)
	for _, dims := range list {
		sum += product(dims)
		if sum > mostElements {
			return -1
		}
	}
	return sum
}

// mostElements is more than any tensor has.
const mostElements = 1 << 48

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		if d < 0 || d > mostElements {
			return -1
		}
		if n *= d; n > mostElements {
			return -1
		}
		if n == 0 {
			return 0
		}
	}
	return n
}

// texts returns a list of texts.
func texts(raw json.RawMessage) (list []string) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
