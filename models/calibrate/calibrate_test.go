package calibrate

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// truth is a network of 1700 ns and 3 GB/s.
var truth = Line{LatencyNs: 1700, NsPerByte: 1.0 / 3}

// stepped is a network whose bandwidth changes at 4 KiB and at 256 KiB.
var stepped = Line{LatencyNs: 900, NsPerByte: 0.5, Pieces: []Piece{{4096, 3000, 0.1}, {262144, 0, 0.25}}}

// powers returns points of the line at sizes of 2^0 to 2^most bytes, with the same number of messages each.
func powers(l *Line, most int, messages int64) []Point {
	var points []Point
	for i := range most + 1 {
		points = append(points, Point{Bytes: 1 << i, Messages: messages, Ns: l.Ns(1 << i)})
	}
	return points
}

func checkNear(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want)+1e-9 {
		t.Errorf("%s: %g; want %g within %g", what, got, want, relative)
	}
}

func TestLineNs(t *testing.T) {
	// 900 + 4096/2 + 3000 + (262144-4096)/10 + (262147-262144)/4
	checkNear(t, "262147 bytes", stepped.Ns(262147), 900+2048+3000+25804.8+0.75, 1e-12)
	checkNear(t, "4096 bytes", stepped.Ns(4096), 2948, 1e-12)
}

func TestFitOfExactLine(t *testing.T) {
	f, err := FitLine(powers(&truth, 22, 50), true)
	if err != nil {
		t.Fatal(err)
	}
	checkNear(t, "L", f.Line.LatencyNs, 1700, 1e-6)
	checkNear(t, "1/B", f.Line.NsPerByte, 1.0/3, 1e-6)
	if len(f.Line.Pieces) != 0 || f.ErrorMax > 1e-6 || f.MinBytes != 1 || f.MaxBytes != 1<<22 || f.Messages != 23*50 {
		t.Errorf("%+v", f)
	}
}

// Times are rounded to whole nanoseconds, and sizes are those that a program sends.
func TestFitOfRoundedTimes(t *testing.T) {
	var points []Point
	for _, bytes := range []int64{0, 17, 4097, 4097, 65537, 9} {
		points = append(points, Point{Bytes: bytes, Messages: 3, Ns: math.Round(truth.Ns(bytes))})
	}
	f, err := FitLine(points, true)
	if err != nil {
		t.Fatal(err)
	}
	checkNear(t, "L", f.Line.LatencyNs, 1700, 1e-3)
	checkNear(t, "1/B", f.Line.NsPerByte, 1.0/3, 1e-3)
}

func TestFitFindsPieces(t *testing.T) {
	f, err := FitLine(powers(&stepped, 24, 50), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Line.Pieces) != 2 {
		t.Fatalf("%+v", f.Line)
	}
	checkNear(t, "L", f.Line.LatencyNs, 900, 1e-3)
	checkNear(t, "1/B", f.Line.NsPerByte, 0.5, 1e-3)
	for i, p := range f.Line.Pieces {
		want := stepped.Pieces[i]
		if p.AboveBytes != want.AboveBytes {
			t.Errorf("piece %d: %+v; want %+v", i, p, want)
		}
		checkNear(t, "step", p.StepNs+1, want.StepNs+1, 0.01)
		checkNear(t, "ns per byte", p.NsPerByte, want.NsPerByte, 0.01)
	}
	single, err := FitLine(powers(&stepped, 24, 50), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(single.Line.Pieces) != 0 || single.ErrorTypical < 10*f.ErrorTypical ||
		single.ErrorTypical != f.SingleErrorTypical {
		t.Errorf("in one piece: %g, in three: %g, which had %g in one", single.ErrorTypical, f.ErrorTypical,
			f.SingleErrorTypical)
	}
}

// Times are up to 20 % longer than the truth, and a few of them 3 to 30 times, as if another program had the CPU.
func TestFitOfNoisyTimes(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		points := powers(&truth, 22, 50)
		for i := range points {
			points[i].Ns *= 1 + 0.2*rng.Float64()
		}
		for range 3 {
			points[rng.IntN(len(points))].Ns *= 3 + 27*rng.Float64()
		}
		f, err := FitLine(points, true)
		if err != nil {
			t.Fatal(err)
		}
		checkNear(t, "L", f.Single.LatencyNs, 1.1*1700, 0.15) // by 10 % in the mean
		checkNear(t, "1/B", f.Single.NsPerByte, 1.1/3, 0.15)
		if len(f.Line.Pieces) != 0 {
			t.Errorf("seed %d: pieces of noise: %+v", seed, f.Line)
		}
	}
}

func TestFitIsNotNegative(t *testing.T) {
	// Without bounds the latency would be -100 ns here, and the bandwidth below negative.
	f, err := FitLine([]Point{{100, 9, 100, 0, 0}, {200, 9, 300, 0, 0}, {300, 9, 500, 0, 0}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if f.Line.LatencyNs != 0 || f.Line.NsPerByte < 1 || f.Line.NsPerByte > 1.7 {
		t.Errorf("%+v", f.Line)
	}
	if f, err = FitLine([]Point{{100, 9, 500, 0, 0}, {200, 9, 450, 0, 0}, {300, 9, 400, 0, 0}}, false); err != nil {
		t.Fatal(err)
	}
	if f.Line.NsPerByte != 0 || f.Line.LatencyNs < 400 || f.Line.LatencyNs > 500 {
		t.Errorf("%+v", f.Line)
	}
}

func TestFitWithoutLine(t *testing.T) {
	if _, err := FitLine([]Point{{17, 3, 100, 0, 0}, {17, 4, 110, 0, 0}}, true); !errors.Is(err, ErrOneSize) {
		t.Error(err)
	}
	if _, err := FitLine([]Point{{17, 3, 100, 0, 0}, {18, 4, -5, 0, 0}}, true); err == nil || errors.Is(err, ErrOneSize) {
		t.Error(err)
	}
}

func TestFindThreshold(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []Eager
		want  *Threshold
	}{
		{"nothing", nil, nil},
		{"all return", []Eager{{17, 3, 0}, {4097, 5, 0}}, &Threshold{models.NoThreshold, 4097, 8, 0}},
		{"all wait", []Eager{{4097, 0, 3}, {17, 0, 5}}, &Threshold{17, -1, 8, 0}},
		{"small ones return, large ones wait", []Eager{{65537, 0, 3}, {17, 5, 0}, {4096, 2, 0}, {4097, 0, 9}},
			&Threshold{4097, 4096, 19, 0}},
		{"a send that took long, and a full buffer", []Eager{{17, 5, 1}, {4096, 20, 0}, {4097, 0, 9}, {65537, 1, 8}},
			&Threshold{4097, 4096, 44, 2}},
		{"sends that lost their CPU", []Eager{{1024, 2, 2}, {2048, 2, 2}, {4096, 0, 2}}, &Threshold{4096, 2048, 10, 4}},
	} {
		if diff := cmp.Diff(c.want, FindThreshold(c.sizes)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// addOperations adds operations on a communicator whose times are those of the phases, with noise. Their ranks enter
// within 300 ns.
func addOperations(c *Collectives, rng *rand.Rand, link *models.Interconnect, operation schema.CallID,
	phases models.Phases,
	comm int32, ranks int, n int64, noise float64) {
	c.Members[comm] = ranks
	root := schema.NullInt32
	if operation == schema.CallGather {
		root = 2
	}
	for nth := range int64(9) {
		var z models.Sizes
		b := &schema.Events{}
		last := int64(0)
		for rank := range int32(ranks) {
			send, recv := n, n
			if operation == schema.CallGather {
				recv = schema.NullInt64
				if rank == root {
					recv = n * int64(ranks)
				}
			}
			if root == schema.NullInt32 || rank == root {
				z.Add(send, recv)
			}
			start := 1e9*nth + rng.Int64N(300)
			last = max(last, start)
			b.Rank, b.Call, b.Class, b.Comm = append(b.Rank, rank), append(b.Call, int16(operation)),
				append(b.Class, int16(schema.ClassCollective)), append(b.Comm, comm)
			b.Instance, b.Request, b.RootWorld = append(b.Instance, int64(operation)<<32+n<<8+nth),
				append(b.Request, schema.NullInt64), append(b.RootWorld, root)
			b.StartNs, b.SendBytes, b.RecvBytes = append(b.StartNs, start), append(b.SendBytes, send),
				append(b.RecvBytes, recv)
			b.ErrorClass = append(b.ErrorClass, schema.NullInt32)
		}
		end := last + int64(float64(link.Collective(phases, ranks, &z))/1000*(1+noise*rng.Float64()))
		for range ranks {
			b.EndNs = append(b.EndNs, end)
		}
		c.Add(b)
	}
}

// Fit finds the phases from which the times were computed, and keeps those of Table 3 where they apply.
func TestFitFindsPhases(t *testing.T) {
	table := models.New("").Collectives
	link := &models.Interconnect{Latency: 2_000_000, BytesPerSecond: 500_000_000}
	truths := map[schema.CallID]models.Phases{
		schema.CallBarrier:   {FanIn: models.LOG, FanOut: models.LOG},
		schema.CallAllreduce: table[schema.CallAllreduce],
		schema.CallAlltoall:  {FanOut: models.LIN, SizeOut: models.MEAN},
		schema.CallGather:    {FanIn: models.CT, SizeIn: models.MIN, FanOut: models.LOG, SizeOut: models.MAX},
	}
	for _, noise := range []float64{0, 0.1} {
		rng := rand.New(rand.NewPCG(3, 9))
		c := &Collectives{Members: map[int32]int{}}
		for operation, phases := range truths {
			for i, ranks := range []int{3, 5, 9, 16} {
				for _, n := range []int64{9, 1031, 100003} {
					addOperations(c, rng, link, operation, phases, int32(i), ranks, n, noise)
				}
			}
		}
		found := c.Fit(link, table, Minimum)
		if len(found) != len(truths) {
			t.Fatalf("%d operations; want %d", len(found), len(truths))
		}
		for _, o := range found {
			if o.Factor > 1.02+noise/4 || o.Count != 4*3*9 || o.MinRanks != 3 || o.MaxRanks != 16 {
				t.Errorf("%s, noise %g: off by %g, %+v", o.Call, noise, o.Factor, o)
			}
			if o.Call == schema.CallAllreduce && o.Phases != table[o.Call] {
				t.Errorf("%s, noise %g: %+v; want Table 3's", o.Call, noise, o.Phases)
			}
			if p := truths[o.Call]; o.Phases.FanIn != p.FanIn && o.Phases.FanIn != p.FanOut {
				t.Errorf("%s, noise %g: %+v; want %+v", o.Call, noise, o.Phases, p)
			}
		}
	}
}

// A sample of many times has their quantiles and a bounded size.
func TestSampleQuantiles(t *testing.T) {
	s := &sample{every: 1}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		s.add(rng.Float64())
	}
	if len(s.times) > sampleSize || s.count != 100_000 {
		t.Errorf("%d of %d kept", len(s.times), s.count)
	}
	checkNear(t, "quartile", s.quantile(LowerQuartile), 0.25, 0.15)
	checkNear(t, "median", s.quantile(Median), 0.5, 0.1)
}

func TestCalibrate(t *testing.T) {
	inside := Line{LatencyNs: 300, NsPerByte: 0.1}
	c, err := Calibrate(&Input{Name: "r", Hosts: 2, RanksPerHost: 3, Inside: powers(&inside, 20, 9),
		Between: powers(&truth, 20, 9), Eager: []Eager{{9, 1, 0}, {4097, 0, 1}}, Pieces: true})
	if err != nil {
		t.Fatal(err)
	}
	m := c.Machine
	if m.Nodes != 0 || m.CPUsPerNode != 3 || m.EagerThresholdBytes != 4097 || m.Network.Latency != 1_700_000 ||
		m.Network.BytesPerSecond != 3_000_000_000 ||
		m.IntraNode.Latency != 300_000 || m.IntraNode.BytesPerSecond != 10_000_000_000 {
		t.Errorf("%+v", m)
	}
	oneHost, err := Calibrate(&Input{Name: "r", Hosts: 1, RanksPerHost: 3, CPUsPerNode: 2,
		Inside: powers(&inside, 20, 9)})
	if err != nil {
		t.Fatal(err)
	}
	if m := oneHost.Machine; m.Nodes != 1 || m.CPUsPerNode != 2 || m.Network != m.IntraNode || m.EagerThresholdGiven ||
		len(oneHost.Warnings) != 2 {
		t.Errorf("%+v %q", m, oneHost.Warnings)
	}
	if _, err := Calibrate(&Input{Name: "r", Inside: []Point{{9, 9, 9, 0, 0}}}); err == nil {
		t.Error("one size was enough")
	}
}

// Collectives of 1,031 bytes take 10,000 times as long as the others, which no model does.
func TestCalibrateWarnsOfPoorCosts(t *testing.T) {
	rng, c := rand.New(rand.NewPCG(3, 9)), &Collectives{Members: map[int32]int{}}
	phases := models.Phases{FanIn: models.LOG, SizeIn: models.MAX, FanOut: models.LOG, SizeOut: models.MAX}
	for _, n := range []int64{9, 1031, 100003} {
		link := &models.Interconnect{Latency: 2_000_000, BytesPerSecond: 500_000_000}
		if n == 1031 {
			link = &models.Interconnect{Latency: 20_000_000_000, BytesPerSecond: 50_000}
		}
		addOperations(c, rng, link, schema.CallReduce, phases, 0, 9, n, 0)
	}
	found, err := Calibrate(&Input{Name: "r", Hosts: 1, RanksPerHost: 9, Inside: powers(&truth, 20, 9), Collectives: c})
	if err != nil {
		t.Fatal(err)
	}
	want := "The costs of these collectives are off by a typical factor of more than 3: MPI_Reduce ("
	if !slices.ContainsFunc(found.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
		t.Errorf("warnings %q", found.Warnings)
	}
}
