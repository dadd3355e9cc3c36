package generate

import (
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// sentOrReceived is one side of a route.
type sentOrReceived struct {
	route
	sends bool
}

// sizesInOrder are the sizes of messages in the order of calls, folded as the calls are, by side of a route.
type sizesInOrder map[sentOrReceived][]fold.Item

// numberedSizes gives sizes numbers.
type numberedSizes struct {
	numbers map[size]int32
	sizes   []size
}

// number returns the number of a size.
func (n *numberedSizes) number(s size) int32 {
	i, known := n.numbers[s]
	if !known {
		i = int32(len(n.sizes))
		n.numbers[s], n.sizes = i, append(n.sizes, s)
	}
	return i
}

// inOrder returns the sizes on some routes in the order of calls. Repetitions are not unfolded.
func (s *sides) inOrder(m *model.Model, routes map[route]bool, n *numberedSizes) sizesInOrder {
	all := sizesInOrder{}
	for r := range s.ranksWithSides() {
		f := folder{m, s, routes, n, r}
		f.loop(s.sig.Nodes()[0], s.sig.Roots[s.first+r], all)
	}
	return all
}

// folder collects the sizes of one rank's messages.
type folder struct {
	model  *model.Model
	sides  *sides
	routes map[route]bool
	sizes  *numberedSizes
	rank   int32
}

// loop adds the sizes in one execution of a loop.
func (f *folder) loop(n *template.Node, value int32, to sizesInOrder) {
	f.items(n, f.sides.sig.Values[n.ID].Loops[value], to)
}

// items adds the sizes in iterations of a loop.
func (f *folder) items(n *template.Node, items []fold.Item, to sizesInOrder) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			f.body(n, x.Value, to)
			continue
		}
		repeated := sizesInOrder{}
		f.items(n, x.Items, repeated)
		for k, sizes := range repeated {
			to[k] = append(to[k], fold.Item{Times: x.Times, Items: sizes})
		}
	}
}

// body adds the sizes in one iteration of a loop.
func (f *folder) body(n *template.Node, body int32, to sizesInOrder) {
	b := f.sides.sig.Values[n.ID].Bodies[body]
	for i := 0; i < len(b); i += 2 {
		c := n.Children[b[i]]
		if c.Loop {
			f.loop(c, b[i+1], to)
			continue
		}
		f.sides.visitCall(f.rank, c, f.sides.sig.Values[c.ID].Events[b[i+1]], 1, func(x *sideOfMessage) {
			if f.routes[x.route] {
				k := sentOrReceived{x.route, x.sends}
				to[k] = append(to[k], fold.Item{Value: f.sizes.number(x.sizeOf(f.model))})
			}
		})
	}
}

// zip calls visit with the numbers at equal places of two folded sequences, up to the end of the shorter one. Where
// both repeat as many numbers, it visits these once.
func zip(a, b []fold.Item, visit func(x, y int32)) {
	for p, q := newPlace(a), newPlace(b); ; {
		x, y := p.item(), q.item()
		switch {
		case x == nil || y == nil:
			return
		case x.Times == 0 && y.Times == 0:
			visit(x.Value, y.Value)
			p.skip(1)
			q.skip(1)
		case x.Times > 0 && y.Times > 0 && fold.Len(x.Items) == fold.Len(y.Items):
			zip(x.Items, y.Items, visit)
			times := min(x.Times, y.Times)
			p.skip(times)
			q.skip(times)
		case x.Times > 0 && (y.Times == 0 || fold.Len(x.Items) > fold.Len(y.Items)):
			p.enter(x)
		default:
			q.enter(y)
		}
	}
}

// place is a place in a folded sequence: the repetitions that it is in, the innermost last.
type place []placeIn

// placeIn is a place in a list of items.
type placeIn struct {
	items []fold.Item
	done  int64 // repetitions of the first item that are over
}

func newPlace(items []fold.Item) place { return place{{items: items}} }

// item returns the item at the place, with the repetitions that are left; nil at the end.
func (p *place) item() *fold.Item {
	for len(*p) > 0 {
		if at := &(*p)[len(*p)-1]; len(at.items) > 0 {
			x := at.items[0]
			x.Times -= at.done
			return &x
		}
		*p = (*p)[:len(*p)-1]
	}
	return nil
}

// skip goes past a number, or times repetitions of an item.
func (p *place) skip(times int64) {
	at := &(*p)[len(*p)-1]
	if at.done += times; at.done >= at.items[0].Times {
		at.items, at.done = at.items[1:], 0
	}
}

// enter goes to the first number of an item that is repeated.
func (p *place) enter(x *fold.Item) {
	p.skip(1)
	*p = append(*p, placeIn{items: x.Items})
}
