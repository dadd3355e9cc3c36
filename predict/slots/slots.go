// Package slots divides what ranks did into slots, for which laws can then be looked for.
//
// A site is an event with all calls that ranks made there. The place of a call is the iteration, in each loop around
// the event, in which it was made. A slot is a site at one place: there a rank makes at most one call. For example, a
// loop over the six faces of a cube has one site and six slots, and at each slot all ranks send in the same direction.
//
// Only loops whose iterations differ count. Loops are left out of the place if all their iterations are equal, or if
// they make no difference for the site (places.go, reduce.go). Where ranks skip iterations, as at the borders of a
// grid, align.go finds the places that the iterations would have if no rank skipped any: by tags, by who sends to whom
// (messages.go), or by the directions of neighbours (neighbours.go).
//
// The signature may be of several runs side by side (package join), so that a site and a slot have the calls of all
// runs.
package slots

import (
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Run is the range of a signature's ranks that belong to one run.
type Run struct{ First, Ranks int32 }

// MaxLoops is the largest number of loops around an event whose iterations differ; a loop with a period counts twice.
const MaxLoops = 12

// Place is the iteration of a call in each loop that counts, the outermost first.
type Place [MaxLoops]int32

// PlaceOf returns the place with these indexes.
func PlaceOf(index []int32) (p Place) {
	copy(p[:], index)
	return p
}

// Component is a component of places: the iteration of a loop. If the calls of a loop's iterations come again after a
// period, the loop has two components: the number of the period, and the iteration within it.
type Component struct {
	Loop   *template.Node
	Period int32 // 0: the loop has none
	Within bool  // the iteration within the period
}

// Index returns the component for an iteration of the loop.
func (c Component) Index(iteration int32) int32 {
	switch {
	case c.Period == 0:
		return iteration
	case c.Within:
		return iteration % c.Period
	}
	return iteration / c.Period
}

// Components returns the components of places that a loop has.
func Components(loop *template.Node, period int32) []Component {
	if period == 0 {
		return []Component{{Loop: loop}}
	}
	return []Component{{loop, period, false}, {loop, period, true}}
}

// Site is an event with the calls of all ranks.
type Site struct {
	Event *template.Node
	// Components are the components of the site's places, the outermost first.
	Components []Component
	// Visits are the calls; Find turns them into Slots.
	Visits []Visit
	// Slots are ordered by place.
	Slots []*Slot
	// Sends and Receives tell whether the calls are of these classes.
	Sends, Receives bool

	byPlace map[Place]*Slot
}

// Slot returns the slot at a place; nil if there is none.
func (s *Site) Slot(at Place) *Slot { return s.byPlace[at] }

// DiffersAlong reports whether the site's calls differ from iteration to iteration of a loop around it.
func (s *Site) DiffersAlong(loop *template.Node) bool {
	return slices.ContainsFunc(s.Components, func(c Component) bool { return c.Loop == loop })
}

// Visit is a call that a rank made at a place.
type Visit struct {
	Run   int32
	Rank  int32 // in the run
	Place Place
	Call  int32 // index in the event's values
}

// Slot is a site at a place.
type Slot struct {
	Site  *Site
	Place Place
	// Runs has the call of each run and rank; nil if the rank does not make it.
	Runs [][]*signature.Call
}

// Index returns the components of the slot's place.
func (s *Slot) Index() []int32 {
	if len(s.Site.Components) == 0 {
		return nil
	}
	return slices.Clone(s.Place[:len(s.Site.Components)])
}

// Position is a place on a rank of a run.
type Position struct {
	Run, Rank int32
	Place     Place
}

// Slots are the sites of runs, with what is known about the loops around them.
type Slots struct {
	Sites []*Site
	// Uniform tells, by loop, whether all iterations are equal in each execution.
	Uniform []bool
	// Periods has the periods of loops; 0 for loops without.
	Periods []int32
	// Directions has, by loop, in how many directions a loop over neighbours goes; 0 for other loops.
	Directions []int32
	// Iterations has, by loop, how many iterations each execution has, identified by the place around the loop.
	Iterations []map[Position]int32
}

// maxVisits is the largest number of distinct calls that Find takes.
const maxVisits = 1 << 23

// Find finds the sites and slots of runs. It is an error if there are too many distinct calls, or too many loops around
// one.
func Find(sig *signature.Signature, runs []Run) (*Slots, error) {
	s, err := FindVisits(sig, runs, maxVisits)
	if err != nil {
		return nil, err
	}
	for _, site := range s.Sites {
		fillSlots(site, sig, runs)
	}
	return s, nil
}

// fillSlots sorts the visits of a site into slots.
func fillSlots(s *Site, sig *signature.Signature, runs []Run) {
	class := schema.Calls[sig.Symbols[s.Event.Symbol].CallID].Class
	s.Sends = class == schema.ClassSend || class == schema.ClassSendrecv
	s.Receives = class == schema.ClassRecv || class == schema.ClassSendrecv
	s.byPlace = map[Place]*Slot{}
	events := sig.Values[s.Event.ID].Events
	for _, v := range s.Visits {
		x := s.byPlace[v.Place]
		if x == nil {
			x = &Slot{Site: s, Place: v.Place}
			for _, run := range runs {
				x.Runs = append(x.Runs, make([]*signature.Call, run.Ranks))
			}
			s.byPlace[v.Place] = x
			s.Slots = append(s.Slots, x)
		}
		x.Runs[v.Run][v.Rank] = events[v.Call]
	}
	s.Visits = nil
	slices.SortFunc(s.Slots, func(a, b *Slot) int { return slices.Compare(a.Place[:], b.Place[:]) })
}
