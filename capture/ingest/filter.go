package ingest

import (
	"fmt"
	"path"
	"strings"

	"github.com/commq/commq/schema"
)

// selection says which rows are written. It is applied after matching: a row that is left out has still met its partner.
type selection struct {
	record string
	calls  []bool // by CallID: kept; nil: all are
	// switched says that MPI_Pcontrol switched recording off on some rank.
	switched bool
}

// CheckCalls sees to it that the patterns of Options.Calls are such and name MPI calls; the error says which does not.
func CheckCalls(patterns []string) error {
	_, err := keptCalls(patterns)
	return err
}

// keptCalls are the calls that the patterns keep, by id; nil: all.
func keptCalls(patterns []string) ([]bool, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	kept := make([]bool, len(schema.Calls))
	out := make([]bool, len(schema.Calls))
	some := false
	for _, p := range patterns {
		name, without := strings.CutPrefix(p, "-")
		list := kept
		if without {
			list = out
		}
		some = some || !without
		if err := mark(list, name); err != nil {
			return nil, fmt.Errorf("calls %q: %w", p, err)
		}
	}
	for i := range kept {
		kept[i] = (kept[i] || !some) && !out[i]
	}
	return kept, nil
}

// mark sets the calls whose names match.
func mark(calls []bool, pattern string) error {
	found := false
	for i := range schema.Calls {
		ok, err := path.Match(pattern, schema.Calls[i].Name)
		if err != nil {
			return fmt.Errorf("not a pattern: %w", err)
		}
		if ok {
			calls[i], found = true, true
		}
	}
	if !found {
		return fmt.Errorf("no MPI call has such a name; patterns are like MPI_Isend or MPI_I*")
	}
	return nil
}

// setSelection is called when the first pass is done.
func (j *job) setSelection() (err error) {
	j.sel = selection{record: j.o.Record}
	for _, r := range j.ranks {
		j.sel.switched = j.sel.switched || r.switched
	}
	j.sel.calls, err = keptCalls(j.o.Calls)
	return err
}

// filters says whether rows are left out beyond what record says.
func (s *selection) filters() bool { return s.calls != nil || s.switched }

// atOnce says that not all rows are written, and that it is known in the first pass which.
func (s *selection) atOnce() bool {
	return s.record == RecordCollectives || s.record == RecordAll && s.filters()
}

// filters are the manifest's words for what is left out.
func (j *job) filters() []string {
	var words []string
	if j.sel.switched {
		words = append(words, "pcontrol")
	}
	for _, p := range j.o.Calls {
		if name, without := strings.CutPrefix(p, "-"); without {
			words = append(words, "-call:"+name)
		} else {
			words = append(words, "call:"+p)
		}
	}
	return words
}

// isHidden says whether a filter leaves the row out.
func (d *decoder) isHidden(r *schema.Event) bool {
	return d.off || d.sel.calls != nil && !d.sel.calls[r.Call]
}

// hide notes whether a filter leaves the row out, which then has no parts.
func (d *decoder) hide(r *schema.Event) {
	if d.hidden == nil || !d.isHidden(r) {
		return
	}
	d.hidden[d.n] = true
	for n := len(d.parts); n > 0 && d.parts[n-1].seq == r.Seq; n = len(d.parts) {
		d.parts = d.parts[:n-1]
	}
}

// wanted says whether a row is kept, whatever it completes.
func (d *decoder) wanted(r *schema.Event) bool {
	if d.keep == nil {
		return true
	}
	wanted := d.recorded(r) && !d.isHidden(r)
	if wanted {
		d.keep[d.n] = true
	}
	return wanted
}

// recorded says whether record keeps the row.
func (d *decoder) recorded(r *schema.Event) bool {
	class := schema.Class(r.Class)
	switch d.sel.record {
	case RecordMessages:
		if r.ErrorClass != schema.NullInt32 || r.EndNs == schema.NullInt64 || d.unknown[r.Seq] {
			return true
		}
		o := ops[r.Call]
		return !pointToPoint(class) && o != opSendInit && o != opRecvInit && o != opReady
	case RecordCollectives:
		o := ops[r.Call]
		return !pointToPoint(class) && o != opSendInit && o != opRecvInit && o != opReady
	}
	return true
}

func pointToPoint(c schema.Class) bool {
	switch c {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv, schema.ClassProbe, schema.ClassComplete:
		return true
	}
	return false
}
