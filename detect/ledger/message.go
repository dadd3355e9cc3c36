package ledger

import (
	"cmp"
	"fmt"
	"math"

	"github.com/commq/commq/schema"
)

// Message is a candidate message.
type Message struct {
	Src, Dst, Comm, Tag, Datatype int32
	SendSite, RecvSite            int32
	Bytes, Hash, Head             int64
	SendSeq, PostSeq, DoneSeq     int64
	Buffer, DstBuffer             int64
	// for a piece: the index of the message that carries it; else None
	Carrier   int32
	Taken     bool // it belongs to an instance
	Oversized bool // the sets of ranks that it connects take too much room
}

// CheckRanks returns an error if the message is of a rank that a run does not have.
func (m *Message) CheckRanks(ranks int32) error {
	if min(m.Src, m.Dst) < 0 || max(m.Src, m.Dst) >= ranks {
		return fmt.Errorf("a message from rank %d to %d of %d ranks", m.Src, m.Dst, ranks)
	}
	return nil
}

// None means no message.
const None = -1

// Piece is a part of a message's payload that is sent or received separately at one end of the message.
type Piece struct {
	Hash, Bytes, Head int64
	Offset            int64 // its address minus the message's
}

// RowKey is the position of a message in the run. Pieces come after all messages.
type RowKey struct {
	Ordinal int64
	Piece   int32 // number of the piece, from 1; 0 for a message
}

func (k RowKey) Compare(o RowKey) int {
	return cmp.Or(cmp.Compare(min(k.Piece, 1), min(o.Piece, 1)), cmp.Compare(k.Ordinal, o.Ordinal),
		cmp.Compare(k.Piece, o.Piece))
}

// Payload is the content that several messages share.
type Payload struct {
	Hash, Bytes int64
	Datatype    int32 // only set if it is a named one and there are others: then the datatypes must agree
}

// Way is a message's source and destination.
type Way struct{ Src, Dst int32 }

func CompareWays(a, b Way) int {
	return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
}

// Cell groups the messages that one call sends for one purpose.
type Cell struct {
	Comm, Datatype, Tag, Site int32
	Bytes                     int64
}

func CellOf(b *schema.Messages, i int) Cell {
	return Cell{b.Comm[i], b.SendDatatype[i], b.Tag[i], b.SendCallsite[i], b.Bytes[i]}
}

// Cell returns the group of a message.
func (m *Message) Cell() Cell { return Cell{m.Comm, m.Datatype, m.Tag, m.SendSite, m.Bytes} }

// Place is a place in the program that sends in a communicator: a call site or, if unknown, a tag.
type Place struct {
	comm, site int32
	byTag      bool
}

func (m *Message) Place() Place { return PlaceOf(m.Comm, m.Tag, m.SendSite) }

func PlaceOf(comm, tag, site int32) Place {
	if site == schema.NullInt32 {
		return Place{comm, tag, true}
	}
	return Place{comm, site, false}
}

// Lane is a line of the program that sends in a communicator, and the tag.
type Lane struct{ Comm, Tag, Line int32 }

// Class groups the messages of a complete exchange. Bytes is anySize for an exchange of different sizes.
type Class struct {
	comm, tag, datatype, site int32
	Bytes                     int64
}

const AnySize = -1

// Classes returns the classes that a message may belong to.
func Classes(m *Message) [2]Class {
	k := Class{m.Comm, m.Tag, m.Datatype, m.SendSite, m.Bytes}
	any := k
	any.Bytes = AnySize
	return [2]Class{k, any}
}

// GroupBy groups a list by key, in order of first occurrence. Elements for which key returns false are left out.
func GroupBy[T any, K comparable](list []T, key func(int, T) (K, bool)) (out [][]T) {
	at := map[K]int{}
	for i, x := range list {
		k, ok := key(i, x)
		if !ok {
			continue
		}
		n, known := at[k]
		if !known {
			n = len(out)
			at[k] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], x)
	}
	return out
}

// HasHash reports whether the payload of row i is known. The empty payload needs no hash.
func HasHash(b *schema.Messages, i int) bool {
	return b.PayloadHash[i] != schema.NullInt64 || b.Bytes[i] == 0
}

// PayloadOf returns hash and size of row i; the empty payload has no hash.
func PayloadOf(b *schema.Messages, i int) (hash, bytes int64) {
	if b.Bytes[i] == 0 {
		return 0, 0
	}
	return b.PayloadHash[i], b.Bytes[i]
}

// MessageOf returns row i as a message.
func MessageOf(b *schema.Messages, i int) Message {
	m := Message{Src: b.Src[i], Dst: b.Dst[i], Comm: b.Comm[i], Tag: b.Tag[i], Datatype: b.SendDatatype[i],
		SendSite: b.SendCallsite[i],
		RecvSite: b.RecvCallsite[i], Head: b.PayloadHead[i], SendSeq: b.SendSeq[i], PostSeq: b.RecvPostSeq[i],
		DoneSeq: b.RecvDoneSeq[i], Buffer: b.SrcBuffer[i], DstBuffer: b.DstBuffer[i], Carrier: None}
	if m.DoneSeq == schema.NullInt64 {
		m.DoneSeq = math.MaxInt64 // it was never seen to complete
	}
	m.Hash, m.Bytes = PayloadOf(b, i)
	return m
}
