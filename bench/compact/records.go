package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/commq/commq/capture/spool"
)

// sketchBytes are three histograms by powers of two (the time before a call, in it, and computing), with sum, least and
// most.
const sketchBytes = 3 * (32*4 + 24)

// measureRecords prints what the records of a folder take, and would take in other forms.
func measureRecords(folder string, buffers bool, rounds int) error {
	streams, nsPerTick, err := readStreams(folder)
	if err != nil {
		return err
	}
	packed, err := recordBytes(folder)
	if err != nil {
		return err
	}
	calls, hashes, times, places := 0, 0, 0, 0
	distinct := map[uint64]bool{}
	for _, s := range streams {
		calls += s.calls()
		places += countPlaces(s)
		returned := s.slots[0].T0
		for i := range s.calls() {
			times += timeBytes(&s.call(i)[0], returned, nsPerTick)
			returned = s.call(i)[0].T1
		}
		for i := range s.slots {
			if s.slots[i].Kind == spool.KindHash {
				hashes++
				distinct[s.slots[i].AsHashes().Hash] = true
			}
		}
	}
	per := func(bytes int) float64 { return float64(bytes) / float64(calls) }
	fmt.Printf("%s: %d files, %d calls; bytes a call: %.2f packed, %.2f of them times, sketches instead %.3f\n",
		filepath.Base(folder), len(streams), calls, per(packed), per(times), per(places*sketchBytes))
	if hashes > 0 {
		fmt.Printf("  %d hashes, %d different\n", hashes, len(distinct))
	}
	fmt.Printf("  keys alone: %.1f ns\n", fastest(rounds, calls, func() {
		for _, s := range streams {
			k := keys{buffers: buffers}
			for i := range s.calls() {
				k.key(s.call(i))
			}
		}
	}))
	for _, kind := range kinds {
		var forms []form
		ns := fastest(rounds, calls, func() { forms = each(streams, buffers, kind.new) })
		half := make([]*stream, len(streams))
		for i, s := range streams {
			half[i] = &stream{s.slots, s.begins[:1+s.calls()/2]}
		}
		bytes, tables := sizes(forms)
		bytes1, tables1 := sizes(each(half, buffers, kind.new))
		fmt.Printf("  %s: %.1f ns, bytes a call %.4f + %.4f for %d different ones; in the second half %.4f%s\n",
			kind.name, ns, per(bytes), per(tables), different(forms), 2*per(bytes+tables-bytes1-tables1),
			misses(forms))
	}
	return nil
}

// form is a way to keep calls.
type form interface {
	add(key []uint64)
	size() int    // bytes of the calls
	entries() int // bytes of the table of different calls
	len() int     // of that table
}

var kinds = []struct {
	name string
	new  func() form
}{
	{"expected", func() form { return newExpected(false) }},
	{"expected, misses folded", func() form { return newExpected(true) }},
	{"folded", func() form { return &folded{table: newTable()} }},
}

func sizes(forms []form) (bytes, tables int) {
	for _, f := range forms {
		bytes, tables = bytes+f.size(), tables+f.entries()
	}
	return bytes, tables
}

func different(forms []form) (n int) {
	for _, f := range forms {
		n += f.len()
	}
	return n
}

// misses tells how many calls were not the expected ones.
func misses(forms []form) string {
	n := 0
	for _, f := range forms {
		e, ok := f.(*expected)
		if !ok {
			return ""
		}
		n += e.misses
	}
	return fmt.Sprintf("; %d misses", n)
}

// each gives the keys of each stream, from its first call on, to a new form.
func each(streams []*stream, buffers bool, kind func() form) (forms []form) {
	for _, s := range streams {
		k, f := keys{buffers: buffers}, kind()
		for i := range s.calls() {
			f.add(k.key(s.call(i)))
		}
		forms = append(forms, f)
	}
	return forms
}

// countPlaces counts the different calls, sites and peers of a stream: what a sketch of times would stand at.
func countPlaces(s *stream) int {
	type place struct {
		call uint16
		site uint32
		peer int32
	}
	places := map[place]bool{}
	for i := range s.calls() {
		c := &s.call(i)[0]
		places[place{c.Call, c.Site, c.Peer}] = true
	}
	return len(places)
}

// recordBytes returns the bytes of the records below a folder, without the headers of their files.
func recordBytes(folder string) (bytes int, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != spool.Suffix {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += int(info.Size()) - spool.HeaderBytes
		}
		return err
	})
	return bytes, err
}

// fastest returns the least CPU time of the thread per call of several rounds, in ns.
func fastest(rounds, calls int, do func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := time.Duration(1 << 62)
	times := max(1, 1_000_000/calls)
	for range rounds {
		before := threadTime()
		for range times {
			do()
		}
		least = min(least, threadTime()-before)
	}
	return float64(least.Nanoseconds()) / float64(calls*times)
}

// threadTime returns the CPU time of this thread so far.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
