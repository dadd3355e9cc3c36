package main

import (
	"fmt"
	"math/bits"
	"path/filepath"
	"unsafe"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// stream is what a thread recorded: its slots without definitions and checksums, call by call.
type stream struct {
	slots  []spool.Call
	begins []int // of the slots of each call; one more at the end
}

func (s *stream) calls() int { return len(s.begins) - 1 }

func (s *stream) call(i int) []spool.Call { return s.slots[s.begins[i]:s.begins[i+1]] }

// readStreams reads the records of a folder. nsPerTick is that of the first file.
func readStreams(folder string) (streams []*stream, nsPerTick float64, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*"+spool.Suffix))
	if err == nil && len(paths) == 0 {
		paths, err = filepath.Glob(filepath.Join(folder, "*", "*"+spool.Suffix)) // folder is that of --spool
	}
	if err != nil {
		return nil, 0, err
	}
	if len(paths) == 0 {
		return nil, 0, fmt.Errorf("%s: no records", folder)
	}
	for _, path := range paths {
		f, failed := spool.Open(path)
		if failed != nil {
			return nil, 0, failed
		}
		s := &stream{}
		for r, at := spool.NewReader(f), 0; ; at++ {
			slots := r.From(at, 1)
			if len(slots) == 0 || slots[0].Kind == spool.End {
				break
			}
			switch slots[0].Kind {
			case spool.KindCall:
				s.begins = append(s.begins, len(s.slots))
			case spool.KindDef, spool.KindBlob, spool.KindSum, spool.KindBase:
				continue
			}
			if len(s.begins) > 0 {
				s.slots = append(s.slots, slots[0])
			}
		}
		s.begins = append(s.begins, len(s.slots))
		streams = append(streams, s)
		if h := f.Header; len(streams) == 1 {
			nsPerTick = float64(h.Clock1Ns-h.Clock0Ns) / float64(h.Clock1Tick-h.Clock0Tick)
		}
		if err := f.Err(); err != nil {
			return nil, 0, err
		}
		if err := f.Close(); err != nil {
			return nil, 0, err
		}
	}
	return streams, nsPerTick, nil
}

// keys turns calls into numbers that are equal if the calls are, apart from times, hashes and polls. Requests are named
// by their age and collectives have no number, so that iterations of a loop are equal.
type keys struct {
	buffers bool
	serial  uint32 // the newest request
	words   []uint64
}

// key returns the key of a call; it is good until the next one.
func (k *keys) key(slots []spool.Call) []uint64 {
	c := &slots[0]
	req := c.Req
	if id := schema.CallID(c.Call); !id.Is(schema.FactReceives|schema.FactBlocking) && req != 0 {
		req = k.age(req)
	}
	k.words = append(k.words[:0], uint64(c.Call)|uint64(c.Flags)<<24|uint64(c.Site)<<32, pair(c.Comm, c.Peer),
		pair(c.Tag, c.Dtype), uint64(c.Count), uint64(req))
	if k.buffers {
		k.words = append(k.words, c.Buf)
	}
	for i := range slots[1:] {
		k.more(&slots[1+i])
	}
	return k.words
}

// more appends a slot that continues a call.
func (k *keys) more(c *spool.Call) {
	w := *(*[8]uint64)(unsafe.Pointer(c))
	buffer := 0
	switch c.Kind {
	case spool.KindHash, spool.KindPre:
		return
	case spool.KindSide:
		buffer = 4
	case spool.KindColl:
		w[1], buffer = 0, 5 // its number on the communicator
	case spool.KindRMA:
		buffer = 7
	case spool.KindDone:
		d := (*spool.Call)(unsafe.Pointer(&w)).AsDone()
		for i := range d.Done[:d.N] {
			d.Done[i].Req = k.age(d.Done[i].Req)
		}
	case spool.KindStart:
		s := (*spool.Call)(unsafe.Pointer(&w)).AsStart()
		for i := range s.Start[:s.N] {
			s.Start[i].Req, s.Start[i].Template = k.age(s.Start[i].Req), k.age(s.Start[i].Template)
		}
	}
	if buffer != 0 && !k.buffers {
		w[buffer] = 0
	}
	k.words = append(k.words, w[:]...)
}

// age returns how many requests were made since one, which may be a new one.
func (k *keys) age(req uint32) uint32 {
	age := k.serial - req
	if int32(age) < 0 {
		k.serial = req
	}
	return age
}

func pair(a, b int32) uint64 { return uint64(uint32(a)) | uint64(uint32(b))<<32 }

// timeBytes returns the bytes that packed records take for the times of a call. returned is when the call before did.
func timeBytes(c *spool.Call, returned uint64, nsPerTick float64) int {
	gap := c.T0 - returned
	compute := int64(int32(c.ComputeNs - uint32(float64(gap)*nsPerTick)))
	return varint(gap<<1) + varint((c.T1-c.T0)<<1) + varint(uint64(compute<<1^compute>>63))
}

// varint returns how many bytes a number takes.
func varint(x uint64) int { return min(9, (70-bits.LeadingZeros64(x|1))/7) }
