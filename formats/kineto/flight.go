package kineto

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"github.com/commq/commq/formats/jsonstream"
	"github.com/commq/commq/formats/training"
)

// flightEntry is an entry of a dump of the flight recorder.
type flightEntry struct {
	Group   []string `json:"process_group"`
	Name    string   `json:"profiling_name"`
	Seq     int64    `json:"collective_seq_id"`
	P2PSeq  int64    `json:"p2p_seq_id"`
	P2P     bool     `json:"is_p2p"`
	Created int64    `json:"time_created_ns"`
}

// readFlight reads a dump of the flight recorder.
func readFlight(path string) (entries []flightEntry, err error) {
	f, err := jsonstream.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = jsonstream.Object(f, "entries", func(d *json.Decoder) error {
		var e flightEntry
		if err := d.Decode(&e); err != nil {
			return err
		}
		entries = append(entries, e)
		return nil
	}, func(_ string, d *json.Decoder) error { return jsonstream.Skip(d) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	slices.SortStableFunc(entries, func(a, b flightEntry) int { return int(max(-1, min(1, a.Created-b.Created))) })
	return entries, nil
}

// slackNs is how far outside the call an entry may have been made: clocks are read one after the other.
const slackNs = 1000

// name gives the operations of a process the groups and numbers of the flight recorder: those of the entry of the same
// operation that was made during the call.
func (t *trace) name(entries []flightEntry) {
	used := make([]bool, len(entries))
	for i := range t.Ops {
		op := &t.Ops[i]
		from, to := t.baseNs+op.IssuedNs-slackNs, t.baseNs+op.ReturnedNs+slackNs
		k := sort.Search(len(entries), func(k int) bool { return entries[k].Created >= from })
		for ; k < len(entries) && entries[k].Created <= to; k++ {
			e := &entries[k]
			if used[k] || training.CallOf(e.Name) != op.Call || len(e.Group) == 0 {
				continue
			}
			used[k] = true
			description := ""
			if len(e.Group) > 1 {
				description = e.Group[1]
			}
			if op.Group == training.Unknown {
				op.Group = t.group(e.Group[0], description, nil)
			}
			if op.Seq == training.Unknown && !e.P2P {
				op.Seq = e.Seq
			}
			break
		}
	}
}
