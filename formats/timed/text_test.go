package timed_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// script is a trace as text:
//
//	ranks 3
//	comm split 2 0                   communicator 1, 2, ... with these world ranks; | is between two groups
//	0 10-20 Isend to=1 stag=9 sent=4097 post=7
//	0.1 15- Wait end=7               of thread 1; it never returns
//
// Words of a call are: comm (world if there is none, - for no communicator, self), to and from (ranks of it), stag,
// rtag, sent, received, root, label, any (posted with a wildcard, any=no without), poll, atmost, spent=NS, window,
// handle, makes, init, parts=TO/FROM with counts between commas; post=REQUEST, and after "also" the words of the next
// row of MPI_Startall; end=REQUEST, with /received:comm:from:tag:bytes, /collected:comm:root:sent:received, /cancelled
// or /lost.
type script struct {
	t     testing.TB
	comms []*timed.Comm
	ranks int
	calls map[[2]int][]timed.Call // by rank and thread
	self  *timed.Comms
}

var called = regexp.MustCompile(`^(\d+)(?:\.(\d+))? (-?\d+)-(-?\d*) (\w+)(?: (.*))?$`)

func parse(t testing.TB, text string) *script {
	t.Helper()
	s := &script{t: t, calls: map[[2]int][]timed.Call{}}
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		switch {
		case len(w) == 0:
		case w[0] == "ranks":
			s.ranks = s.number(w[1])
			s.self = timed.NewComms(s.ranks)
			s.comms = []*timed.Comm{s.self.World()}
		case w[0] == "comm":
			s.comm(w[1:])
		default:
			s.call(strings.TrimSpace(line))
		}
	}
	return s
}

func (s *script) number(w string) int {
	n, err := strconv.Atoi(w)
	if err != nil {
		s.t.Fatalf("%q is no number", w)
	}
	return n
}

func (s *script) comm(w []string) {
	kind := schema.CommKind(slices.Index(schema.CommKindNames, w[0]))
	groups := [][]int32{{}}
	for _, x := range w[1:] {
		if x == "|" {
			groups = append(groups, []int32{})
			continue
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], int32(s.number(x)))
	}
	s.comms = append(s.comms, timed.NewComm(kind, groups...))
}

func (s *script) call(line string) {
	m := called.FindStringSubmatch(line)
	if m == nil {
		s.t.Fatalf("%q is no call", line)
	}
	id, ok := schema.CallByName("MPI_" + m[5])
	if !ok {
		s.t.Fatalf("%q is no call of MPI", m[5])
	}
	var c timed.Call
	c.Reset()
	rank, thread := s.number(m[1]), 0
	if m[2] != "" {
		thread = s.number(m[2])
	}
	row := &c.Row
	row.Rank, row.Thread, row.Call, row.Class = int32(rank), int32(thread), int16(id), int16(schema.Calls[id].Class)
	if row.StartNs = int64(s.number(m[3])); m[4] != "" {
		row.EndNs = int64(s.number(m[4]))
	}
	switch schema.Class(row.Class) {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv:
		row.ProcNull, row.Comm = 0, 0
	case schema.ClassCollective:
		row.Comm = 0
	}
	for w := range strings.FieldsSeq(m[6]) {
		name, value, _ := strings.Cut(w, "=")
		if name == "also" {
			c.More = append(c.More, schema.NullEvent)
			row = &c.More[len(c.More)-1]
			row.Rank, row.Thread, row.Call, row.Class, row.Comm, row.ProcNull = c.Row.Rank, c.Row.Thread, c.Row.Call,
				int16(schema.ClassRecv), 0, 0
			row.StartNs, row.EndNs = c.Row.EndNs, c.Row.EndNs
			continue
		}
		if !s.word(&c, row, name, value) && !s.mark(&c, name, value) {
			s.t.Fatalf("%q in %q is no word of a call", w, line)
		}
	}
	key := [2]int{rank, thread}
	s.calls[key] = append(s.calls[key], c)
}

// word sets a column of a row.
func (s *script) word(c *timed.Call, row *schema.Event, name, value string) bool {
	n := func() int32 { return int32(s.number(value)) }
	comm := func() *timed.Comm {
		if row.Comm == -1 {
			return nil
		}
		return s.comms[row.Comm]
	}
	world := func() int32 {
		if comm() == nil {
			return row.Rank
		}
		w, ok := comm().Peer(row.Rank, int64(n()))
		if !ok {
			s.t.Fatalf("rank %s is no rank of communicator %d", value, row.Comm)
		}
		return w
	}
	switch name {
	case "comm":
		switch value {
		case "-":
			row.Comm = null32
		case "self":
			row.Comm = -1
		default:
			row.Comm = n()
		}
	case "class":
		row.Class = int16(map[string]schema.Class{"send": schema.ClassSend, "recv": schema.ClassRecv}[value])
		row.Comm, row.ProcNull = 0, 0
	case "to":
		row.SendPeer, row.SendWorld = n(), world()
	case "from":
		row.RecvPeer, row.RecvWorld = n(), world()
	case "root":
		row.RootWorld = world()
	case "stag":
		row.SendTag = n()
	case "rtag":
		row.RecvTag = n()
	case "sent":
		row.SendBytes = int64(n())
	case "received":
		row.RecvBytes = int64(n())
	case "label":
		row.Label = value
	case "any":
		if row.PostedAny = schema.AnySource; value == "no" {
			row.PostedAny = 0
		}
	default:
		return false
	}
	return true
}

// mark sets what a call does to requests, windows and files.
func (s *script) mark(c *timed.Call, name, value string) bool {
	n := func() uint64 { return uint64(s.number(value)) }
	switch name {
	case "poll":
		c.Poll = true
	case "atmost":
		c.AtMost = true
	case "spent":
		c.SpentNs = int64(n())
	case "window":
		c.Window = uint32(n())
	case "handle":
		c.Handle = uint32(n())
	case "makes":
		c.Makes = n()
	case "init":
		c.Inits = append(c.Inits, n())
	case "post":
		c.Posts = append(c.Posts, n())
	case "parts":
		to, from, _ := strings.Cut(value, "/")
		c.To, c.From = s.numbers(to), s.numbers(from)
	case "end":
		c.Ends = append(c.Ends, s.ending(c, value))
	default:
		return false
	}
	return true
}

func (s *script) numbers(text string) (all []int64) {
	if text == "" {
		return nil
	}
	for w := range strings.SplitSeq(text, ",") {
		all = append(all, int64(s.number(w)))
	}
	return all
}

func (s *script) ending(c *timed.Call, text string) timed.Ending {
	request, how, _ := strings.Cut(text, "/")
	x := timed.Ending{Request: uint64(s.number(request)), Got: timed.NullOutcome}
	w := strings.Split(how, ":")
	field := func(i int) int32 {
		if w[i] == "-" {
			return null32
		}
		return int32(s.number(w[i]))
	}
	switch w[0] {
	case "received":
		x.Received = true
		x.Got.Comm, x.Got.RecvPeer, x.Got.RecvTag, x.Got.RecvBytes = field(1), field(2), field(3), int64(field(4))
		x.Got.RecvWorld, _ = s.comms[x.Got.Comm].Peer(c.Row.Rank, int64(field(2)))
	case "collected":
		x.Collected = true
		x.Got.Comm, x.Got.SendBytes, x.Got.RecvBytes = field(1), int64(field(3)), int64(field(4))
		if root := field(2); root != null32 {
			x.Got.RootWorld, _ = s.comms[x.Got.Comm].Peer(c.Row.Rank, int64(root))
		}
	case "cancelled":
		x.Cancelled = true
	case "lost":
		x.Lost = true
	case "":
	default:
		s.t.Fatalf("%q is no way to end a request", how)
	}
	return x
}

// reader hands over the calls of a thread.
type reader struct {
	calls []timed.Call
	comms *timed.Comms
	at    int
	err   error
	open  *atomic.Int64
}

func (r *reader) Next(c *timed.Call) (bool, error) {
	if r.at == len(r.calls) {
		return false, r.err
	}
	*c = r.calls[r.at]
	c.More = slices.Clone(c.More)
	if c.Row.Comm == -1 {
		c.Row.Comm = r.comms.Self(c.Row.Rank).ID
	}
	r.at++
	return true, nil
}

func (r *reader) Site(first int32) int32 { return first }
func (r *reader) Read() int64            { return int64(r.at) }
func (r *reader) Close()                 { r.open.Add(-1) }

// trace returns the trace of a script, whose communicators it may give numbers only once. open counts the readers that
// are open.
func (s *script) trace(open *atomic.Int64) timed.Trace {
	comms := timed.NewComms(s.ranks)
	for _, c := range s.comms[1:] {
		comms.Add(timed.NewComm(c.Kind, groups(c)...))
	}
	tr := timed.Trace{Comms: comms, Hosts: []string{"one"}, HostOf: make([]int32, s.ranks)}
	for _, calls := range s.calls {
		tr.Size += int64(len(calls))
		for i := range calls {
			tr.AtMost = tr.AtMost || calls[i].AtMost
		}
	}
	tr.Open = func(rank int32, _ bool) (all []timed.Reader, err error) {
		for thread := 0; thread == 0 || s.calls[[2]int{int(rank), thread}] != nil; thread++ {
			open.Add(1)
			all = append(all, &reader{calls: s.calls[[2]int{int(rank), thread}], comms: comms, open: open})
		}
		return all, nil
	}
	tr.Skim = func(_ context.Context, rank int32, k *timed.Sketch) error {
		read := 0
		for thread := 0; s.calls[[2]int{int(rank), thread}] != nil; thread++ {
			for _, c := range s.calls[[2]int{int(rank), thread}] {
				if !c.Poll {
					k.Start(c.Row.StartNs)
				}
				for i := range c.More {
					k.Start(c.More[i].StartNs)
				}
				read++
			}
		}
		k.Read(int64(read))
		return nil
	}
	return tr
}

func groups(c *timed.Comm) [][]int32 {
	if c.Inter() {
		return [][]int32{c.Groups[0], c.Groups[1]}
	}
	return [][]int32{c.Groups[0]}
}
