package pattern

import (
	"slices"
	"testing"
)

// mapping makes a table from a rule; a rank for which the rule returns false does not send.
func mapping(ranks int32, f func(r int32) (int32, bool)) Mapping {
	m := Mapping{Ranks: ranks, Dst: make([]int32, ranks)}
	for r := range m.Dst {
		m.Dst[r] = None
		if d, ok := f(int32(r)); ok {
			m.Dst[r] = d
		}
	}
	return m
}

// TestTable1 checks the local equations of the paper's table 1: the first communication of BT's first phase, wrap(+1)
// in the rows.
func TestTable1(t *testing.T) {
	for q, want := range map[int32]string{
		3: "[+1{+2,+3}], [-2{+1,+3}]",
		4: "[+1{+3,+4}], [-3{+1,+4}]",
		5: "[+1{+4,+5}], [-4{+1,+5}]",
		6: "[+1{+5,+6}], [-5{+1,+6}]",
	} {
		m := mapping(q*q, func(r int32) (int32, bool) { return r - r%q + (r%q+1)%q, true })
		if got := m.EC2().String(); got != want {
			t.Errorf("%d ranks: EC2 is %s, want %s", q*q, got, want)
		}
		if !m.Dependent() {
			t.Errorf("%d ranks: a ring is dependent", q*q)
		}
	}
}

// TestEC1 recognizes exchanges and permutations of bits, and a static pattern that looks like an exchange on two
// ranks.
func TestEC1(t *testing.T) {
	run := func(f func(p, r int32) int32, ps ...int32) Slot {
		s := Slot{Name: "s"}
		for _, p := range ps {
			s.Runs = append(s.Runs, mapping(p, func(r int32) (int32, bool) { return f(p, r), true }))
		}
		return s
	}
	for name, c := range map[string]struct {
		slot Slot
		want []string
	}{
		"exchange": {run(func(p, r int32) int32 { return r ^ 5 }, 8, 16),
			[]string{"   8  {exchange, [0 2]}  dynamic, no-dependent",
				"  16  {exchange, [0 2]}  dynamic, no-dependent"}},
		"transpose": {run(func(p, r int32) int32 { return r%4*4 + r/4 }, 16),
			[]string{"  16  {permutation, [2 3 0 1]}  dynamic, no-dependent"}},
		"ring": {run(func(p, r int32) int32 { return (r + 1) % p }, 2, 5),
			[]string{"   2  [+1{+1,+2}], [-1{+1,+2}]  static, no-dependent",
				"   5  [+1{+4,+5}], [-4{+1,+5}]  static, dependent"}},
	} {
		var got []string
		for _, e := range c.slot.LocalEquations() {
			got = append(got, e.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestEC2GivesTheMappingBack evaluates structures of irregular and nested patterns.
func TestEC2GivesTheMappingBack(t *testing.T) {
	for name, m := range map[string]Mapping{
		"y of 3x4x2":    mapping(24, func(r int32) (int32, bool) { return r - r/3%4*3 + (r/3%4+1)%4*3, true }),
		"inner corners": mapping(24, func(r int32) (int32, bool) { return r + 1, r%3 == 0 && r/3%4 > 0 }),
		"irregular":     {Ranks: 7, Dst: []int32{3, -1, 0, 0, 6, -1, 2}},
		"to the root":   mapping(5, func(r int32) (int32, bool) { return 0, r != 0 }),
	} {
		if got := m.EC2().Mapping(m.Ranks); !slices.Equal(got.Dst, m.Dst) {
			t.Errorf("%s: EC2 %s gives %v, want %v", name, m.EC2(), got.Dst, m.Dst)
		}
	}
}
