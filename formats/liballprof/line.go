package liballprof

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/schema"
)

// parsed is a line: a call with its times on the clock of its host.
type parsed struct {
	name       string
	start, end int64 // ns; null64 where the line has none
	args       []string
}

const null64 = schema.NullInt64

// split takes a line apart; ok is false for lines that are no calls of MPI.
func split(line string) (p parsed, ok bool, err error) {
	words := strings.Split(line, ":")
	if len(words) < 3 || !strings.HasPrefix(words[0], "MPI_") && !strings.HasPrefix(words[0], "NBC_") {
		return p, false, fmt.Errorf("%q; want a call such as MPI_Barrier:1.5:0,0,4:3.5", line[:min(len(line), 40)])
	}
	p.name, p.args = words[0], words[2:len(words)-1]
	if p.start, err = microseconds(words[1]); err != nil {
		return p, false, err
	}
	p.end, err = microseconds(words[len(words)-1])
	return p, strings.HasPrefix(p.name, "MPI_"), err
}

// microseconds reads a time in microseconds, of at most three decimals that count; - is none.
func microseconds(word string) (int64, error) {
	if word == "-" {
		return null64, nil
	}
	whole, decimals, _ := strings.Cut(word, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/4000 {
		return 0, fmt.Errorf("%q; want a time in microseconds", word)
	}
	part, err := strconv.ParseUint((decimals + "000")[:3], 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q; want a time in microseconds", word)
	}
	return n*1000 + int64(part), nil
}

// decoder turns the lines of a rank into calls with arguments.
type decoder struct {
	scanning bool // what the scan is to tell is not known yet
	mpich    bool
	// stride is the size of a request of the MPI library, by which arrays of them are addressed.
	stride uint64
	// openIn returns those requests of an array that are open; nil: nobody asks for requests.
	openIn func(first, n, stride uint64) []uint64
	// cancelled are requests that MPI_Cancel was called for.
	cancelled map[uint64]bool
	vague     int64 // calls that do not tell which requests they completed

	// copies means that the files of all ranks are copies of that of rank 0. This is number me of ranks files.
	copies    bool
	me, ranks int64

	a          *calls.Args
	words      []string
	err        error
	send, recv size
	count      int64
	base       uint64
	to, from   []int64
}

// size is a count and the size of its datatype.
type size struct{ count, each int64 }

// arguments fills in the arguments of a call.
func (d *decoder) arguments(p *parsed, f *function, a *calls.Args) error {
	a.Reset()
	a.Call, a.StartNs, a.EndNs = f.call, p.start, p.end
	a.NewComm = calls.Held(0)
	spread := len(p.args) == len(f.layout)+f.counts && f.counts > 0
	if !spread && len(p.args) != len(f.layout) {
		return fmt.Errorf("%s with %d arguments; want %d", p.name, len(p.args), len(f.layout))
	}
	d.a, d.words, d.err, d.send, d.recv = a, p.args, nil, size{1, 0}, size{1, 0}
	d.count, d.base, d.to, d.from = 1, 0, nil, nil
	for _, kind := range f.layout {
		if spread && strings.ContainsRune("CDX", kind) {
			d.word() // the address
			d.counts(kind)
			continue
		}
		d.argument(kind)
	}
	if d.err != nil {
		return d.err
	}
	if f.counts > 0 && !spread {
		return fmt.Errorf("%s without the counts for each rank, which this version of liballprof does not write", p.name)
	}
	d.sizes()
	d.requests()
	return d.err
}

func (d *decoder) word() string {
	w := d.words[0]
	d.words = d.words[1:]
	return w
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// number reads an integer.
func (d *decoder) number(what string) int64 {
	w := d.word()
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil || n < -1<<40 || n > 1<<62 {
		d.fail("%s %q; want a number", what, w)
		return 0
	}
	return n
}

// argument reads an argument of a kind.
func (d *decoder) argument(kind rune) {
	a := d.a
	switch kind {
	case 's':
		d.send.count = d.number("a count")
	case 'r':
		d.recv.count = d.number("a count")
	case 'b':
		d.send.count = d.number("a count")
		d.recv.count = d.send.count
	case 'S':
		d.send.each = d.datatype()
	case 'R':
		d.recv.each = d.datatype()
	case 'B':
		d.send.each = d.datatype()
		d.recv.each = d.send.each
	case 'd':
		a.Dest = d.peer(false)
	case 'f':
		a.Source = d.peer(true)
	case 't', 'u', 'v':
		tag := int64(int32(d.number("a tag")))
		if kind != 'v' {
			a.SendTag = tag
		}
		if kind != 'u' {
			a.RecvTag = tag
		}
	case 'o':
		a.Root = d.root()
	case 'p':
		a.Op = int16(schema.OpUser)
		if n := d.number("an operation"); n > 0 && n < int64(len(ops)) {
			a.Op = int16(ops[n])
		}
	case 'c':
		a.Comm = d.handle()
	case 'e':
		a.PeerComm = d.handle()
	default:
		d.constructorArgument(kind)
	}
}

func (d *decoder) constructorArgument(kind rune) {
	a := d.a
	switch kind {
	case 'k':
		a.Color = d.number("a color")
	case 'y':
		a.Key = d.number("a key")
	case 'l':
		a.Leader = d.number("a rank")
	case 'm':
		a.RemoteLeader = d.number("a rank")
	case 'h':
		a.High = d.number("a flag") != 0
	case 'n':
		d.count = d.number("a number of requests")
	case 'q':
		d.base = d.address("a request")
	case 'w':
		held := calls.Held(d.address("a communicator"))
		switch {
		case a.Call == schema.CallCommFree:
			a.Comm = held
		case a.Call == schema.CallCommSplit && a.Color < 0:
			a.NewComm = calls.NoComm // MPI_UNDEFINED
		default:
			a.NewComm = held
		}
	default:
		d.word()
	}
}

func (d *decoder) address(what string) uint64 {
	w := d.word()
	at, err := strconv.ParseUint(w, 10, 64)
	if err != nil {
		d.fail("%s at %q; want an address", what, w)
	}
	return at
}

// datatype reads the size of a datatype: a number of it, the size and the extent.
func (d *decoder) datatype() int64 {
	w := d.word()
	part := strings.Split(w, ",")
	if len(part) != 3 {
		d.fail("the datatype %q; want its number, size and extent", w)
		return 0
	}
	n, err := strconv.ParseInt(part[1], 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		d.fail("a datatype of %s bytes", part[1])
		return 0
	}
	return n
}

// handle reads a communicator: its handle, the rank of the caller in it, its size.
func (d *decoder) handle() calls.Handle {
	w := d.word()
	var n [3]int64
	for i, part := range strings.SplitN(w, ",", 4) {
		x, err := strconv.ParseUint(part, 10, 64)
		if i > 2 || err != nil || i > 0 && x > math.MaxInt32 {
			d.fail("the communicator %q; want its handle, a rank and its size", w)
			return calls.Handle{}
		}
		n[i] = int64(x)
	}
	if strings.Count(w, ",") != 2 || n[1] >= n[2] {
		d.fail("the communicator %q; want its handle, a rank and its size", w)
	}
	if d.copies && n[1] == 0 && n[2] == d.ranks {
		n[1] = d.me
	}
	return calls.Handle{Number: n[0], Rank: n[1], Size: n[2]}
}

// peer reads a rank. Of negative ones, Open MPI has -1 for MPI_ANY_SOURCE and -2 for MPI_PROC_NULL, MPICH the
// reverse.
func (d *decoder) peer(source bool) int64 {
	n := int64(int32(d.number("a rank")))
	switch isAny := (n == -1) != d.mpich; {
	case n >= 0:
		return n
	case n < -2:
		d.fail("rank %d; want a rank, or -1 or -2 for MPI_ANY_SOURCE and MPI_PROC_NULL", n)
	case isAny && source:
		return calls.AnySource
	case isAny && !d.scanning:
		d.fail("a message to %d, which other calls of the trace show to be MPI_ANY_SOURCE", n)
	}
	return calls.ProcNull
}

// root reads the root of a collective: negative ones are MPI_ROOT, -4 in Open MPI and -3 in others, and MPI_PROC_NULL,
// -2 or -1.
func (d *decoder) root() int64 {
	n := d.number("a root")
	switch n {
	case -1, -2:
		return calls.ProcNull
	case -3, -4:
		return calls.Root
	}
	return n
}

// counts reads values for each rank.
func (d *decoder) counts(kind rune) {
	w := d.word()
	if kind == 'X' {
		return // displacements
	}
	var all []int64
	for part := range strings.SplitSeq(w, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n > math.MaxInt32 {
			d.fail("the count %q", part)
			return
		}
		all = append(all, n)
	}
	if kind == 'C' {
		d.to = all
	} else {
		d.from = all
	}
}

// sizes makes bytes of counts and sizes. Only the root has arguments of a gather's receive side and of a scatter's send
// side that mean something.
func (d *decoder) sizes() {
	a := d.a
	if a.Call.Is(schema.FactRooted) && a.Root != a.Comm.Rank && a.Root != calls.Root {
		switch a.Call {
		case schema.CallGather, schema.CallGatherv:
			d.recv, d.from = size{}, nil
		case schema.CallScatter, schema.CallScatterv:
			d.send, d.to = size{}, nil
		}
	}
	d.a.Send, d.a.Recv = d.bytes(d.send), d.bytes(d.recv)
	for _, side := range []struct {
		counts []int64
		each   int64
		out    *[]int64
	}{{d.to, d.send.each, &d.a.To}, {d.from, d.recv.each, &d.a.From}} {
		total := int64(0)
		for _, n := range side.counts {
			b := d.bytes(size{n, side.each})
			if total += b; total > math.MaxInt64/4 {
				d.fail("more than %d bytes", int64(math.MaxInt64/4))
			}
			*side.out = append(*side.out, b)
		}
	}
}

func (d *decoder) bytes(s size) int64 {
	if s.count < 0 || s.each > 0 && s.count > math.MaxInt64/4/s.each {
		d.fail("%d elements of %d bytes", s.count, s.each)
		return 0
	}
	return s.count * s.each
}

// requests fills in the requests of a call: those of an array stand at addresses one stride apart.
func (d *decoder) requests() {
	a := d.a
	a.Request = d.base
	if a.Call.Is(schema.FactMakesRequest|schema.FactPersistent) || a.Call == schema.CallStart {
		delete(d.cancelled, d.base)
	}
	// What a test found is not told: it counts as time spent asking.
	a.Failed = a.Call.Is(schema.FactTests)
	switch a.Call {
	case schema.CallWait:
		d.end(calls.End{Request: d.base})
	case schema.CallRequestFree:
		d.end(calls.End{Request: d.base, Freed: true})
	case schema.CallCancel:
		if d.cancelled == nil {
			d.cancelled = map[uint64]bool{}
		}
		d.cancelled[d.base] = true
	case schema.CallWaitall, schema.CallStartall:
		d.array()
	case schema.CallWaitany, schema.CallWaitsome, schema.CallTest, schema.CallTestall, schema.CallTestany,
		schema.CallTestsome:
		d.vague++
	}
}

// array fills in the requests of an array. Those that are not open (MPI_REQUEST_NULL) do not matter.
func (d *decoder) array() {
	if d.count < 0 || d.count > math.MaxInt32 {
		d.fail("%d requests", d.count)
		return
	}
	if d.openIn == nil {
		return
	}
	for _, request := range d.openIn(d.base, uint64(d.count), d.stride) {
		if d.a.Call == schema.CallStartall {
			delete(d.cancelled, request)
			d.a.Requests = append(d.a.Requests, request)
		} else {
			d.end(calls.End{Request: request})
		}
	}
}

// end fills in a request that is completed. A receive that the program cancelled counts as cancelled, which the trace
// does not tell.
func (d *decoder) end(e calls.End) {
	if d.cancelled[e.Request] {
		delete(d.cancelled, e.Request)
		e.Status, e.Freed = &calls.Status{Cancelled: true}, false
	}
	d.a.Ends = append(d.a.Ends, e)
}
