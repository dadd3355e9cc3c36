package simulate

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// kept simulates rows whose operations keep a part of their cost.
func kept(m *models.Machine, p *Program, d Dialect, rows []schema.Event, keep Keep) (*Result, rowTimes, error) {
	times, read := rowTimes{}, false
	done := func(rank int32, seq int64, start, end Picoseconds) {
		times[[2]int64{int64(rank), seq}] = [2]Picoseconds{start, end}
	}
	r, err := Simulate(m, p, &Options{Dialect: d, Done: done, Keep: keep}, func(add func(*schema.Events) error) error {
		if read {
			return io.EOF
		}
		read = true
		return add(eventsOf(rows))
	})
	return r, times, err
}

// randomKeep lets each row keep a random part of its cost.
func randomKeep(g *rand.Rand, standard bool) func(rank int32, seq int64) Kept {
	parts := map[[2]int64]Kept{}
	return func(rank int32, seq int64) Kept {
		at := [2]int64{int64(rank), seq}
		if _, found := parts[at]; !found {
			factor := func() float64 { return []float64{0, 0.125, 0.7, 1, 1}[g.IntN(5)] }
			parts[at] = Kept{factor(), factor(), standard && g.IntN(2) == 0}
		}
		return parts[at]
	}
}

// byRow is a Keep that asks for the row only.
func byRow(keep func(rank int32, seq int64) Kept) Keep {
	return func(rank int32, seq int64, _ int32, _ schema.CallID) Kept { return keep(rank, seq) }
}

func equalTimes(t *testing.T, seed int, d Dialect, want, got rowTimes) {
	t.Helper()
	for k, w := range want {
		if got[k] != w {
			t.Fatalf("seed %d, %v: rank %d, seq %d: %v, want %v", seed, d, k[0], k[1], got[k], w)
		}
	}
}

// An operation that keeps its whole cost takes as long as ever, also where ranks wait for links, buses and CPUs.
func TestLawsKeepingAllChangesNothing(t *testing.T) {
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		if seed%2 == 0 {
			contended(g, m)
		}
		program, rows := p.rows()
		for _, d := range []Dialect{Paper, Dimemas5} {
			_, want, err := kept(m, program, d, rows, nil)
			_, got, err2 := kept(m, program, d, rows, byRow(func(int32, int64) Kept { return KeptAll }))
			if (err == nil) != (err2 == nil) {
				t.Fatalf("seed %d, %v: %v, %v", seed, d, err, err2)
			}
			if err == nil {
				equalTimes(t, seed, d, want, got)
			}
		}
	})
}

// Operations that keep nothing take as long as on an ideal network.
func TestLawsKeepingNothingIsAnIdealNetwork(t *testing.T) {
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		program, rows := p.rows()
		for _, d := range []Dialect{Paper, Dimemas5} {
			_, want, err := kept(m.Ideal(), program, d, rows, nil)
			_, got, err2 := kept(m, program, d, rows, byRow(func(int32, int64) Kept { return Kept{} }))
			if (err == nil) != (err2 == nil) {
				t.Fatalf("seed %d, %v: %v, %v", seed, d, err, err2)
			}
			if err == nil {
				equalTimes(t, seed, d, want, got)
			}
		}
	})
}

// Where operations keep a part of their cost, the engine and the second simulator agree on each row to the picosecond.
func TestLawsSecondSimulatorKeepsParts(t *testing.T) {
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, slow := randomMachine(t, g, len(p.ranks))
		slow.keep = randomKeep(g, true)
		program, rows := p.rows()
		want, ok := slowly(p, slow)
		_, got, err := kept(m, program, Paper, rows, byRow(slow.keep))
		if ok != (err == nil) {
			t.Fatalf("seed %d: %v; the second simulator ends: %v\n%v", seed, err, ok, p)
		}
		if !ok {
			return
		}
		for rank := range p.ranks {
			for k := range p.ranks[rank] {
				if g, w := got[[2]int64{int64(rank), int64(k)}],
					[2]Picoseconds{Picoseconds(want.start[rank][k]), Picoseconds(want.end[rank][k])}; g != w {
					t.Fatalf("seed %d: rank %d, seq %d: %v ps; the second simulator says %v\n%+v\n%v", seed, rank, k,
						g, w, slow, p)
				}
			}
		}
	})
}

// If ranks wait only for partners, no row ends later because operations keep less of their cost.
func TestLawsKeepingLessIsFaster(t *testing.T) {
	faster := 0
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		program, rows := p.rows()
		all, some, err := kept(m, program, Paper, rows, nil)
		if err != nil {
			return
		}
		less, times, err := kept(m, program, Paper, rows, byRow(randomKeep(g, seed%2 == 0)))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, s := range some {
			if times[k][1] > s[1] {
				t.Fatalf("seed %d: rank %d, seq %d ends at %d ps with its whole cost, with less of it at %d\n%v", seed, k[0],
					k[1], s[1], times[k][1], p)
			}
		}
		if less.Time < all.Time {
			faster++
		}
	})
	if faster < lawPrograms/2 {
		t.Errorf("only %d of %d programs are faster", faster, lawPrograms)
	}
}

// oneSidedRows are an MPI_Get of 1000 bytes by rank 0 from rank 1, between two fences, and an MPI_File_write of 800 ns
// by rank 1.
func oneSidedRows() (*Program, []schema.Event) {
	p := &slowProgram{ranks: make([][]slowCall, 2), comms: map[int32][]int32{7: {0, 1}}}
	program, _ := p.rows()
	var rows []schema.Event
	for rank := range int32(2) {
		b := rowBuilder{rank: rank}
		create := b.row(schema.CallWinCreate)
		create.Comm, create.Instance = 7, 0
		if rank == 0 {
			e := b.row(schema.CallGet)
			e.Comm, e.InitSeq, e.RecvWorld, e.RecvBytes, e.Callsite = 7, 0, 1, 1000, 31
		} else {
			e := b.row(schema.CallFileWrite)
			e.StartNs, e.EndNs, e.Callsite = 100, 900, 32
		}
		e := b.row(schema.CallWinFence)
		e.Comm, e.InitSeq = 7, 0
		b.row(schema.CallFinalize)
		rows = append(rows, b.rows...)
	}
	return program, rows
}

// A get costs two latencies and its bytes, which its caller's row decides; a file operation costs its time.
func TestKeepOneSidedAndFiles(t *testing.T) {
	m, err := models.Named("flat") // 10 us, 1 GB/s
	if err != nil {
		t.Fatal(err)
	}
	for op := range m.Collectives {
		m.SetCollective(op, models.Phases{})
	}
	program, rows := oneSidedRows()
	for _, c := range []struct {
		get, file Kept
		ns        Picoseconds
	}{
		{KeptAll, KeptAll, 21_000},
		{Kept{Latency: 0.5, Bytes: 1}, KeptAll, 11_000},
		{Kept{Latency: 1, Bytes: 0.5}, KeptAll, 20_500},
		{Kept{}, KeptAll, 800},
		{Kept{}, Kept{Latency: 0.25, Bytes: 0.5}, 400},
		{Kept{}, Kept{}, 0},
	} {
		r, _, err := kept(m, program, Paper, rows, func(rank int32, seq int64, site int32, call schema.CallID) Kept {
			switch {
			case rank == 0 && seq == 1 && site == 31 && call == schema.CallGet:
				return c.get
			case rank == 1 && seq == 1 && site == 32 && call == schema.CallFileWrite:
				return c.file
			}
			return KeptAll
		})
		if err != nil || r.Time != c.ns*1000 {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}
