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

// CallFilters returns the patterns of the names of calls that were kept and those that were left out (--calls).
func (m *Manifest) CallFilters() (kept, out []string) {
	for _, f := range m.Filters {
		if p, ok := strings.CutPrefix(f, "call:"); ok {
			kept = append(kept, p)
		} else if p, ok := strings.CutPrefix(f, "-call:"); ok {
			out = append(out, p)
		}
	}
	return kept, out
}

// KeepsCall reports whether filters by name keep the rows of a call.
func (m *Manifest) KeepsCall(call CallID) bool {
	fits := func(pattern string) bool {
		ok, err := path.Match(pattern, Calls[call].Name)
		return ok && err == nil
	}
	kept, out := m.CallFilters()
	return (len(kept) == 0 || slices.ContainsFunc(kept, fits)) && !slices.ContainsFunc(out, fits)
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
	for i := range Calls {
		kind := ReadsOperations
		switch {
		case Calls[i].ID.Is(FactStarts): // of messages or of collectives
			kind |= ReadsMessageCalls
		case Calls[i].OfMessages():
			kind = ReadsMessageCalls
		}
		if Calls[i].Name != "" && reads&kind != 0 && !m.KeepsCall(CallID(i)) {
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

// OfMessages reports whether the call sends, receives, probes or completes, or makes or starts requests that do.
func (c *Call) OfMessages() bool {
	switch c.Class {
	case ClassSend, ClassRecv, ClassSendrecv, ClassProbe, ClassComplete:
		return true
	}
	return c.ID.IsAny(FactPointToPoint | FactStarts)
}

// SendsMessages reports whether messages may have been sent by the call: it sends, or starts requests that may.
func (c *Call) SendsMessages() bool {
	return c.Name != "" && (c.ID.Is(FactStarts) || c.Class == ClassSend || c.Class == ClassSendrecv)
}
