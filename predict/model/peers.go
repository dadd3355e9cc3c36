package model

import (
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
)

// ChangesPeers reports whether a rank of the largest run has different peers in the iterations of a loop around the call.
func (x *Site) ChangesPeers(loop *template.Node) bool {
	component := slices.IndexFunc(x.Calls.Components, func(c slots.Component) bool { return c.Loop == loop })
	if component < 0 {
		return false
	}
	type execution struct {
		place slots.Place // with 0 for the loop
		rank  int32
	}
	first := map[execution]int32{} // peer
	for _, s := range x.Calls.Slots {
		at := execution{place: s.Place}
		at.place[component] = 0
		for r, c := range s.Runs[len(s.Runs)-1] {
			if at.rank = int32(r); c == nil {
				continue
			}
			for _, side := range []signature.Side{c.Send, c.Recv} {
				if !side.HasPeer() {
					continue
				}
				if peer, known := first[at]; known && peer != side.PeerOf(at.rank) {
					return true
				}
				first[at] = side.PeerOf(at.rank)
				break
			}
		}
	}
	return false
}
