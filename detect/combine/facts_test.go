package combine

import (
	"testing"

	"github.com/commq/commq/detect/ledger"
)

// TestSizesDiffer: lines that once send other sizes from one rank than from another cannot reduce, whatever the path
// and the tag. Other lines, communicators and roots tell nothing.
func TestSizesDiffer(t *testing.T) {
	lines := map[int32]int32{1: 10, 2: 10, 3: 30}
	for _, c := range []struct {
		name string
		more ledger.Message
		want bool
	}{
		{"the same line on another path", ledger.Message{Src: 2, SendSite: 2, Bytes: 24}, true},
		{"another line", ledger.Message{Src: 2, SendSite: 3, Bytes: 24}, false},
		{"another communicator", ledger.Message{Src: 2, SendSite: 1, Comm: 4, Bytes: 24}, false},
		{"another receiver", ledger.Message{Src: 2, Dst: 1, SendSite: 1, Bytes: 24}, false},
	} {
		f := &facts{rules: &ledger.Rules{Lines: lines}, sample: ledger.NewSample(4)}
		add := func(m *ledger.Message) { f.sample.WayOf(m.Cell(), ledger.Way{Src: m.Src, Dst: m.Dst}).Count++ }
		for src := int32(1); src < 4; src++ {
			add(&ledger.Message{Src: src, SendSite: 1, Bytes: 8})
		}
		add(&c.more)
		g := &group{ranks: []int32{0, 1, 2, 3}, cells: []*ledger.CellSample{{Cell: ledger.Cell{Site: 1, Bytes: 8}}}}
		if got := f.sizesDiffer(g, 0); got != c.want {
			t.Errorf("%s: sizes differ %t, want %t", c.name, got, c.want)
		}
	}
}
