package writer

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/digest"
)

// lonely writes a valid run: one rank in MPI_COMM_WORLD that makes two calls, in two epochs.
func lonely(t *testing.T, store string) string {
	t.Helper()
	r, err := Create(store, "lonely", Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Abort()
	ranks, comms := &schema.RankInfos{}, &schema.Comms{}
	ranks.Append(&schema.RankInfo{Threads: 1, Ended: schema.EndedFinalized, Events: 2})
	comms.Append(&schema.Comm{Name: schema.NullText, Parent: schema.NullInt32, CartDims: schema.NullText,
		CartPeriods: schema.NullText, GraphEdges: schema.NullText})
	for _, b := range []schema.Batch{ranks, comms, lonelyEvent(0), lonelyEvent(1)} {
		if err := r.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	m := testManifest()
	m.Ranks, m.Epochs, m.EndNs, m.Counts.Calls = 1, 2, 1009, 2
	if err := r.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "lonely")
}

func lonelyEvent(i int64) *schema.Events {
	e := schema.NullEvent
	e.Seq, e.Epoch, e.Call, e.Class, e.StartNs, e.EndNs = i, int32(i), int16(schema.CallInit),
		int16(schema.ClassOther), 1000*i, 1000*i+9
	b := &schema.Events{}
	b.Append(&e)
	return b
}

// edit changes a run's manifest.
func edit(t *testing.T, dir string, change func(*schema.Manifest)) {
	t.Helper()
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, filepath.Join(dir, manifestName), text)
}

func overwrite(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Check finds what is broken in the files, and nothing else.
func TestCheckFindsBrokenFiles(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(dir string)
		want  []string
	}{
		{"nothing", func(string) {}, nil},
		{"other digest", func(dir string) { edit(t, dir, func(m *schema.Manifest) { m.Digest = strings.Repeat("0", 32) }) },
			[]string{"manifest.json: the digest of the manifest is"}},
		{"other identity", func(dir string) { edit(t, dir, func(m *schema.Manifest) { m.Hash = "crc64" }) },
			[]string{"manifest.json: the digest of the manifest is"}},
		{"other origin", func(dir string) { edit(t, dir, func(m *schema.Manifest) { m.Origin.Command = []string{"./a.out"} }) }, nil},
		{"other table digest", func(dir string) {
			edit(t, dir, func(m *schema.Manifest) {
				m.Tables[0].Digest = strings.Repeat("0", 32)
				m.Digest = digest.OfRun(m).String()
			})
		}, []string{"events: the digest of the rows is"}},
		{"other size", func(dir string) { edit(t, dir, func(m *schema.Manifest) { m.Tables[0].Files[0].Bytes++ }) }, []string{"events/0000.parquet: "}},
		{"other rows", func(dir string) {
			edit(t, dir, func(m *schema.Manifest) {
				m.Tables[0].Files[0].Rows, m.Tables[0].Rows = 3, 3
				m.Digest = digest.OfRun(m).String()
			})
		}, []string{"events/0000.parquet: 2 rows; the manifest says 3"}},
		{"file gone", func(dir string) { os.Remove(filepath.Join(dir, "comms/0000.parquet")) }, []string{"comms/0000.parquet: "}},
		{"file added", func(dir string) {
			overwrite(t, filepath.Join(dir, "events/0007.parquet"), read(t, filepath.Join(dir, "events/0000.parquet")))
		}, []string{"events/0007.parquet: the manifest does not list this file"}},
		{"file cut", func(dir string) {
			p := filepath.Join(dir, "ranks/0000.parquet")
			overwrite(t, p, read(t, p)[:500])
		}, []string{"ranks/0000.parquet: not a whole Parquet file"}},
		{"other table's file", func(dir string) {
			overwrite(t, filepath.Join(dir, "ranks/0000.parquet"), read(t, filepath.Join(dir, "comms/0000.parquet")))
		}, []string{"ranks/0000.parquet: no column rank"}},
	} {
		dir := lonely(t, t.TempDir())
		test.spoil(dir)
		problems, err := Check(context.Background(), dir)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if len(problems) != len(test.want) {
			t.Errorf("%s: found %v; want %q", test.name, problems, test.want)
			continue
		}
		for i, p := range problems {
			if !strings.HasPrefix(p.String(), test.want[i]) {
				t.Errorf("%s: found %v; want %q", test.name, p, test.want[i])
			}
		}
	}
}

// What Check finds in files, readers refuse, but for a file that is not the run's, which they do not read.
func TestReadersRefuseChangedFiles(t *testing.T) {
	events := filepath.Join("events", "0000.parquet")
	flip := func(at int) func(string) { // from the end if negative
		return func(dir string) {
			text := read(t, filepath.Join(dir, events))
			text[(at+len(text))%len(text)] ^= 4
			overwrite(t, filepath.Join(dir, events), text)
		}
	}
	large := func(spoil func(string)) func(string) { // all but the footer is hashed only in small files
		return func(dir string) {
			edit(t, dir, func(m *schema.Manifest) { m.Tables[0].Files[0].Sum = "" })
			spoil(dir)
		}
	}
	for _, test := range []struct {
		name  string
		spoil func(dir string)
		want  string
	}{
		{"nothing", func(string) {}, ""},
		{"a page header", flip(7), "events/0000.parquet: the hash of the file is"},
		{"the footer", flip(-40), "events/0000.parquet: the hash of the file is"},
		{"the footer of a large file", large(flip(-40)), "events/0000.parquet: the hash of the footer is"},
		{"file cut", func(dir string) {
			overwrite(t, filepath.Join(dir, events), read(t, filepath.Join(dir, events))[:500])
		}, "events/0000.parquet has 500 bytes, the manifest says"},
		{"file gone", func(dir string) { os.Remove(filepath.Join(dir, events)) }, "events/0000.parquet: no such file"},
		{"file added", func(dir string) {
			overwrite(t, filepath.Join(dir, "events", "0007.parquet"), read(t, filepath.Join(dir, events)))
		}, ""},
	} {
		dir := lonely(t, t.TempDir())
		test.spoil(dir)
		rows := 0
		count := func(b schema.Batch) error { rows += b.Len(); return nil }
		errs := []error{ReadTable(t.Context(), dir, &schema.EventsTable, 10, count)}
		e, err := ReadEpochs(dir, &schema.EventsTable, 10, "seq")
		if err == nil {
			err = e.All(t.Context(), count)
		}
		errs = append(errs, err, MakeProfile(t.Context(), dir))
		for _, err := range errs {
			if test.want != "" {
				wantError(t, err, test.want)
				wantError(t, err, "the run is damaged: copy it or capture it again; commq runs check says more")
			} else if err != nil || rows != 4 {
				t.Errorf("%s: %d rows, %v", test.name, rows, err)
			}
		}
		if test.want != "" && rows > 0 {
			t.Errorf("%s: %d rows", test.name, rows)
		}
	}
}

// An error of the system tells nothing of the file.
func TestFilesThatCannotBeOpenedAreNotDamage(t *testing.T) {
	dir := lonely(t, t.TempDir())
	events := filepath.Join(dir, "events", "0000.parquet")
	if err := errors.Join(os.Remove(events), os.Symlink(events, events)); err != nil {
		t.Fatal(err)
	}
	err := ReadTable(t.Context(), dir, &schema.EventsTable, 10, func(schema.Batch) error { return nil })
	wantError(t, err, "too many levels of symbolic links")
	if strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

// Another run may take the place of one between its manifest and its files, as compact and --replace have it.
func TestRunsThatAreExchangedWhileRead(t *testing.T) {
	dir := lonely(t, t.TempDir())
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Sum = ""
	for i, table := range schema.Tables() {
		if table == &schema.EventsTable {
			m.Tables[i].Files[0].Bytes++
		}
	}
	now, files, err := filesNow(t.Context(), dir, m, &schema.EventsTable)
	if err != nil || len(files) != 1 || now == m {
		t.Errorf("%v, %v", files, err)
	}
	_, _, err = filesNow(t.Context(), dir, now, &schema.EventsTable)
	if err != nil {
		t.Error(err)
	}
}

func TestCheckRefusesFoldersThatAreNotRuns(t *testing.T) {
	_, err := Check(context.Background(), t.TempDir())
	wantError(t, err, "is not a run")
	dir := lonely(t, t.TempDir())
	edit(t, dir, func(m *schema.Manifest) { m.SchemaVersion = 99 })
	_, err = Check(context.Background(), dir)
	wantError(t, err, "schema version 99", "this commq reads 2")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = Check(ctx, lonely(t, t.TempDir())); err != context.Canceled {
		t.Errorf("a cancelled check: %v", err)
	}
}

// Arbitrary bytes as a manifest give an error or a valid manifest.
func FuzzReadManifest(f *testing.F) {
	dir := f.TempDir()
	r, err := Create(dir, "x", Options{})
	if err != nil {
		f.Fatal(err)
	}
	if err := r.Commit(f.Context(), testManifest()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "x", manifestName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	m, err := schema.ParseManifest(good)
	if err != nil {
		f.Fatal(err)
	}
	summed, err := json.Marshal(m.Summed())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(summed)
	f.Add([]byte(`{"schema_version":1}`))
	f.Add([]byte(`{"schema_version":1,"ranks":1e99}`))
	f.Fuzz(fuzzReadManifest)
}

func fuzzReadManifest(t *testing.T, text []byte) {
	for _, parse := range []func([]byte) (*schema.Manifest, error){schema.ParseManifest, schema.ParseSummedManifest} {
		m, err := parse(text)
		if err != nil {
			continue
		}
		once, twice := manifestText(t, m), ""
		if m, err := parse([]byte(once)); err == nil {
			twice = manifestText(t, m)
		}
		if once != twice || digest.OfRun(m) == (digest.Sum{}) {
			t.Errorf("a manifest that is written again is another:\n%s\n%s", once, twice)
		}
		if _, err := schema.ParseSummedManifest([]byte(manifestText(t, m.Summed()))); err != nil {
			t.Errorf("the manifest for a server: %v", err)
		}
	}
}

func manifestText(t *testing.T, m *schema.Manifest) string {
	t.Helper()
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Arbitrary bytes as a table give an error, or rows with cells that the column allows. Nothing panics or hangs.
func FuzzReadTable(f *testing.F) {
	store := f.TempDir()
	r, err := Create(store, "x", Options{})
	if err != nil {
		f.Fatal(err)
	}
	types := &schema.Datatypes{}
	for i := range 20 {
		types.Append(&schema.Datatype{ID: int32(i), Name: "MPI_DOUBLE", Combiner: schema.NullText, Bytes: 8,
			ExtentBytes: int64(i) << 40})
	}
	comms := &schema.Comms{}
	comms.Append(&schema.Comm{Name: "world", Kind: 3, Parent: schema.NullInt32})
	for _, b := range []schema.Batch{types, comms, someEvents()} {
		if err := r.Write(0, b); err != nil {
			f.Fatal(err)
		}
	}
	if err := r.Commit(f.Context(), testManifest()); err != nil {
		f.Fatal(err)
	}
	tables := []*schema.Table{&schema.DatatypesTable, &schema.CommsTable}
	for i, t := range tables {
		good, err := os.ReadFile(filepath.Join(store, "x", t.FilePath(0)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(good, uint8(i))
		f.Add(good[:len(good)/2], uint8(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		table := tables[int(which)%len(tables)]
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, table.Name), 0o777); err != nil {
			t.Fatal(err)
		}
		overwrite(t, filepath.Join(dir, table.FilePath(0)), text)
		rows := 0
		_ = ReadTable(context.Background(), dir, table, 7, func(b schema.Batch) error {
			if rows += b.Len(); rows > 1<<16 {
				return context.DeadlineExceeded
			}
			_, err := cleaned(b)
			_ = err // Check reports forbidden nulls
			return nil
		})
	})
}

// The same with a good manifest, its values changed.
func FuzzReadManifestEdited(f *testing.F) {
	store := f.TempDir()
	r, err := Create(store, "x", Options{})
	if err != nil {
		f.Fatal(err)
	}
	if err := r.Commit(f.Context(), testManifest()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(store, "x", manifestName))
	if err != nil {
		f.Fatal(err)
	}
	m, err := schema.ParseManifest(good)
	if err != nil {
		f.Fatal(err)
	}
	m.Sum = "" // it would refuse every edit
	if good, err = json.Marshal(m); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Fuzz(func(t *testing.T, edits []byte) { fuzzReadManifest(t, []byte(mutate.JSON(string(good), edits))) })
}
