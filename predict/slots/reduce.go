package slots

import (
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature"
)

// reduce removes the components along which a site is constant: the same call is made in each of the loop's iterations.
func reduce(sig *signature.Signature, s *Slots, site *Site) {
	var constant []int
	for i := range site.Components {
		if isConstant(sig, s, site, i) {
			constant = append(constant, i)
		}
	}
	for _, i := range slices.Backward(constant) {
		var kept []Visit
		for _, v := range site.Visits {
			if v.Place[i] == 0 {
				copy(v.Place[i:], v.Place[i+1:])
				v.Place[MaxLoops-1] = 0
				kept = append(kept, v)
			}
		}
		site.Visits = kept
		site.Components = slices.Delete(site.Components, i, i+1)
	}
}

// isConstant reports whether the i-th component makes no difference for a site: then all executions of the loop on a
// rank have as many iterations, all with the same call.
func isConstant(sig *signature.Signature, s *Slots, site *Site, i int) bool {
	type seen struct{ call, count int32 }
	at := map[Position]*seen{}
	events := sig.Values[site.Event.ID].Events
	for _, v := range site.Visits {
		k := Position{v.Run, v.Rank, v.Place}
		k.Place[i] = 0
		x := at[k]
		if x == nil {
			x = &seen{call: v.Call}
			at[k] = x
		}
		if x.call != v.Call && !equalCalls(events[x.call], events[v.Call]) {
			return false
		}
		x.count++
	}
	c := site.Components[i]
	first := slices.IndexFunc(site.Components, func(o Component) bool { return o.Loop == c.Loop })
	wanted := map[[2]int32]int32{} // by run and rank
	for k, x := range at {
		for j := first; j < MaxLoops; j++ { // executions of the loop are identified by the place around it
			k.Place[j] = 0
		}
		want := s.Iterations[c.Loop.ID][k]
		switch {
		case c.Within:
			want = c.Period
		case c.Period > 0:
			want /= c.Period
		}
		here := [2]int32{k.Run, k.Rank}
		if before, known := wanted[here]; x.count != want || known && before != want {
			return false
		}
		wanted[here] = want
	}
	return true
}

// equalCalls reports whether calls are equal, except for the earlier calls that they complete.
func equalCalls(a, b *signature.Call) bool {
	return a == b || a.Comm == b.Comm && slices.Equal(a.Send, b.Send) && slices.Equal(a.Recv, b.Recv) &&
		nulls.Value(a.Root, -1) == nulls.Value(b.Root, -1) && a.ReduceOp == b.ReduceOp &&
		nulls.Value(a.Error, 0) == nulls.Value(b.Error, 0) &&
		nulls.Value(a.PostedAny, -1) == nulls.Value(b.PostedAny, -1) &&
		nulls.Value(a.ProcNull, -1) == nulls.Value(b.ProcNull, -1)
}
