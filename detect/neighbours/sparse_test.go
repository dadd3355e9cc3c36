package neighbours

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/run"
)

// TestLongSparseExchanges: in each step of a long loop every one of 16 ranks sends to two others before it receives.
func TestLongSparseExchanges(t *testing.T) {
	const ranks = 16
	for _, c := range []struct {
		name  string
		steps int
		waits bool
	}{
		{"short", 50, false},
		{"long", 1000, false},
		{"received by one call per step", 1000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &loop{Rand: rand.New(rand.NewPCG(1, 4)), ranks: ranks, seq: make([]int64, ranks)}
			in, _ := p.input()
			world := run.Comm{}
			for r := range int32(ranks) {
				world.Members = append(world.Members, r)
			}
			in.Comms = []run.Comm{world}
			for range c.steps {
				f := phase{site: 3, tag: 7, waits: c.waits}
				for r := range int32(ranks) {
					near := 1 + p.Int32N(ranks-2)
					far := near + 1 + p.Int32N(ranks-1-near)
					for _, to := range []int32{near, far} {
						f.ways = append(f.ways, ledger.Way{Src: r, Dst: (r + to) % ranks})
					}
				}
				p.exchange(&f)
			}
			_, first := p.input()
			l := &ledger.Ledger{}
			beyond, err := FindSparse(in, l, first)
			if err != nil || beyond > 0 {
				t.Fatal(beyond, err)
			}
			messages := 0
			for _, i := range l.Found {
				messages += len(i.Messages)
				if i.Op != ledger.Alltoallv {
					t.Fatalf("found %v", i.Op)
				}
			}
			if len(l.Found) != c.steps || messages != 2*ranks*c.steps {
				t.Errorf("found %d exchanges of %d messages, want %d of %d", len(l.Found), messages, c.steps,
					2*ranks*c.steps)
			}
		})
	}
}

func TestLeastRoundsOfBoundedMessages(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds [][]bound
		want   []int
	}{
		{"one after the other", [][]bound{{}, {{0, true}}, {{1, false}, {0, false}}}, []int{1, 2, 2}},
		{"together", [][]bound{{{2, false}}, {{0, false}}, {{1, false}, {3, true}}, {}}, []int{2, 2, 2, 1}},
		{"each later than the other", [][]bound{{{1, true}}, {{0, false}}}, nil},
	} {
		if got := leastRounds(c.bounds); !slices.Equal(got, c.want) {
			t.Errorf("%s: rounds %v, want %v", c.name, got, c.want)
		}
	}
}
