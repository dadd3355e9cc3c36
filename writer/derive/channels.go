package derive

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/commq/commq/schema"
)

// ChannelSums makes the rows of the table channels from those of messages, in any order. Its memory is at most 200 MB,
// for channelRows rows. It must not be used concurrently.
type ChannelSums struct {
	rows    []channelRow
	slots   []uint32 // a hash table with open addressing: indexes in rows plus 1, 0 where it is free
	tooMany bool
}

// channelRows is the largest number of rows in the table channels. A run that needs more has no such table.
const channelRows = 1 << 21

// channelKey identifies a row of channels.
type channelKey struct {
	src, dst, comm, tag, datatype int32
	bytesPower, countPower        int16 // countPower is noCount without a count
}

// noCount is the countPower of messages whose number of elements is not known.
const noCount = -2

type channelRow struct {
	channelKey
	messages, bytes, minBytes, maxBytes, count int64
}

// NewChannelSums returns a ChannelSums.
func NewChannelSums() *ChannelSums { return &ChannelSums{slots: make([]uint32, 1<<8)} }

// ChannelColumns lists the columns of messages that ChannelSums reads.
func ChannelColumns() []string {
	return []string{"src", "dst", "comm", "tag", "send_datatype", "send_count", "bytes"}
}

// Add adds messages.
func (s *ChannelSums) Add(m *schema.Messages) {
	for i, bytes := range m.Bytes {
		if s.tooMany {
			return
		}
		key := channelKey{src: m.Src[i], dst: m.Dst[i], comm: m.Comm[i], tag: m.Tag[i], datatype: m.SendDatatype[i],
			bytesPower: powerAbove(bytes), countPower: noCount}
		count := m.SendCount[i]
		if count == schema.NullInt64 {
			count = 0
		} else {
			key.countPower = powerAbove(count)
		}
		r := s.row(key)
		if r == nil {
			continue
		}
		if r.messages == 0 {
			r.minBytes, r.maxBytes = bytes, bytes
		}
		r.messages++
		r.bytes += bytes
		r.count += count
		r.minBytes, r.maxBytes = min(r.minBytes, bytes), max(r.maxBytes, bytes)
	}
}

// powerAbove returns the smallest p with n <= 2^p; -1 for 0.
func powerAbove(n int64) int16 {
	if n <= 0 {
		return -1
	}
	return int16(bits.Len64(uint64(n - 1)))
}

// row returns the row of a key; nil when there are too many.
func (s *ChannelSums) row(key channelKey) *channelRow {
	mask := uint64(len(s.slots) - 1)
	at := key.hash() & mask
	for ; s.slots[at] != 0; at = (at + 1) & mask {
		if r := &s.rows[s.slots[at]-1]; r.channelKey == key {
			return r
		}
	}
	if len(s.rows) == channelRows {
		*s = ChannelSums{tooMany: true}
		return nil
	}
	s.rows = append(s.rows, channelRow{channelKey: key})
	s.slots[at] = uint32(len(s.rows))
	if 2*len(s.rows) > len(s.slots) {
		s.grow()
	}
	return &s.rows[len(s.rows)-1]
}

// grow doubles the hash table.
func (s *ChannelSums) grow() {
	s.slots = make([]uint32, 2*len(s.slots))
	mask := uint64(len(s.slots) - 1)
	for i := range s.rows {
		at := s.rows[i].hash() & mask
		for s.slots[at] != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = uint32(i + 1)
	}
}

func (k *channelKey) hash() uint64 {
	const odd = 0x9e3779b97f4a7c15
	a := uint64(uint32(k.src))<<32 | uint64(uint32(k.dst))
	b := uint64(uint32(k.comm))<<32 | uint64(uint32(k.tag))
	c := uint64(uint32(k.datatype))<<32 | uint64(uint16(k.bytesPower))<<16 | uint64(uint16(k.countPower))
	return mixBits(a*odd ^ bits.RotateLeft64(b*odd, 21) ^ bits.RotateLeft64(c*odd, 42))
}

// Rows returns the rows of channels; nil when there are too many. The sums are empty afterwards.
func (s *ChannelSums) Rows() *schema.Channels {
	if s.tooMany {
		return nil
	}
	rows := s.rows
	*s = *NewChannelSums()
	slices.SortFunc(rows, func(a, b channelRow) int {
		return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.comm, b.comm),
			cmp.Compare(a.tag, b.tag), cmp.Compare(a.datatype, b.datatype), cmp.Compare(a.bytesPower, b.bytesPower),
			cmp.Compare(a.countPower, b.countPower))
	})
	out := &schema.Channels{}
	nth := int64(0)
	for i := range rows {
		r := &rows[i]
		if nth++; i == 0 || rows[i-1].src != r.src {
			nth = 0
		}
		row := schema.Channel{Src: r.src, Nth: nth, Dst: r.dst, Comm: r.comm, Tag: r.tag, Datatype: r.datatype,
			BytesPower: int32(r.bytesPower), CountPower: int32(r.countPower), Messages: r.messages, Bytes: r.bytes,
			MinBytes: r.minBytes, MaxBytes: r.maxBytes, Count: r.count}
		if r.countPower == noCount {
			row.CountPower, row.Count = schema.NullInt32, schema.NullInt64
		}
		out.Append(&row)
	}
	return out
}
