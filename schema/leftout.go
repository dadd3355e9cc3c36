package schema

import (
	"path"
	"slices"
	"strings"
)

// Reads tells which rows of a run an answer is made of, to find out what a run that lacks some lacks of it.
type Reads uint8

// Rows that an answer can be made of.
const (
	// ReadsMessages: messages. One is left out with the row that sent it.
	ReadsMessages Reads = 1 << iota
	// ReadsOperations: the rows of calls that are not of messages: collectives, windows, files.
	ReadsOperations
	// ReadsMessageCalls: the rows of calls that send, receive, probe, start or complete.
	ReadsMessageCalls
	// ReadsAll: all rows.
	ReadsAll = ReadsMessages | ReadsOperations | ReadsMessageCalls
)

// CallFilter chooses calls by patterns of their names, as path.Match has them (--calls).
type CallFilter struct {
	Kept []string // calls that are kept; empty means all
	Out  []string // calls that are left out of those
}

// Keeps reports whether the filter keeps the rows of a call.
func (f *CallFilter) Keeps(call CallID) bool {
	fits := func(pattern string) bool {
		ok, err := path.Match(pattern, Calls[call].Name)
		return ok && err == nil
	}
	return (len(f.Kept) == 0 || slices.ContainsFunc(f.Kept, fits)) && !slices.ContainsFunc(f.Out, fits)
}

// Add adds a pattern as the command line has it: with a minus in front it leaves calls out.
func (f *CallFilter) Add(pattern string) {
	if name, drops := strings.CutPrefix(pattern, "-"); drops {
		f.Out = append(f.Out, name)
	} else {
		f.Kept = append(f.Kept, name)
	}
}

// callFilter marks the patterns in Manifest.Filters.
const callFilter = "call:"

// CallFilterWord returns the word of Manifest.Filters for a pattern as the command line has it.
func CallFilterWord(pattern string) string {
	if name, drops := strings.CutPrefix(pattern, "-"); drops {
		return "-" + callFilter + name
	}
	return callFilter + pattern
}

// CallFilter returns which calls were kept and which were left out by name.
func (m *Manifest) CallFilter() (f CallFilter) {
	for _, word := range m.Filters {
		minus, pattern, ok := strings.Cut(word, callFilter)
		if ok && (minus == "" || minus == "-") {
			f.Add(minus + pattern)
		}
	}
	return f
}

// KeepsCall reports whether filters by name keep the rows of a call.
func (m *Manifest) KeepsCall(call CallID) bool {
	f := m.CallFilter()
	return f.Keeps(call)
}

// SwitchedOff reports whether MPI_Pcontrol switched recording off.
func (m *Manifest) SwitchedOff() bool { return slices.Contains(m.Filters, "pcontrol") }

// Lacks reports whether rows of those that an answer reads were left out by request: by --record, --calls or
// MPI_Pcontrol.
func (m *Manifest) Lacks(reads Reads) bool {
	if m.Record == "all" && len(m.Filters) == 0 {
		return false
	}
	if reads&ReadsMessages != 0 && m.rows("messages") < m.Counts.Messages {
		return true
	}
	switch {
	case reads&(ReadsOperations|ReadsMessageCalls) == 0 || m.rows("events") == m.Counts.Calls:
		return false
	case m.SwitchedOff(), m.Record != "all" && reads&ReadsMessageCalls != 0:
		return true
	}
	kept := m.CallFilter()
	for i := range Calls {
		kind := ReadsOperations
		switch {
		case Calls[i].ID.Is(FactStarts): // of messages or of collectives
			kind |= ReadsMessageCalls
		case OfMessages(CallID(i), Calls[i].Class):
			kind = ReadsMessageCalls
		}
		if Calls[i].Name != "" && reads&kind != 0 && !kept.Keeps(CallID(i)) {
			return true
		}
	}
	return false
}

// rows returns the number of rows of a table.
func (m *Manifest) rows(table string) int64 {
	for i := range m.Tables {
		if m.Tables[i].Name == table {
			return m.Tables[i].Rows
		}
	}
	return 0
}

// OfMessages reports whether a row of a call, of that class, is of messages: it sends, receives, probes or completes,
// parts of messages too, or makes requests that do. A row of MPI_Start has the class of what it starts.
func OfMessages(call CallID, class Class) bool {
	switch class {
	case ClassSend, ClassRecv, ClassSendrecv, ClassProbe, ClassComplete:
		return true
	}
	return call.Is(FactPointToPoint)
}

// SendsMessages reports whether messages may have been sent by the call: it sends, or starts requests that may.
func (c *Call) SendsMessages() bool {
	return c.Name != "" && (c.ID.Is(FactStarts) || c.Class == ClassSend || c.Class == ClassSendrecv)
}
