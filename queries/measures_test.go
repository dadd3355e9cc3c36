package queries_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// five is the table ranks of five ranks.
const five = `
ranks rank
0
1
2
3
4
`

// someOfEach has on the communicators of comms: a barrier of all; a bcast of 100 bytes from rank 4 in communicator 1,
// nonblocking, which rank 2 calls in the form with large counts; an allreduce of 8 bytes over the intercommunicator
// 3; a reduce of 6 to rank 2 in communicator 1, persistent and started twice. It also has calls that never count:
// making a communicator, one-sided calls, files, waits.
const someOfEach = comms + five + `
events rank seq call class comm instance init_seq root_world send_count send_bytes recv_count recv_bytes
0 0 MPI_Barrier collective 0 0 - - - 0 - 0
0 1 MPI_Comm_split comm 0 1 - - - - - -
0 2 MPI_Allreduce collective 3 0 - - 2 8 2 8
0 3 MPI_Win_fence rma 0 - - - - - - -
0 4 MPI_File_write_all io 0 - - - 3 24 - -
1 0 MPI_Barrier collective 0 0 - - - 0 - 0
1 1 MPI_Comm_split comm 0 1 - - - - - -
1 2 MPI_Allreduce collective 3 0 - - 2 8 2 8
2 0 MPI_Barrier collective 0 0 - - - 0 - 0
2 1 MPI_Comm_split comm 0 1 - - - - - -
2 2 MPI_Ibcast_c collective 1 0 - 4 - 0 25 100
2 3 MPI_Wait complete - - - - - - - -
2 4 MPI_Allreduce collective 3 0 - - 2 8 2 8
2 5 MPI_Reduce_init other 1 1 - 2 - - - -
2 6 MPI_Start collective 1 8589934592 5 2 3 6 3 6
2 7 MPI_Start collective 1 8589934593 5 2 3 6 3 6
3 0 MPI_Barrier collective 0 0 - - - 0 - 0
3 1 MPI_Comm_split comm 0 1 - - - - - -
3 2 MPI_Ibcast collective 1 0 - 4 - 0 25 100
3 3 MPI_Allreduce collective 3 0 - - 2 8 2 8
3 4 MPI_Reduce_init_c other 1 1 - 2 - - - -
3 5 MPI_Startall collective 1 8589934592 4 2 3 6 - 0
3 6 MPI_Startall collective 1 8589934593 4 2 3 6 - 0
4 0 MPI_Barrier collective 0 0 - - - 0 - 0
4 1 MPI_Comm_split comm 0 1 - - - - - -
4 2 MPI_Ibcast collective 1 0 - 4 25 100 - 0
4 3 MPI_Allreduce collective 3 0 - - 2 8 2 8
4 4 MPI_Reduce_init other 1 1 - 2 - - - -
4 5 MPI_Start collective 1 8589934592 4 2 3 6 - 0
4 6 MPI_Start collective 1 8589934593 4 2 3 6 - 0
`

// hashedMessages are messages of six senders, of which the second swaps payloads with another when swapped is true.
func hashedMessages(swapped bool, order []int) string {
	first, second := "-9223372036854775807", "9223372036854775807"
	if swapped {
		first, second = second, first
	}
	rows := []string{
		"0 1 0 7 8 0 0 " + first,
		"1 2 0 7 8 0 0 " + second,
		"2 3 0 7 9999999999 0 0 -",
		"3 4 0 7 9999999999 0 0 1",
		"4 0 0 7 0 0 0 0",
		"1 2 0 7 8 1 1 " + second,
	}
	text := world + five + "\nmessages src dst comm tag bytes send_seq recv_post_seq payload_hash\n"
	for _, i := range order {
		text += rows[i] + "\n"
	}
	return text
}

// TestPayloads: the writer's fingerprint is the one that the query makes of the rows of an older run, which has none.
func TestPayloads(t *testing.T) {
	m := example.Manifest(5)
	m.Hash = "crc64"
	measure := func(run queries.Run) string {
		t.Helper()
		for line := range strings.Lines(ask(t, run, "measures")) {
			if strings.Contains(line, ",payloads,") {
				return line
			}
		}
		return ""
	}
	var seen []string
	for _, text := range []string{hashedMessages(false, []int{0, 1, 2, 3, 4, 5}), hashedMessages(false, []int{0, 1, 5, 2, 3, 4}),
		hashedMessages(true, []int{0, 1, 2, 3, 4, 5})} {
		run := newRun(t, "hashed.5", text, m)
		if run.Manifest.Payloads == nil {
			t.Fatal("the writer wrote no fingerprint")
		}
		older := *run.Manifest
		older.Payloads = nil
		got, want := measure(run), measure(queries.Run{Name: run.Name, Dir: run.Dir, Manifest: &older})
		if got != want || got == "" {
			t.Errorf("the writer's fingerprint: %q; of the rows: %q", got, want)
		}
		seen = append(seen, got)
	}
	if seen[0] != seen[1] {
		t.Errorf("another order of rows has another fingerprint: %s and %s", seen[0], seen[1])
	}
	if seen[0] == seen[2] {
		t.Error("two messages swapped payloads, and the fingerprint is the same")
	}
	m.Hash = "none"
	if plain := newRun(t, "plain.5", hashedMessages(false, []int{2}), m); plain.Manifest.Payloads != nil {
		t.Error("a run without hashes has a fingerprint")
	}
}

// Of 5 ranks, 5 take part in the barrier and in the allreduce, 3 in the bcast and 3 in each of two reduces: 19
// operations, 19 / 5 = 3.8 per rank. The messages are 5, one of them from rank 3 to itself: 5 of 24 and 19 of 24
// operations.
func TestRatio(t *testing.T) {
	m := example.Manifest(5)
	same(t, "both", ask(t, newRun(t, "both.5", someOfEach+pingpong, m), "ratio"), `
		5,point-to-point,5,1,0.20833333333333334
		5,collective,19,3.8,0.7916666666666666`)
	same(t, "collectives alone", ask(t, newRun(t, "coll.5", someOfEach, m), "ratio"), `
		5,point-to-point,0,0,0
		5,collective,19,3.8,1`)
	same(t, "messages alone", ask(t, newRun(t, "pp.5", world+five+pingpong, m), "ratio"), `
		5,point-to-point,5,1,1
		5,collective,0,0,0`)
	m.Record, m.Counts.Messages = "collectives", 57 // 57 / 5 = 11.4; 57 / 76 = 0.75
	same(t, "a run without rows of messages", ask(t, newRun(t, "bare.5", someOfEach, m), "ratio"), `
		5,point-to-point,57,11.4,0.75
		5,collective,19,3.8,0.25`)
}

func TestCollectives(t *testing.T) {
	run := newRun(t, "each.5", someOfEach+pingpong, example.Manifest(5))
	same(t, "collectives", ask(t, run, "collectives"), `
		5,MPI_Allreduce,1,1,40,40
		5,MPI_Barrier,1,1,0,0
		5,MPI_Bcast,1,0.6,100,200
		5,MPI_Reduce,2,1.2,36,12`)
	// A job that ended in its second barrier, which ranks 3 and 4 did not reach; each half of it had a neighbourhood
	// alltoall.
	killed := comms + five + `
events rank seq call class comm instance send_bytes recv_bytes
0 0 MPI_Barrier collective 0 0 0 0
0 1 MPI_Barrier collective 0 1 0 0
1 0 MPI_Barrier collective 0 0 0 0
1 1 MPI_Barrier collective 0 1 0 0
2 0 MPI_Barrier collective 0 0 0 0
2 1 MPI_Ineighbor_alltoallw collective 1 0 7 9
2 2 MPI_Barrier collective 0 1 0 0
3 0 MPI_Barrier collective 0 0 0 0
3 1 MPI_Ineighbor_alltoallw collective 1 0 9 7
4 0 MPI_Barrier collective 0 0 0 0
4 1 MPI_Ineighbor_alltoallw collective 1 0 0 0
`
	same(t, "a killed job", ask(t, newRun(t, "killed.5", killed, example.Manifest(5)), "collectives"), `
		5,MPI_Barrier,2,1.6,0,0
		5,MPI_Neighbor_alltoallw,1,0.6,16,16`)
}

// edges has messages on both sides of the buckets' bounds: of 16, 17, 0 and 64 Mi bytes, one more than that, and one
// whose elements are not known. In elements they are 2, 17, 0, 8 Mi and 64 Mi + 1.
const edges = world + five + `
messages src dst comm tag bytes send_count send_seq recv_post_seq
1 3 0 9 16 2 0 0
1 3 0 9 17 17 1 1
1 3 0 9 0 0 2 2
1 3 0 9 67108864 8388608 3 3
1 3 0 9 67108865 67108865 4 4
1 3 0 7 4097 - 5 5
`

func TestSizes(t *testing.T) {
	run := newRun(t, "edges.5", edges, example.Manifest(5))
	same(t, "bytes", ask(t, run, "sizes"), `
		5,1,<= 16,16,2,16
		5,2,<= 64,64,1,17
		5,3,<= 256,256,0,0
		5,4,<= 1 Ki,1024,0,0
		5,5,<= 4 Ki,4096,0,0
		5,6,<= 16 Ki,16384,1,4097
		5,7,<= 64 Ki,65536,0,0
		5,8,<= 256 Ki,262144,0,0
		5,9,<= 1 Mi,1048576,0,0
		5,10,<= 4 Mi,4194304,0,0
		5,11,<= 16 Mi,16777216,0,0
		5,12,<= 64 Mi,67108864,1,67108864
		5,13,> 64 Mi,,1,67108865`)
	same(t, "elements", some(ask(t, run, "sizes", "unit", "elements")), `
		5,1,<= 16,16,2,16
		5,2,<= 64,64,1,17
		5,11,<= 16 Mi,16777216,1,67108864
		5,13,> 64 Mi,,1,67108865
		5,14,not known,,1,4097`)
	same(t, "where", some(ask(t, run, "sizes", "where", "tag = 7")), "5,6,<= 16 Ki,16384,1,4097")
	same(t, "of nothing", ask(t, run, "sizes", "where", "tag = 8"), "")
}

// The calls of someOfEach: a barrier of nothing (5), an allreduce of 8 bytes (5), a bcast of 100 (3), reduces of 6
// (6). Their counts are 0, 2, 25 and 3.
func TestSizesOfCollectives(t *testing.T) {
	run := newRun(t, "each.5", someOfEach+pingpong, example.Manifest(5))
	same(t, "none", some(ask(t, run, "sizes")), `
		5,1,<= 16,16,1,0
		5,2,<= 64,64,1,17
		5,4,<= 1 Ki,1024,1,1000
		5,6,<= 16 Ki,16384,2,8194`)
	same(t, "bytes", some(ask(t, run, "sizes", "collectives", "calls", "where", "FALSE")), `
		5,1,<= 16,16,16,76
		5,3,<= 256,256,3,300`)
	same(t, "elements", some(ask(t, run, "sizes", "collectives", "calls", "unit", "elements", "where", "FALSE")), `
		5,1,<= 16,16,16,76
		5,2,<= 64,64,3,300`)
}

// some removes the buckets without messages.
func some(rows string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(rows, "\n") {
		if !strings.HasSuffix(line, ",0,0\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestRandomMeasuresAgainstDirectCount compares ratio, collectives and sizes with counts taken one operation at a time.
func TestRandomMeasuresAgainstDirectCount(t *testing.T) {
	forms := map[string][]string{
		"MPI_Bcast":                {"MPI_Bcast", "MPI_Bcast_c"},
		"MPI_Reduce_scatter_block": {"MPI_Ireduce_scatter_block", "MPI_Ireduce_scatter_block_c"},
		"MPI_Allgatherv":           {"MPI_Allgatherv"},
		"MPI_Iexscan":              nil, // never counted under this name
		"MPI_Exscan":               {"MPI_Iexscan"},
		"MPI_Neighbor_alltoall": {"MPI_Neighbor_alltoall_init", "MPI_Neighbor_alltoall_init_c",
			"MPIX_Neighbor_alltoall_init"},
		"MPI_Scan": {"MPI_Scan_init"},
	}
	var operations []string
	for name, f := range forms {
		if f != nil {
			operations = append(operations, name)
		}
	}
	slices.Sort(operations)
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		world := 2 + rng.IntN(9)
		var comms, ranks, events, messages strings.Builder
		seq := make([]int, world)
		for rank := range world {
			fmt.Fprintf(&ranks, "%d\n", rank)
		}
		instances, calls, sent, received := map[string]int{}, map[string]int{}, map[string]int64{}, map[string]int64{}
		for comm := range 3 {
			members := rng.Perm(world)[:1+rng.IntN(world)]
			for i, rank := range members {
				fmt.Fprintf(&comms, "%d %d %d split\n", comm, i, rank)
			}
			for instance := range 12 {
				op := operations[rng.IntN(len(operations))]
				starts := 1
				persistent := strings.Contains(forms[op][0], "_init")
				if persistent {
					starts = rng.IntN(4)
				}
				instances[op] += starts
				calls[op] += starts * len(members)
				for _, rank := range members {
					call := forms[op][rng.IntN(len(forms[op]))]
					init := "-"
					if persistent {
						init = fmt.Sprint(seq[rank])
						fmt.Fprintf(&events, "%d %d %s other %d %d - - -\n", rank, seq[rank], call, comm, instance)
						seq[rank]++
						call = "MPI_Start"
					}
					for k := range starts {
						id := instance
						if persistent {
							id = (instance+1)<<32 + k
						}
						s, r := rng.Int64N(5000), rng.Int64N(5000)
						sent[op], received[op] = sent[op]+s, received[op]+r
						fmt.Fprintf(&events, "%d %d %s collective %d %d %s %d %d\n", rank, seq[rank], call, comm, id,
							init, s, r)
						seq[rank]++
					}
				}
			}
		}
		var buckets [2][13]int64 // messages by bytes and by elements
		var payload [2][13]int64
		n := rng.IntN(200)
		for i := range n {
			count := rng.Int64N(1 << rng.IntN(30))
			bytes := 8 * count
			for u, size := range []int64{bytes, count} {
				b := 0
				for at := int64(16); b < 12 && size > at; at *= 4 {
					b++
				}
				buckets[u][b]++
				payload[u][b] += bytes
			}
			fmt.Fprintf(&messages, "0 %d 0 9 %d %d %d %d\n", rng.IntN(world), bytes, count, i, i)
		}
		rows := strings.Split(strings.TrimSpace(events.String()), "\n")
		slices.SortFunc(rows, byRankAndSeq)
		text := "comms comm comm_rank world_rank kind\n" + comms.String() + "\nranks rank\n" + ranks.String() +
			"\nevents rank seq call class comm instance init_seq send_bytes recv_bytes\n" + strings.Join(rows, "\n") +
			"\n\nmessages src dst comm tag bytes send_count send_seq recv_post_seq\n" + messages.String()
		run := newRun(t, fmt.Sprintf("random.%d", seed), text, example.Manifest(int32(world)))

		var want strings.Builder
		total, p := 0, float64(world)
		for _, op := range operations {
			if calls[op] > 0 {
				fmt.Fprintf(&want, "%d,%s,%d,%v,%d,%d\n", world, op, instances[op], float64(calls[op])/p, sent[op],
					received[op])
				total += calls[op]
			}
		}
		same(t, fmt.Sprintf("seed %d collectives", seed), ask(t, run, "collectives"), want.String())
		same(t, fmt.Sprintf("seed %d ratio", seed), ask(t, run, "ratio"),
			fmt.Sprintf("%d,point-to-point,%d,%v,%v\n%d,collective,%d,%v,%v",
				world, n, float64(n)/p, float64(n)/float64(n+total), world, total, float64(total)/p,
				float64(total)/float64(n+total)))
		for u, unit := range []string{"bytes", "elements"} {
			var b strings.Builder
			for i, line := range strings.Split(strings.TrimSpace(ask(t, run, "sizes", "unit", unit)), "\n") {
				w := strings.Split(line, ",")
				fmt.Fprintf(&b, "%s,%s,%s\n", w[1], w[4], w[5])
				if n > 0 && i > 12 {
					t.Errorf("seed %d: more than 13 buckets", seed)
				}
			}
			var want strings.Builder
			for i := range 13 {
				fmt.Fprintf(&want, "%d,%d,%d\n", i+1, buckets[u][i], payload[u][i])
			}
			same(t, fmt.Sprintf("seed %d sizes in %s", seed, unit), b.String(), want.String())
		}
	}
}

// bare returns a run without rows of messages, whose manifest has their number: a point of a curve.
func bare(t *testing.T, store, name string, ranks int32, messages int64, label string) queries.Run {
	t.Helper()
	m := example.Manifest(ranks)
	m.Record, m.Counts.Messages, m.Origin.Label = "collectives", messages, label
	var b strings.Builder
	b.WriteString("ranks rank\n")
	for rank := range ranks {
		fmt.Fprintln(&b, rank)
	}
	return newRunIn(t, store, name, b.String(), m)
}

// rounded rounds every number in the rows to this number of significant digits.
func rounded(rows string, digits int) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(rows), "\n") {
		w := strings.Split(line, ",")
		for i := range w {
			if v, err := strconv.ParseFloat(w[i], 64); err == nil {
				w[i] = strconv.FormatFloat(v, 'g', digits, 64)
			}
		}
		b.WriteString(strings.Join(w, ",") + "\n")
	}
	return b.String()
}

func TestScaling(t *testing.T) {
	store := t.TempDir()
	var runs []queries.Run
	add := func(name string, ranks int32, messages int64, label string) {
		runs = append(runs, bare(t, store, name, ranks, messages, label))
	}
	add("square.A.2", 2, 12, "")
	add("square.A.4", 4, 48, "")
	add("square.A.8", 8, 192, "")
	add("line.W.1", 1, 1, "")
	add("line.W.2", 2, 2, "")
	add("line.W.3", 3, 2, "")
	add("two.C.3", 3, 9, "")
	add("two.C.5", 5, 25, "")
	add("one.C.3", 3, 7, "")
	add("none.C.3", 3, 0, "")
	// series, run, ranks, x, y, fitted, slope, slope_low, slope_high, constant, r2, points.
	// square is 3 x^2 without error, two is x^2 through two points.
	got := rounded(askOver(t, runs, "scaling"), 5)
	same(t, "power", leave(got, "line"), `
		none.C,none.C.3,3,3,0,,,,,,,0
		one.C,one.C.3,3,3,7,,,,,,,0
		square.A,square.A.2,2,2,12,12,2,2,2,3,1,3
		square.A,square.A.4,4,4,48,48,2,2,2,3,1,3
		square.A,square.A.8,8,8,192,192,2,2,2,3,1,3
		two.C,two.C.3,3,3,9,9,2,,,1,1,2
		two.C,two.C.5,5,5,25,25,2,,,1,1,2`)
	// line: x 1, 2, 3 has mean 2 and Sxx 2; y 1, 2, 2 has mean 5/3 and Syy 2/3; Sxy is 1. Slope 1/2, constant 2/3,
	// fitted 7/6, 10/6, 13/6. The squared residuals 1/36, 4/36, 1/36 add up to 1/6: R2 = 1 - (1/6) / (2/3) = 3/4, and
	// the slope's standard error is sqrt(1/6 / 1 / 2) = 0.288675. Times t(1 degree of freedom) 12.7062 that is
	// 3.66797. two: slope 16 / 2, constant 9 - 3 x 8.
	got = rounded(askOver(t, runs, "scaling", "form", "linear"), 5)
	same(t, "linear", leave(got, "square"), `
		line.W,line.W.1,1,1,1,1.1667,0.5,-3.168,4.168,0.66667,0.75,3
		line.W,line.W.2,2,2,2,1.6667,0.5,-3.168,4.168,0.66667,0.75,3
		line.W,line.W.3,3,3,2,2.1667,0.5,-3.168,4.168,0.66667,0.75,3
		none.C,none.C.3,3,3,0,,,,,,,0
		one.C,one.C.3,3,3,7,,,,,,,0
		two.C,two.C.3,3,3,9,9,8,,,-15,1,2
		two.C,two.C.5,5,5,25,25,8,,,-15,1,2`)
	// log of two: slope 16 / ln(5/3) = 31.322, constant 9 - 31.322 ln 3 = -25.411.
	got = rounded(askOver(t, runs[6:8], "scaling", "form", "log"), 5)
	same(t, "log", got, `
		two.C,two.C.3,3,3,9,9,31.322,,,-25.411,1,2
		two.C,two.C.5,5,5,25,25,31.322,,,-25.411,1,2`)
}

// leave removes the rows of a program.
func leave(rows, app string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(rows, "\n") {
		if !strings.HasPrefix(line, app) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Classes that are numbers are sorted as numbers, names may end in the number of ranks or not, and a label may be a
// number.
func TestScalingAxes(t *testing.T) {
	store := t.TempDir()
	runs := []queries.Run{
		bare(t, store, "mg.A.3", 3, 30, "0.5"), bare(t, store, "mg.B.3", 3, 90, "1.5"),
		bare(t, store, "mg.C.3", 3, 270, "x"),
		bare(t, store, "mg.B.5", 5, 7, ""), bare(t, store, "ring.3", 3, 3, ""), bare(t, store, "ring.5", 5, 5, ""),
		bare(t, store, "17", 3, 5, ""),
	}
	// mg: u = ln 3, ln 4, ln 5 with mean 1.364781 and Suu 0.131166; v goes up by ln 3, so Suv is 1.098612 x (0.266169
	// + 0.244657).
	rows := rounded(askOver(t, runs, "scaling", "by", "class"), 5)
	same(t, "class", columns(rows, 0, 1, 3, 4, 6), `
		17.3,17,,5,
		mg.3,mg.A.3,3,30,4.2786
		mg.3,mg.B.3,4,90,4.2786
		mg.3,mg.C.3,5,270,4.2786
		mg.5,mg.B.5,4,7,
		ring.3,ring.3,,3,
		ring.5,ring.5,,5,`)
	rows = rounded(askOver(t, runs, "scaling", "by", "label", "form", "linear"), 5)
	same(t, "label", columns(rows, 0, 1, 3, 4, 6, 9), `
		17,17,,5,,
		mg.A,mg.A.3,0.5,30,,
		mg.B,mg.B.3,1.5,90,,
		mg.B,mg.B.5,,7,,
		mg.C,mg.C.3,,270,,
		ring,ring.3,,3,,
		ring,ring.5,,5,,`)
	rows = rounded(askOver(t, runs[4:], "scaling", "form", "linear"), 5)
	same(t, "ranks", columns(rows, 0, 1, 3, 4, 6), `
		17,17,3,5,
		ring,ring.3,3,3,1
		ring,ring.5,5,5,1`)
}

// columns picks columns of rows.
func columns(rows string, at ...int) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(rows), "\n") {
		w := strings.Split(line, ",")
		for i, c := range at {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(w[c])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// timed has times: rank 3 sends to 1 and 4 and to itself, and waits; all have a barrier; 2 idles.
const timed = world + five + `
events rank seq call class comm instance send_bytes start_ns end_ns compute_ns
0 0 MPI_Barrier collective 0 0 0 1000 1500 1000
1 0 MPI_Recv recv - - - 100 400 100
1 1 MPI_Barrier collective 0 0 0 400 1500 0
2 0 MPI_Barrier collective 0 0 0 700 1500 700
3 0 MPI_Isend send - - - 50 90 50
3 1 MPI_Send send - - - 90 190 0
3 2 MPI_Sendrecv sendrecv - - - 190 210 0
3 3 MPI_Wait complete - - - 210 260 0
3 4 MPI_Bcast collective 1 0 64 300 310 40
3 5 MPI_Barrier collective 0 1 0 900 1500 590
4 0 MPI_Recv recv - - - 10 190 10
4 1 MPI_Barrier collective 0 0 0 1400 - 1210

messages src dst comm tag bytes send_count send_seq recv_post_seq
3 1 0 9 4097 - 0 0
3 4 0 9 903 - 1 0
3 3 0 9 1000 - 2 2
`

// Every measure of one run of 5 ranks: 3 messages of 6000 bytes together; 6 collective calls, in which 64 bytes are
// sent. Sends and receives take 300 + 40 + 100 + 20 + 180 = 640 ns, the wait 50, the collectives 500 + 1100 + 800 +
// 10 + 600 = 3010 (one never returned), computing 1000 + 100 + 700 + 50 + 40 + 590 + 10 + 1210 = 3700; each divided
// by 5. The manifest has 12 calls and the end.
func TestMeasuresThatScale(t *testing.T) {
	m := example.Manifest(5)
	m.Counts.Calls, m.EndNs = 12, 1500
	store := t.TempDir()
	runs := map[string]queries.Run{"all": newRunIn(t, store, "all.5", timed, m)}
	m.TimeOrigin = "untimed"
	runs["untimed"] = newRunIn(t, store, "untimed.5", timed, m)
	m.TimeOrigin, m.Record = "virtual", "messages"
	runs["messages"] = newRunIn(t, store, "messages.5", timed, m)
	m.Record, m.Counts.Messages, m.Counts.MessageBytes = "collectives", 30, 600
	runs["collectives"] = newRunIn(t, store, "collectives.5", timed, m)
	for _, c := range []struct{ measure, all, untimed, messages, collectives string }{
		{"messages", "3", "3", "3", "30"},
		{"bytes", "6000", "6000", "6000", "600"},
		{"messages-per-rank", "0.6", "0.6", "0.6", "6"},
		{"bytes-per-rank", "1200", "1200", "1200", "120"},
		{"mean-message-bytes", "2000", "2000", "2000", "20"},
		{"partners-max", "2", "2", "2", ""},
		{"collectives-per-rank", "1.2", "1.2", "1.2", "1.2"},
		{"collective-bytes", "64", "64", "64", "64"},
		{"ratio", "0.5", "0.5", "0.5", "5"},
		{"collective-share", "0.66667", "0.66667", "0.66667", "0.16667"},
		{"calls-per-rank", "2.4", "2.4", "2.4", "2.4"},
		{"point-to-point-ns", "128", "", "", ""},
		{"completion-ns", "10", "", "", ""},
		{"collective-ns", "602", "", "602", "602"},
		{"compute-ns", "740", "740", "", ""},
		{"runtime-ns", "1490", "", "", ""},
		{"end-ns", "1500", "", "1500", "1500"},
	} {
		for name, want := range map[string]string{"all": c.all, "untimed": c.untimed, "messages": c.messages,
			"collectives": c.collectives} {
			rows := rounded(ask(t, runs[name], "scaling", "measure", c.measure), 5)
			if got := strings.TrimSpace(columns(rows, 4)); got != want {
				t.Errorf("%s of %s: %q, want %q", c.measure, name, got, want)
			}
		}
	}
	// Runs with times of different origins are not in one series.
	rows := askOver(t, []queries.Run{runs["all"], runs["messages"]}, "scaling", "measure", "end-ns")
	same(t, "origins", columns(rows, 0), "all measured\nmessages virtual")
}

// TestScalingAgainstGonum compares fits of random points, up to 34 of them, with another library's regression and t
// distribution.
func TestScalingAgainstGonum(t *testing.T) {
	for seed, n := range []int{3, 9, 34} {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		store := t.TempDir()
		var runs []queries.Run
		var x, y, lnx, lny []float64
		for i := range n {
			ranks, messages := 1+rng.Int32N(90), 1+rng.Int64N(1<<20)
			runs = append(runs, bare(t, store, fmt.Sprintf("r%d.A.%d", i, ranks), ranks, messages, ""))
			runs[i].Name = fmt.Sprintf("r.A.%d", 1000+i) // one series
			x, y = append(x, float64(ranks)), append(y, float64(messages))
			lnx, lny = append(lnx, math.Log(x[i])), append(lny, math.Log(y[i]))
		}
		for form, p := range map[string][2][]float64{"power": {lnx, lny}, "log": {lnx, y}, "linear": {x, y}} {
			intercept, slope := stat.LinearRegression(p[0], p[1], nil, false)
			r2 := stat.RSquared(p[0], p[1], nil, intercept, slope)
			var sse, suu float64
			mean := stat.Mean(p[0], nil)
			for i := range n {
				sse += math.Pow(p[1][i]-intercept-slope*p[0][i], 2)
				suu += math.Pow(p[0][i]-mean, 2)
			}
			f := float64(n - 2)
			half := distuv.StudentsT{Sigma: 1, Nu: f}.Quantile(0.975) * math.Sqrt(sse/f/suu)
			constant := intercept
			if form == "power" {
				constant = math.Exp(intercept)
			}
			for i, line := range strings.Split(strings.TrimSpace(askOver(t, runs, "scaling", "form", form)), "\n") {
				w := strings.Split(line, ",")
				for c, want := range map[int]float64{6: slope, 7: slope - half, 8: slope + half, 9: constant, 10: r2,
					11: float64(n)} {
					got, err := strconv.ParseFloat(w[c], 64)
					if err != nil || math.Abs(got-want) > 2e-6*(math.Abs(want)+half) {
						t.Fatalf("%d points, %s, row %d, column %d: %s, want %v", n, form, i, c, w[c], want)
					}
				}
			}
		}
	}
}

// aside has communication on communicator 1 alone, whose ranks 0, 1 and 2 are the world's 4, 2 and 3: a message of
// 4097 bytes from its rank 1 to its rank 2 and one of 17 from there to its rank 0, a bcast of 40 bytes from its rank
// 2, and an alltoallv in which its rank 0 sends 5 bytes to its rank 1 and 6 to itself. A query that mistakes these
// for world ranks shows traffic of ranks 0 and 1.
const aside = comms + five + `
events rank seq call class comm instance send_peer send_world send_tag send_count send_bytes recv_peer recv_world recv_tag recv_bytes root_world
2 0 MPI_Send send 1 - 2 3 9 4097 4097 - - - - -
2 1 MPI_Bcast collective 1 0 - - - 10 0 - - - 40 3
2 2 MPI_Alltoallv collective 1 1 - - - 0 0 - - - 5 -
3 0 MPI_Recv recv 1 - - - - - - 1 2 9 4097 -
3 1 MPI_Send send 1 - 0 4 8 17 17 - - - - -
3 2 MPI_Bcast collective 1 0 - - - 10 40 - - - 0 3
3 3 MPI_Alltoallv collective 1 1 - - - 0 0 - - - 0 -
4 0 MPI_Recv recv 1 - - - - - - 2 3 8 17 -
4 1 MPI_Bcast collective 1 0 - - - 10 0 - - - 40 3
4 2 MPI_Alltoallv collective 1 1 - - - 11 11 - - - 6 -

messages src dst comm tag bytes send_count send_seq recv_post_seq recv_done_seq
2 3 1 9 4097 4097 0 0 0
3 4 1 8 17 17 1 0 0

parts rank seq peer_world send_bytes recv_bytes
2 2 4 0 5
4 2 2 5 0
4 2 4 6 6
`

func TestSubcommunicatorsAreInWorldRanks(t *testing.T) {
	run := newRun(t, "aside.5", aside, example.Manifest(5))
	same(t, "density of messages", ask(t, run, "density", "collectives", "none"), `
		2,3,1,4097
		3,4,1,17`)
	// The bcast from 3; the alltoallv through rank 4, the communicator's rank 0: 2 and 3 send nothing to it, 2 gets 5
	// bytes.
	same(t, "density, rooted", ask(t, run, "density"), `
		2,3,1,4097
		2,4,1,0
		3,2,1,40
		3,4,3,57
		4,2,1,5
		4,3,1,0`)
	same(t, "density, logical", ask(t, run, "density", "collectives", "logical"), `
		2,3,1,4097
		3,2,1,40
		3,4,2,57
		4,2,1,5`)
	same(t, "data-density", ask(t, run, "data-density", "collectives", "logical"), `
		2,3,4097,1
		3,4,57,2
		3,2,40,1
		4,2,5,1`)
	same(t, "sizes", some(ask(t, run, "sizes", "collectives", "calls")), `
		5,1,<= 16,16,3,16
		5,2,<= 64,64,4,137
		5,6,<= 16 Ki,16384,1,4097`)
	// 2 messages and 6 calls of 5 ranks; 2 and 3 of them exchange messages with two others or one.
	same(t, "ratio", ask(t, run, "ratio"), `
		5,point-to-point,2,0.4,0.25
		5,collective,6,1.2,0.75`)
	same(t, "collectives", ask(t, run, "collectives"), `
		5,MPI_Alltoallv,1,0.6,11,11
		5,MPI_Bcast,1,0.6,40,80`)
	// rank, destinations, sources, partners, messages and bytes sent and received, the busiest with its messages and
	// bytes, to itself.
	same(t, "partners", ask(t, run, "partners"), `
		0,0,0,0,0,0,0,0,,,,0,0
		1,0,0,0,0,0,0,0,,,,0,0
		2,1,0,1,1,4097,0,0,3,1,4097,0,0
		3,1,1,2,1,17,1,4097,2,1,4097,0,0
		4,0,1,1,0,0,1,17,3,1,17,0,0`)
	same(t, "most partners", columns(ask(t, run, "scaling", "measure", "partners-max"), 4), "2")
}
