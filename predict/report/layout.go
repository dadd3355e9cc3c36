package report

import (
	"fmt"
	"math"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// shortestAxis bounds how many times fewer planes than a cube with equally many elements an axis of a field may have.
const shortestAxis = 2

// SwitchesLayout returns the warning LayoutSwitch if it applies to a number of ranks, and the event. It looks for
// fields that are cut into slabs: all ranks send all others the same number of bytes, which falls with the square of
// the number of ranks. Slabs are planes. With more ranks than planes the program has to cut a second axis, in another
// layout. No run shows how many planes there are; the estimate is the cube root of the number of elements.
func SwitchesLayout(m *model.Model, ranks int32) (w Warning, event int32, found bool) {
	for _, x := range m.Sites {
		if x.Comm == nil || x.Comm.World < 0 || x.Like == nil || len(x.Send.Like) == 0 {
			continue
		}
		call := m.Joint.Sig.Symbols[x.Event.Symbol].CallID
		if call != schema.CallAlltoall && call != schema.CallIalltoall {
			continue
		}
		total := slabFieldBytes(m, x)
		if total == 0 {
			continue
		}
		element := elementBytes(m, x.Send.Like[signature.SideDatatype].Int32())
		planes := int32(math.Cbrt(float64(total)/float64(element))) / shortestAxis
		if ranks > planes && ranks > m.LargestRun() {
			return Warning{LayoutSwitch, fmt.Sprintf(
				"%s transposes a field of %d elements that is cut into slabs: a field "+
					"that is not a cube may have fewer planes than %d ranks; then the program cuts it in another way, which "+
					"no run shows", m.NodeName(x.Event), total/element, ranks), ranks}, x.Event.ID, true
		}
	}
	return w, 0, false
}

// slabFieldBytes returns the bytes that a rank sends to all ranks, times the number of ranks, if these are the same in
// all calls of a site in at least two runs; else 0.
func slabFieldBytes(m *model.Model, x *model.Site) (total int64) {
	runs := 0
	for _, s := range x.Calls.Slots {
		for i, calls := range s.Runs {
			for _, c := range calls {
				if c == nil || !c.Send.HasBytes() {
					continue
				}
				t := int64(c.Send[signature.SideBytes]) * int64(m.Training[i])
				if total != 0 && t != total {
					return 0
				}
				total = t
			}
			runs++
		}
	}
	if runs < 2 {
		return 0
	}
	return total
}

// elementBytes returns the size of a datatype; 8 if it is unknown.
func elementBytes(m *model.Model, datatype int32) int64 {
	for _, d := range m.Joint.Sig.Datatypes {
		if d.ID == datatype && d.Bytes > 0 {
			return d.Bytes
		}
	}
	return 8
}
