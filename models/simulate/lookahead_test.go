package simulate

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/commq/commq/schema"
)

// Ranks that run ahead of the events have the same times, to the picosecond, and the same errors as ranks that do not.
func TestLookaheadChangesNothing(t *testing.T) {
	ran, fewer := 0, 0
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		if seed%3 > 0 { // in Dimemas, eager programs run ahead to their end
			m.EagerThresholdBytes, m.EagerThresholdGiven = 1<<40, true
		}
		for r := range p.ranks {
			for k := range p.ranks[r] {
				c := &p.ranks[r][k]
				if seed%5 > 0 {
					c.compute = c.compute % 3 * 1000 // makes many events happen at the same time
				}
				if c.comm != 0 && seed%3 > 0 {
					c.sent, c.received = 4097*(1+c.instance), 977
				}
			}
		}
		program, rows := p.rows()
		cut := g.IntN(len(rows))
		for _, d := range []Dialect{Paper, Dimemas5} {
			simulate := func(ahead bool) (*Result, rowTimes, error) {
				times := rowTimes{}
				windows := [][]schema.Event{nil, nil}
				for i := range rows {
					w := 0
					if rows[i].Seq > int64(cut%7) {
						w = 1
					}
					windows[w] = append(windows[w], rows[i])
				}
				e, err := newEngine(m, program,
					&Options{Dialect: d, Done: func(rank int32, seq int64, start, end Picoseconds) {
						times[[2]int64{int64(rank), seq}] = [2]Picoseconds{start, end}
					}}, func(add func(*schema.Events) error) error {
						if len(windows) == 0 {
							return io.EOF
						}
						w := windows[0]
						windows = windows[1:]
						return add(eventsOf(w))
					})
				if err != nil {
					t.Fatal(err)
				}
				if !e.cpus.lookahead {
					t.Fatalf("seed %d: the machine is one where nobody waits for a CPU or a link", seed)
				}
				e.cpus.lookahead = ahead
				if err := e.run(); err != nil {
					return nil, nil, err
				}
				return e.result(), times, nil
			}
			with, got, err := simulate(true)
			without, want, err2 := simulate(false)
			if (err == nil) != (err2 == nil) {
				t.Fatalf("seed %d, %v: ahead %v, with the events %v\n%v", seed, d, err, err2, p)
			}
			if err != nil {
				if err.Error() != err2.Error() {
					t.Fatalf("seed %d, %v: ahead\n%v\nwith the events\n%v", seed, d, err, err2)
				}
				continue
			}
			ran++
			if with.Events < without.Events {
				fewer++
			}
			for k, w := range want {
				if got[k] != w {
					t.Fatalf("seed %d, %v: rank %d, seq %d: ahead %v, with the events %v\n%v", seed, d, k[0], k[1],
						got[k], w, p)
				}
			}
			for rank, w := range without.Ranks {
				if with.Ranks[rank] != w {
					t.Fatalf("seed %d, %v: rank %d: ahead %+v, with the events %+v", seed, d, rank, with.Ranks[rank], w)
				}
			}
			if with.Time != without.Time || with.Messages != without.Messages || with.Bytes != without.Bytes ||
				with.CollectiveBytes != without.CollectiveBytes {
				t.Fatalf("seed %d, %v: ahead %+v, with the events %+v", seed, d, with, without)
			}
		}
	})
	if ran < lawPrograms || fewer < ran/2 {
		t.Errorf("%d simulations end, and %d of them need fewer events with lookahead; want more", ran, fewer)
	}
}
