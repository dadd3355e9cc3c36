package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// halfDone leaves what two processes have for each other when both have written their rows, and returns the folders of
// their records.
func halfDone(f *testing.F, store string) []string {
	f.Helper()
	dir, _, _, _ := randomSpool(f, 3, 3, 40)
	dirs := nodes(f, dir, 2, func(rank int) int { return min(rank, 1) })
	var all sync.WaitGroup
	for _, dir := range dirs {
		all.Go(func() {
			o := partFuzzOptions()
			own, err := openJob(dir, "", func(info *JobInfo) ([]string, error) { return info.Files, nil })
			if err != nil {
				f.Error(err)
				return
			}
			defer own.close()
			parts, err := writer.OpenParts(store, "run", testJobID, false)
			if err != nil {
				f.Error(err)
				return
			}
			o.maxShards = maxShards
			if err := o.withDefaults(); err != nil {
				f.Error(err)
				return
			}
			p := &partIngest{o: &o, parts: parts, own: own, number: own.ranks[0].rank}
			release, err := p.begin()
			if err == nil {
				err = errors.Join(p.makeRows(context.Background()), release())
			}
			if err != nil {
				f.Error(err)
			}
		})
	}
	all.Wait()
	if f.Failed() {
		f.FailNow()
	}
	return dirs
}

func partFuzzOptions() PartOptions {
	return PartOptions{Options: Options{epochRows: 60, NoSymbols: true, Workers: 1}, Parts: 2, Patience: time.Minute}
}

// editPart changes a file that a part left: what it holds, and its form is right again.
func editPart(data []byte, name string, edits []byte) ([]byte, error) {
	switch {
	case strings.HasSuffix(name, receivesEnding+dataEnding):
		if len(edits) >= 2 && len(data) > 0 {
			data[(int(edits[0])<<8|int(edits[1]))%len(data)] ^= 1
		}
		return data, nil
	case strings.HasSuffix(name, rowsEnding+dataEnding):
		return editRows(data, edits)
	}
	var v any = &partIndex{}
	if strings.HasSuffix(name, receivesEnding) {
		v = &receiveIndex{}
	} else if strings.HasSuffix(name, rowsEnding) {
		v = &partRows{}
	}
	if err := unpack(data, v); err != nil {
		return nil, err
	}
	mutate.Value(v, edits)
	return pack(v)
}

// editRows changes the rows of the table parts.
func editRows(data, edits []byte) ([]byte, error) {
	from, err := newUnpacker(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer from.zstd.Close()
	var all []epochParts
	for {
		var next epochParts
		if err := from.next(&next); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	mutate.Value(&all, edits)
	var b bytes.Buffer
	to, err := newPacker(&b)
	if err != nil {
		return nil, err
	}
	for _, next := range all {
		if err := to.put(next); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), to.zstd.Close()
}

// FuzzParts changes what one process of an ingest left for another beyond its form: the other has an error, or makes a
// run. Counts of the other's rows are believed: a folder of parts is private, and its files have checksums.
func FuzzParts(f *testing.F) {
	store := f.TempDir()
	dirs := halfDone(f, store)
	for i := range 6 {
		f.Add(uint8(i), []byte{3, 5, 0, 9, 8, 7, 2, 1, 4, 1})
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		store, o := copyOf(t, store), partFuzzOptions()
		parts, err := writer.OpenParts(store, "run", testJobID, false)
		if err != nil {
			t.Fatal(err)
		}
		endings := []string{indexEnding, receivesEnding, receivesEnding + dataEnding, rowsEnding, rowsEnding + dataEnding}
		name := partFile(1, endings[int(which)%len(endings)])
		data, err := os.ReadFile(parts.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = editPart(data, name, edits); err != nil {
			return // it holds what no encoder takes
		}
		if err := os.WriteFile(parts.Path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if which%2 == 0 { // the first part makes its rows again, with what the second left
			for _, ending := range endings[1:] {
				if err := os.Remove(parts.Path(partFile(0, ending))); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
		o.Patience = time.Millisecond
		if _, err := IngestPart(context.Background(), dirs[0], parts, o); err != nil {
			if len(edits) < 2 {
				t.Fatalf("nothing was changed: %v", err)
			}
			return
		}
		if _, err := writer.ReadManifest(filepath.Join(store, "run")); err != nil {
			t.Fatal(err)
		}
	})
}

// copyOf returns a copy of a store.
func copyOf(t *testing.T, store string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
	return to
}

// An index whose record file has another name than records have, or with calls that have no block or do not exist, is
// an error; each was a panic.
func TestPartIndexIsChecked(t *testing.T) {
	own, err := openJob(ring(3).write(t), "", func(info *JobInfo) ([]string, error) { return info.Files, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	o := partFuzzOptions()
	if err := errors.Join(o.withDefaults(), scanRanks(context.Background(), own.ranks, &o.Options)); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*indexRank){
		"JOB.RANK.THREAD": func(r *indexRank) { r.Files[0].Name = "records" },
		"in 0 blocks":     func(r *indexRank) { r.Blocks = nil },
		"communicators of rank 9": func(r *indexRank) {
			h := *r.Facts.Handles
			h.Rank, r.Facts.Handles = 9, &h
		},
		"begins with":                 func(r *indexRank) { r.Blocks[0].Row = r.Facts.Rows + 1 },
		"the number 65535 last":       func(r *indexRank) { r.Facts.LastCall = 65535 },
		"is in the call with the num": func(r *indexRank) { r.Facts.Open = []spool.Call{{Call: 65535}} },
	} {
		x := newPartIndex(own, &o.Options)
		change(&x.Ranks[0])
		if _, _, err := joinParts(nil, job{id: own.id, size: own.size}, []*partIndex{x}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// Definitions of communicators in an index whose numbers cannot be are an error; a rank below 0 was a panic.
func TestPartCommunicatorsAreChecked(t *testing.T) {
	good := handles.Comm{ID: 7, Fixed: spool.CommDef{Kind: int32(schema.CommDup), Size: 2, Members: 2}, Members: []int32{0, 1}}
	for want, change := range map[string]func(*handles.Comm){
		"":                  func(*handles.Comm) {},
		"rank -2 of 2":      func(c *handles.Comm) { c.Fixed.Rank = -2 },
		"kind 99":           func(c *handles.Comm) { c.Fixed.Kind = 99 },
		"lists of 1 and 0":  func(c *handles.Comm) { c.Members = c.Members[:1] },
		"no earlier one":    func(c *handles.Comm) { c.Parent = 3 },
		"with world rank 9": func(c *handles.Comm) { c.Members = []int32{0, 9} },
	} {
		c := good
		c.Parent = -1
		change(&c)
		_, _, err := handles.UnifyComms(2, []*handles.Definitions{{Comms: []handles.Comm{c}}})
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// What another process says of its rows is checked: columns of one length, epochs in order, files and calls that exist.
func TestPartRowsAreChecked(t *testing.T) {
	row := func(epoch int32) epochParts {
		return epochParts{epoch, &schema.Parts{Rank: []int32{0}, Seq: []int64{0}, Epoch: []int32{epoch}, PeerWorld: []int32{1},
			SendBytes: []int64{8}, RecvBytes: []int64{8}}}
	}
	short := row(0)
	short.Rows.RecvBytes = nil
	for _, c := range []struct {
		want string
		rows []epochParts
	}{
		{"", []epochParts{row(0), row(2)}},
		{"no rows", []epochParts{{0, nil}}},
		{"a column of 1 rows and one of 0", []epochParts{short}},
		{"epoch after 1 of 3, or those of epoch 1", []epochParts{row(1), row(1)}},
		{"of epoch 3", []epochParts{row(3)}},
	} {
		var packed bytes.Buffer
		to, err := newPacker(&packed)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.rows {
			if err := to.put(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := to.zstd.Close(); err != nil {
			t.Fatal(err)
		}
		from, err := newUnpacker(&packed)
		if err != nil {
			t.Fatal(err)
		}
		r := &partRowsReader{file: from, epochs: 3, next: epochParts{Epoch: -1}}
		for err == nil && !r.ended {
			err = r.advance()
		}
		from.zstd.Close()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := (&tally{Collectives: []collectiveCount{{Call: -1}}}).check(); err == nil {
		t.Error("a collective with the number -1 is taken")
	}
	parts, err := writer.OpenParts(t.TempDir(), "run", testJobID, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []writer.PartFile{{Table: "comms"}, {Table: "events", Shard: -1}, {Table: "events", Rows: -1}} {
		if _, err := parts.Assemble([]writer.PartFile{f}); err == nil {
			t.Errorf("%+v is taken", f)
		}
	}
}
