package compare

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
)

// Wire is the comparison of what two runs send, message by message and contribution by contribution.
type Wire struct {
	// Base is the name of the run that the other is compared with.
	Base string `json:"base"`
	// New is the name of the other run.
	New string `json:"new"`
	// Compared is the number of messages of the base. Unhashed is the number of messages in both runs without a hash,
	// for which only sizes are compared.
	Compared int64 `json:"compared"`
	Unhashed int64 `json:"unhashed"`
	// SizesOnly reports that both runs have no payload hashes: senders, receivers, tags, order and sizes are compared.
	SizesOnly bool `json:"sizes_only"`
	// Counts has the number of differences by kind: payload, bytes, missing, new. First is the earliest difference;
	// nil if there is none.
	Counts map[string]int64 `json:"counts"`
	First  *WireDifference  `json:"first"`
}

// WireDifference is a message, or a contribution to a collective, that differs between two runs.
type WireDifference struct {
	// Kind is message or the collective function.
	Kind string `json:"kind"`
	// Rank is the world rank that sends.
	Rank int32 `json:"rank"`
	// Peer is the world rank that receives; nil for a collective.
	Peer *int32 `json:"peer,omitempty"`
	// Comm is the id of the communicator.
	Comm int32 `json:"comm"`
	// Tag is the message's tag; nil for a collective.
	Tag *int32 `json:"tag,omitempty"`
	// Nth counts from 1 along rank, peer, communicator and tag.
	Nth int64 `json:"nth"`
	// Differs is payload, bytes, missing (only the base has it) or new (only the other run has it).
	Differs string `json:"differs"`
	// BaseBytes and NewBytes are its sizes; nil in the run that does not have it.
	BaseBytes *int64 `json:"base_bytes"`
	NewBytes  *int64 `json:"new_bytes"`
	// AtNs is when its call began; nil in an untimed run.
	AtNs *int64 `json:"at_ns"`
	// Function is the function of the program that sends it.
	Function string `json:"function,omitempty"`
	// File is its source file.
	File string `json:"file,omitempty"`
	// Line is the line in it.
	Line int32 `json:"line,omitempty"`
}

// NewWire starts the comparison of the payloads of two runs; if both have no hashes, of their sizes. Errors say why
// they cannot be compared.
func NewWire(base, new []Run) (*Wire, error) {
	if len(base) != 1 || len(new) != 1 {
		return nil, errors.New("diff --wire: compares two runs; give one of each side")
	}
	b, n := base[0], new[0]
	sizesOnly := run.HashBits(b.Manifest) == 0 && run.HashBits(n.Manifest) == 0
	if !sizesOnly {
		if err := needHashes(b, n); err != nil {
			return nil, err
		}
	}
	if err := CheckDistinct([]Run{b, n}); err != nil {
		return nil, fmt.Errorf("diff --wire: %w", err)
	}
	switch {
	case b.Manifest.Hash != n.Manifest.Hash:
		return nil, fmt.Errorf("diff --wire: run %q has hashes by %s and run %q by %s; capture one again with the "+
			"other's --hash", b.Name, b.Manifest.Hash, n.Name, n.Manifest.Hash)
	case b.Manifest.Ranks != n.Manifest.Ranks:
		return nil, fmt.Errorf("diff --wire: run %q has %s and run %q has %d; capture both with as many", b.Name,
			plural(int64(b.Manifest.Ranks), "rank"), n.Name, n.Manifest.Ranks)
	}
	return &Wire{Base: b.Name, New: n.Name, SizesOnly: sizesOnly, Counts: map[string]int64{}}, nil
}

// needHashes returns an error if one of the runs has no payload hashes.
func needHashes(runs ...Run) error {
	for _, r := range runs {
		if err := (&run.Need{Command: "diff --wire", Hashes: true}).Check(r.Name, r.Manifest); err != nil {
			return err
		}
	}
	return nil
}

// AddMessages adds the numbers of messages of one run: all, and those without a hash.
func (w *Wire) AddMessages(name string, messages, unhashed int64) {
	if name == w.Base {
		w.Compared = messages
	}
	w.Unhashed += unhashed
}

// Add adds a row of the query wire. The first row is the earliest difference.
func (w *Wire) Add(r rows.Row) {
	w.Counts[r.Text("differs")]++
	if w.First != nil {
		return
	}
	w.First = &WireDifference{Kind: r.Text("kind"), Rank: int32(r.Int("rank")), Peer: optional32(r, "peer"),
		Comm: int32(r.Int("comm")), Tag: optional32(r, "tag"), Nth: r.Int("nth"), Differs: r.Text("differs"),
		BaseBytes: optional64(r, "base_bytes"), NewBytes: optional64(r, "new_bytes"), AtNs: optional64(r, "at_ns"),
		Function: r.Text("function"), File: r.Text("file"), Line: int32(r.Int("line"))}
}

func optional32(r rows.Row, column string) *int32 {
	if n, known := r.OptionalInt(column); known {
		x := int32(n)
		return &x
	}
	return nil
}

func optional64(r rows.Row, column string) *int64 {
	if n, known := r.OptionalInt(column); known {
		return &n
	}
	return nil
}

// Changed reports whether anything differs.
func (w *Wire) Changed() bool { return w.First != nil }

// Text writes the comparison for people: the first difference and the number of differences by kind.
func (w *Wire) Text(out io.Writer) error {
	var b strings.Builder
	if w.First == nil && w.SizesOnly {
		fmt.Fprintf(&b, "%s of %s and all contributions to collectives have the same sizes in %s\n",
			plural(w.Compared, "message"), w.Base, w.New)
	} else if w.First == nil {
		fmt.Fprintf(&b, "%s of %s and all contributions to collectives are the same in %s, byte by byte\n",
			plural(w.Compared, "message"), w.Base, w.New)
	} else {
		fmt.Fprintf(&b, "first difference: %s\n", w.First.text())
		fmt.Fprintf(&b, "all differences: %s (--format csv lists them); %s has %s\n", w.kinds(), w.Base,
			plural(w.Compared, "message"))
	}
	if w.SizesOnly {
		b.WriteString("the runs have no payload hashes: only senders, receivers, tags, order and sizes were compared\n")
	} else if w.Unhashed > 0 {
		fmt.Fprintf(&b, "%s of both runs without a hash: only their sizes were compared\n",
			plural(w.Unhashed, "message"))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// kinds describes the number of differences of each kind.
func (w *Wire) kinds() string {
	var parts []string
	for _, kind := range [...][2]string{{"payload", "with another payload"}, {"bytes", "with another size"},
		{"missing", "only in " + w.Base}, {"new", "only in " + w.New}} {
		if n := w.Counts[kind[0]]; n > 0 {
			parts = append(parts, units.Comma(n)+" "+kind[1])
		}
	}
	return strings.Join(parts, ", ")
}

// text describes a message or contribution, its place in the source, and how it differs.
func (d *WireDifference) text() string {
	var b strings.Builder
	if d.Peer != nil && d.Tag != nil {
		fmt.Fprintf(&b, "message %d from rank %d to rank %d with tag %d on communicator %d", d.Nth, d.Rank, *d.Peer,
			*d.Tag, d.Comm)
	} else {
		fmt.Fprintf(&b, "contribution of rank %d to operation %d (%s) of communicator %d", d.Rank, d.Nth, d.Kind,
			d.Comm)
	}
	switch {
	case d.File != "" && d.Line > 0 && d.Function != "":
		fmt.Fprintf(&b, ", at %s (%s:%d)", d.Function, d.File, d.Line)
	case d.Function != "":
		fmt.Fprintf(&b, ", at %s", d.Function)
	}
	switch d.Differs {
	case "payload":
		fmt.Fprintf(&b, ": another payload of %s", plural(*d.NewBytes, "byte"))
	case "bytes":
		fmt.Fprintf(&b, ": %s, before %s", plural(*d.NewBytes, "byte"), units.Comma(*d.BaseBytes))
	case "missing":
		fmt.Fprintf(&b, ": is missing (%s before)", plural(*d.BaseBytes, "byte"))
	case "new":
		fmt.Fprintf(&b, ": is new (%s)", plural(*d.NewBytes, "byte"))
	}
	return b.String()
}
