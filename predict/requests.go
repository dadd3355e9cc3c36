package predict

import "slices"

// completion is which requests the calls of an event complete in all runs.
type completion struct {
	of                  map[int32]bool // events that made them
	all, oldest, latest bool
}

// completions are the rules of all events whose calls complete requests, by node; of others nil.
func (t *training) completions() []*completion {
	w := completer{t: t, rules: make([]*completion, len(t.nodes)), posts: make([]bool, len(t.nodes))}
	for _, n := range t.nodes {
		for _, c := range t.Values[n.ID].Events {
			for _, q := range c.Completes {
				if w.rules[n.ID] == nil {
					w.rules[n.ID] = &completion{of: map[int32]bool{}, all: true, oldest: true, latest: true}
				}
				w.rules[n.ID].of[q[0]] = true
				w.posts[q[0]] = true
			}
		}
	}
	for _, root := range t.Roots {
		w.open, w.made = w.open[:0], make([]int32, len(t.nodes))
		w.loop(t.nodes[0], t.Values[0].Loops[root])
	}
	return w.rules
}

// completer goes through what ranks did and looks at what is completed.
type completer struct {
	t          *training
	rules      []*completion
	posts      []bool  // by node: its calls are completed by others
	open       []post  // of the rank, not completed, in order
	made       []int32 // calls of the rank so far, by node
	mine, gone []int   // scratch
}

// loop goes through iterations. What is repeated is gone through until the open requests after it are those before it: then it does the same every time.
func (w *completer) loop(n *Node, items []Item) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			w.body(n, w.t.Values[n.ID].Bodies[x.Value])
			continue
		}
		for k := int64(0); k < x.Times; k++ {
			left := x.Times - k - 1
			if left == 0 || k&(k-1) != 0 { // what is compared is copied: after 0, 1, 2, 4, ... times
				w.loop(n, x.Items)
				continue
			}
			open, made := slices.Clone(w.open), slices.Clone(w.made)
			w.loop(n, x.Items)
			if w.same(open, made) {
				w.again(made, int32(left))
				break
			}
		}
	}
}

// same says whether the open requests are as many calls ago as others were.
func (w *completer) same(open []post, made []int32) bool {
	return slices.EqualFunc(open, w.open, func(a, b post) bool { return a.node == b.node && made[a.node]-a.number == w.made[b.node]-b.number })
}

// again does several times more what was done since so many calls were made.
func (w *completer) again(since []int32, times int32) {
	for i := range w.open {
		p := &w.open[i]
		p.number += times * (w.made[p.node] - since[p.node])
	}
	for i := range w.made {
		w.made[i] += times * (w.made[i] - since[i])
	}
}

func (w *completer) body(n *Node, b []int32) {
	for i := 0; i < len(b); i += 2 {
		c, value := n.Children[b[i]], b[i+1]
		if c.Loop {
			w.loop(c, w.t.Values[c.ID].Loops[value])
			continue
		}
		if r := w.rules[c.ID]; r != nil {
			w.complete(r, w.t.Values[c.ID].Events[value])
		}
		if w.posts[c.ID] {
			w.open = append(w.open, post{c.ID, w.made[c.ID]})
		}
		w.made[c.ID]++
	}
}

// complete takes from a rule what a call does not keep to, and closes what it completes.
func (w *completer) complete(r *completion, c *Call) {
	w.mine, w.gone = w.mine[:0], w.gone[:0]
	for i, p := range w.open {
		if r.of[p.node] {
			w.mine = append(w.mine, i)
		}
	}
	for _, q := range c.Completes {
		for k := range q[2] {
			if i := slices.Index(w.open, post{q[0], w.made[q[0]] - 1 - q[1] + k}); i >= 0 {
				w.gone = append(w.gone, i)
			}
		}
	}
	slices.Sort(w.gone)
	r.all = r.all && slices.Equal(w.gone, w.mine)
	one := len(w.gone) == 1 || len(w.mine) == 0 && len(w.gone) == 0
	r.oldest = r.oldest && one && (len(w.gone) == 0 || w.gone[0] == w.mine[0])
	r.latest = r.latest && one && (len(w.gone) == 0 || w.gone[0] == w.mine[len(w.mine)-1])
	for _, i := range slices.Backward(w.gone) {
		w.open = slices.Delete(w.open, i, i+1)
	}
}
